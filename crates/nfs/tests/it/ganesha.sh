#!/bin/sh
# A real server and real clients: nfs-ganesha on a file system of its own, the programs of libnfs, and the proxy between
# them, which is killed again and again. ganesha.sh PROGRAM: the path of leeward-nfs. Needs root; prints a line for each
# check that passed, and fails at the first one that does not. Its files are below TMPDIR.
#
# The script runs again in namespaces of its own, so that its addresses, ports and mounts are nobody else's, and all of its
# processes end with it.
set -eu

if [ "${2:-}" != inside ]; then
    exec unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private sh "$0" "$1" inside
fi
program=$1
work=$(mktemp -d)
trap 'cat "$work"/*.log >&2' EXIT
address=10.77.0.1
ip link set lo up
# ganesha needs an address that is not a loopback address.
ip address add $address/32 dev lo
mount -t tmpfs tmpfs /run
mkdir -p /run/rpcbind /run/ganesha /run/sendsigs.omit.d "$work/vol" "$work/copies" "$work/traces"
truncate -s 256M "$work/disk"
mkfs.ext4 -q "$work/disk"
mount -o loop "$work/disk" "$work/vol"
chmod 777 "$work/vol"
cat >"$work/ganesha.conf" <<CONF
NFS_CORE_PARAM { Protocols = 3; NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 20049; Enable_RQUOTA = false; }
EXPORT { Export_Id = 1; Path = $work/vol; Pseudo = /vol; Protocols = 3; Access_Type = RW; Squash = No_Root_Squash;
    SecType = sys; FSAL { Name = VFS; } }
# Without this, calls such as REMOVE have to be repeated for 90 s after the start, in NFSv3 and NLM too.
NFSv4 { Graceless = true; }
CONF
rpcbind -f -w >"$work/rpcbind.log" 2>&1 &
sleep 1
ganesha.nfsd -F -L "$work/ganesha.log" -f "$work/ganesha.conf" -p /run/ganesha/pid -N EVENT >"$work/stdout.log" 2>&1 &

cat >"$work/cluster.yaml" <<CONF
{racks: 1, hosts_per_rack: 2, nic: 1Gbps, rack_link: 2Gbps, devices: [{name: ssd, read: 450MB/s, write: 330MB/s}]}
CONF
cat >"$work/w.yaml" <<CONF
workloads:
  - {name: mail, client: r0h0, server: r0h1, unloaded: 1ms, curves: {storage: [{rate: 50%, burst: 10ms}]}}
CONF
echo '{"table": [{"size_bytes": 4096, "read_iops": 10000, "write_iops": 10000}], "outstanding": 4}' >"$work/ssd.json"
printf 'address,host\n%s,r0h0\n' $address >"$work/names.csv"

start_proxy() {
    # Without --mountport, the port mapper names the port.
    "$program" --export "$address:$work/vol" --listen 0.0.0.0:12049 --allow all --workloads "$work/w.yaml" \
        --cluster "$work/cluster.yaml" --device "$work/ssd.json" --addresses "$work/names.csv" \
        --traces "$work/traces" -o json >>"$work/reports" 2>>"$work/proxy.log" &
    echo $! >"$work/proxy"
}
# The first attempts come before ganesha listens.
for attempt in $(seq 60); do
    start_proxy
    sleep 0.5
    kill -0 "$(cat "$work/proxy")" 2>/dev/null && break
    [ "$attempt" -lt 60 ]
done
options='nfsport=12049&mountport=12049&autoreconnect=-1'
url() { # HOST FILE: clients reach the proxy at two addresses, and so have two addresses themselves.
    echo "nfs://$1$work/vol/$2?$options"
}

head -c 20000000 /dev/urandom >"$work/copies/random"
sum=$(sha256sum <"$work/copies/random")
nfs-cp "$work/copies/random" "$(url $address first)" >/dev/null
[ "$(sha256sum <"$work/vol/first")" = "$sum" ]
nfs-cat "$(url $address first)" | sha256sum | grep -q "${sum%% *}"
echo "a file is written and read through the proxy"

nfs-ls "nfs://127.0.0.1$work/vol?$options" | grep -q first
nfs-cat "$(url 127.0.0.1 first)" >/dev/null
echo "folders are listed, also by a client without a workload"

if nfs-ls "nfs://$address/?$options" >/dev/null 2>&1; then
    exit 1
fi
echo "another path than the export is not mounted"

# Five kills during copies: each copy goes on and is whole. A client that mounts while the proxy is away does not try again,
# unlike the kernel's; such a copy is begun again.
(
    for kill in 1 2 3 4 5; do
        sleep 0.4
        kill -9 "$(cat "$work/proxy")"
        start_proxy
        echo "$kill" >"$work/kills"
    done
) &
count=0
until [ "$(cat "$work/kills" 2>/dev/null)" = 5 ] && [ $count -ge 3 ]; do
    if timeout 60 nfs-cp "$work/copies/random" "$(url $address copy)" >"$work/copy.log" 2>&1; then
        [ "$(sha256sum <"$work/vol/copy")" = "$sum" ]
        count=$((count + 1))
        rm "$work/vol/copy"
    else
        grep -qi mount "$work/copy.log"
    fi
done
wait $! || true
echo "five kills during $count copies lost nothing"

kill -TERM "$(cat "$work/proxy")"
for attempt in $(seq 50); do
    kill -0 "$(cat "$work/proxy")" 2>/dev/null || break
    sleep 0.1
done
tail -n 1 "$work/reports" | grep -q '"workload":"mail"'
ls "$work"/traces/mail-*.csv >/dev/null
if ls "$work"/traces/*.part >/dev/null 2>&1; then
    exit 1
fi
echo "the last report has the workload, and its traces are complete"
trap - EXIT
