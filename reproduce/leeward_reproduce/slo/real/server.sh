#!/bin/sh
# nfs-ganesha on a disk: server.sh FOLDER DISK VOLUME... FOLDER gets the configuration and logs, DISK is the folder of a
# mounted file system, and each VOLUME is a folder on it, exported as /srv/VOLUME at the ports 2049 (NFS) and 20048 (MOUNT).
#
# The script runs again in namespaces of mounts and processes, so that all parts end with it, and files in /run are its own.
# The network is that of the caller.
set -eu

if [ "${LEEWARD_SERVER:-}" != inside ]; then
    exec env LEEWARD_SERVER=inside unshare --mount --pid --fork --kill-child --mount-proc --propagation private sh "$0" "$@"
fi
folder=$1
disk=$2
shift 2
# ganesha takes a file system that is mounted twice for two.
mount --bind "$disk" /srv
umount "$disk"
mount -t tmpfs tmpfs /run
mkdir -p /run/rpcbind /run/ganesha /run/sendsigs.omit.d
cat >"$folder/ganesha.conf" <<CONF
NFS_CORE_PARAM { Protocols = 3; NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 20049; Enable_RQUOTA = false; }
# Without this, calls such as REMOVE have to be repeated for 90 s after the start, in NFSv3 and NLM too.
NFSv4 { Graceless = true; }
CONF
number=0
for volume in "$@"; do
    number=$((number + 1))
    mkdir -p "/srv/$volume"
    chmod 777 "/srv/$volume"
    cat >>"$folder/ganesha.conf" <<CONF
EXPORT { Export_Id = $number; Path = /srv/$volume; Pseudo = /srv/$volume; Protocols = 3; Access_Type = RW;
    Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }
CONF
done
rpcbind -f -w >"$folder/rpcbind.log" 2>&1 &
# ganesha registers with it at its start.
for attempt in $(seq 100); do
    [ -S /run/rpcbind.sock ] && break
    sleep 0.1
done
# The first process of its namespace must stay until ganesha ends.
ganesha.nfsd -F -L "$folder/ganesha.log" -f "$folder/ganesha.conf" -p /run/ganesha/pid -N EVENT &
wait $!
