# The service under systemd, as its unit and the guide `Operate the service` have it: a user of its own, tokens as a
# credential, a restart, an upgrade of a store, and a rollback. Runs as root in a booted copy of the machine.

url=http://127.0.0.1:7600
config=/etc/leeward/leeward.yaml
tokens=/etc/leeward/tokens
mkdir -p /etc/leeward /etc/systemd/system/leewardd.service.d
echo '{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}' >/etc/leeward/cluster.yaml
cat >$config <<SETTINGS
cluster: /etc/leeward/cluster.yaml
interval: 5s
store: /var/lib/leeward/store.db
tokens: /run/credentials/leewardd.service/tokens
policies: {replicas: "sinbad:without_telemetry=default"}
SETTINGS
cat >/etc/systemd/system/leewardd.service.d/secrets.conf <<SECRETS
[Service]
LoadCredential=tokens:$tokens
SECRETS

echo "== a start without the token file fails and says so"
systemctl daemon-reload
if systemctl start leewardd; then exit 1; fi
systemctl stop leewardd

echo "== tokens on the file that the credential comes from"
placer=$(leewardd token new --name namenode --role place --tokens $tokens)
[ "$(stat -c %a:%U $tokens)" = 600:root ]
systemctl start leewardd
systemctl show leewardd -p ActiveState -p StatusText -p NotifyAccess
[ "$(systemctl show leewardd -p Type --value)" = notify ]
[ "$(systemctl is-active leewardd)" = active ]
pid=$(systemctl show leewardd -p MainPID --value)
[ "$(stat -c %u "/proc/$pid")" -ge 61184 ]
[ "$(stat -c %a /var/lib/private/leeward/store.db)" = 600 ]

status() { # TOKEN
    curl -s -o /dev/null -w '%{http_code}' -H "authorization: Bearer $1" $url/v1/status
}
place() { # TOKEN KEY
    curl -s -X POST $url/v1/place/replicas -H "authorization: Bearer $1" -H 'content-type: application/json' \
        -H "idempotency-key: $2" -d '{"size": "64MiB", "replicas": 1}' | grep -o '"id":"[0-9]*"'
}
[ "$(status "$placer")" = 200 ]
[ "$(status leeward_wrong)" = 401 ]
first=$(place "$placer" one)
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
before=$(date -u -d '5 seconds ago' +%Y-%m-%dT%H:%M:%SZ)
reporter=$(leewardd token new --name switches --role report --tokens $tokens)
[ "$(status "$reporter")" = 401 ]

echo "== a new token and the removal of one take a restart, which keeps decisions"
systemctl restart leewardd
[ "$(status "$reporter")" = 200 ]
[ "$(place "$placer" one)" = "$first" ]
curl -s -f -o /dev/null -X POST $url/v1/reports -H "authorization: Bearer $reporter" -H 'content-type: application/json' \
    -d "{\"from\": \"$before\", \"until\": \"$now\", \"links\": [{\"link\": \"r0h0:egress\", \"load_bps\": 100000000}]}"
sed -i '/^namenode /d' $tokens

echo "== a restart keeps telemetry while it is fresh"
systemctl restart leewardd
[ "$(status "$placer")" = 401 ]
curl -s -H "authorization: Bearer $reporter" $url/v1/status | grep -o '"kept_telemetry":{[^}]*}' | tee /tmp/kept
grep -q '"links":1' /tmp/kept
[ "$(stat -c %a /var/lib/private/leeward/store.db.telemetry)" = 600 ]

echo "== a hung engine is restarted"
printf '[Service]\nWatchdogSec=1\n' >/etc/systemd/system/leewardd.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart leewardd
hung=$(systemctl show leewardd -p MainPID --value)
kill -STOP "$hung"
waited=0
until [ "$(systemctl show leewardd -p NRestarts --value)" -ge 1 ] && [ "$(systemctl is-active leewardd)" = active ]; do
    sleep 0.2
    waited=$((waited + 1))
    [ $waited -lt 100 ]
done
rm /etc/systemd/system/leewardd.service.d/watchdog.conf
systemctl daemon-reload

echo "== a rollback to a program that does not know the store is refused, and the copy brings the store back"
systemctl stop leewardd
cp -a /var/lib/private/leeward/store.db /root/store.copy
python3 - <<NEWER
import sqlite3
sqlite3.connect("/var/lib/private/leeward/store.db").execute("PRAGMA user_version = 99").connection.commit()
NEWER
if systemctl start leewardd; then exit 1; fi
systemctl show leewardd -p Result -p ExecMainStatus
[ "$(systemctl show leewardd -p ExecMainStatus --value)" = 2 ]
systemctl stop leewardd
rm -f /var/lib/private/leeward/store.db*
cp -a /root/store.copy /var/lib/private/leeward/store.db
placer=$(leewardd token new --name namenode --role place --tokens $tokens)
systemctl start leewardd
[ "$(place "$placer" one)" != "" ]
systemctl stop leewardd
[ "$(systemctl show leewardd -p Result --value)" = success ]
echo "== done"
