#!/bin/sh
# Four hosts in two racks on this machine, to try `leeward probe`. One rack has a (10.0.0.2) and b (10.0.1.2); the other
# has c (10.1.0.2) and d (10.1.1.2). Their sending rates are limited to 40, 60, 80 and 100 Mbit/s, as in a hose. Each
# host is a network namespace whose name begins with lab-. Needs root:
#
#     sh namespaces.sh           makes them
#     sh namespaces.sh remove    removes them

set -eu
ALL="core rack0 rack1 a b c d"

for name in $ALL; do
    # A process that still listens there would keep its namespace.
    ip netns pids "lab-$name" 2> /dev/null | xargs -r kill || true
    ip netns del "lab-$name" 2> /dev/null || true
done
[ "${1:-}" != remove ] || exit 0
for name in $ALL; do
    ip netns add "lab-$name"
    ip -n "lab-$name" link set lo up
    # Racks and the core forward packets, and answer hop-count probes without a rate limit.
    ip netns exec "lab-$name" sh -c 'cd /proc/sys/net/ipv4; echo 1 > ip_forward; echo 0 > icmp_ratelimit'
done

# cable LOWER END ADDRESS UPPER END ADDRESS: connects two namespaces, and sends all traffic of the lower one to the
# upper one by default.
cable() {
    ip link add "$2" netns "lab-$1" type veth peer name "$5" netns "lab-$4"
    ip -n "lab-$1" addr add "$3/30" dev "$2"
    ip -n "lab-$4" addr add "$6/30" dev "$5"
    # Every packet is sent alone, not merged with others, so that connections share a limit evenly.
    ip -n "lab-$1" link set "$2" gso_max_segs 1 up
    ip -n "lab-$4" link set "$5" gso_max_segs 1 up
    ip -n "lab-$1" route add default via "$6"
}

# host NAME RACK NUMBER RATE: a host in a rack, with its sending rate in Mbit/s.
host() {
    cable "$1" eth0 "10.$2.$3.2" "rack$2" "host$3" "10.$2.$3.1"
    ip netns exec "lab-$1" tc qdisc add dev eth0 root tbf rate "$4mbit" burst 16kb limit 1500kb
}

for rack in 0 1; do
    cable "rack$rack" uplink "10.255.$rack.2" core "down$rack" "10.255.$rack.1"
    ip -n lab-core route add "10.$rack.0.0/16" via "10.255.$rack.2"
done
host a 0 0 40
host b 0 1 60
host c 1 0 80
host d 1 1 100
