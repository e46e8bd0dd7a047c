# The agent under systemd, as its unit has it: a user of its own, its token as a credential, ready without a controller, and
# a watchdog. Runs as root in a booted copy of the machine.

mkdir -p /etc/leeward /etc/systemd/system/leeward-agent.service.d
echo leeward_secret >/etc/leeward/agent.token
chmod 600 /etc/leeward/agent.token
echo 'LEEWARD_AGENT=--controller http://127.0.0.1:1 --host r0h1 --interface lo --interval 1s' >/etc/leeward/agent.env
printf '[Service]\nWatchdogSec=1\n' >/etc/systemd/system/leeward-agent.service.d/watchdog.conf
systemctl daemon-reload
systemctl start leeward-agent
systemctl show leeward-agent -p ActiveState -p StatusText
[ "$(systemctl show leeward-agent -p Type --value)" = notify ]
systemctl show leeward-agent -p StatusText | grep -q 'http://127.0.0.1:1: report failed: connection refused'
pid=$(systemctl show leeward-agent -p MainPID --value)
[ "$(stat -c %u "/proc/$pid")" -ge 61184 ]
# Its watchdog is content for longer than the watchdog's time, and a hung agent is restarted.
sleep 3
[ "$(systemctl show leeward-agent -p NRestarts --value)" = 0 ]
kill -STOP "$pid"
waited=0
until [ "$(systemctl show leeward-agent -p NRestarts --value)" -ge 1 ]; do
    sleep 0.2
    waited=$((waited + 1))
    [ $waited -lt 100 ]
done
# With the part for enforcers, a process of the agent has the rights of both kinds, and a folder for its state.
cat >/usr/local/bin/leeward-enforce-net <<'SCRIPT'
#!/bin/sh
grep '^CapEff' /proc/self/status >/run/leeward-enforce/rights
exec sleep 600
SCRIPT
chmod 755 /usr/local/bin/leeward-enforce-net
echo 'LEEWARD_AGENT=--controller http://127.0.0.1:1 --host r0h1 --interface lo --interval 1s --enforce net' >/etc/leeward/agent.env
rm /etc/systemd/system/leeward-agent.service.d/watchdog.conf
cp /usr/local/share/enforce.conf /etc/systemd/system/leeward-agent.service.d/
systemctl daemon-reload
systemctl restart leeward-agent
waited=0
until grep -q '0000000000001400' /run/leeward-enforce/rights; do
    sleep 0.2
    waited=$((waited + 1))
    [ $waited -lt 100 ]
done
echo "== done"
