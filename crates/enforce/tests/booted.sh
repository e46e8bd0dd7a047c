# The network enforcer under systemd, as its unit has it: with one capability, taken over after a kill, undone at a stop. Runs
# as root in a booted copy of the machine.

mkdir -p /etc/leeward
ip link add v0 type veth peer name v1
ip addr add 10.9.0.1/24 dev v0
ip link set v0 up
cat >/etc/leeward/promises.json <<JSON
{"host": "h0", "workloads": [{"name": "mail", "direction": "to-server", "peers": ["10.9.0.2"], "priority": 0,
 "buckets": [{"rate": 1000000, "burst": 64000}]}]}
JSON
options='--workloads /etc/leeward/promises.json --host h0 --interface v0 --rate 1Gbps --interval 500ms'
echo "LEEWARD_ENFORCE_NET=$options" >/etc/leeward/enforce-net.env
before=$(tc qdisc show dev v0)
systemctl daemon-reload
systemctl start leeward-enforce-net
systemctl show leeward-enforce-net -p ActiveState -p StatusText
[ "$(systemctl show leeward-enforce-net -p StatusText --value)" = 'enforces on v0' ]
pid=$(systemctl show leeward-enforce-net -p MainPID --value)
# CAP_NET_ADMIN, and nothing else.
grep -q '^CapBnd:\s*0000000000001000$' "/proc/$pid/status"
tc qdisc show dev v0 | grep -q 'htb 7ee0: root'
nft list tables | grep -q 'leeward-v0'
# A killed enforcer leaves its rules, and the next one takes them over.
kill -KILL "$pid"
tc qdisc show dev v0 | grep -q 'htb 7ee0: root'
waited=0
until [ "$(systemctl show leeward-enforce-net -p NRestarts --value)" -ge 1 ] &&
    [ "$(systemctl show leeward-enforce-net -p ActiveState --value)" = active ]; do
    sleep 0.2
    waited=$((waited + 1))
    [ $waited -lt 100 ]
done
tc class show dev v0 | grep -q 'htb 7ee0:10 parent 7ee0:1'
systemctl stop leeward-enforce-net
[ "$(tc qdisc show dev v0)" = "$before" ]
[ -z "$(nft list tables)" ]
echo "== done"
