"""Feeds a service with load for the pictures of the book, so that every page has content.

    leeward serve --cluster web/e2e/cell.yaml --interval 5s --store memory --task-policy borg --moves utp
    python web/e2e/feed.py http://127.0.0.1:7600

The script runs until Ctrl-C. Maps show the last hour: let it run for an hour before you take pictures.
"""

import itertools
import math
import random
import sys
import time
from datetime import UTC, datetime, timedelta

import leeward
from leeward.client.types import Decision, DeviceReport, HostReport

RACKS, HOSTS, JOBS = 40, 8, 160
RACK_BPS, HOST_BPS = 40e9, 10e9
READ_BPS, WRITE_BPS = 30e9, 20e9
INTERVAL_S = 5
SPELL_S = 900
"""Period in which a link is hot at most once."""

# Name, client, server, percentile, SLO latency, SSD time of a burst, measured latency as a share of the SLO.
WORKLOADS = (
    ("orders-db", "r0h0", "r3h2", 99.9, 0.040, "8ms", 0.35),
    ("mail-store", "r1h0", "r8h1", 99.0, 0.080, "30ms", 1.12),
    ("search-index", "r2h3", "r14h4", 99.9, 0.060, "12ms", 0.5),
    ("session-cache", "r4h1", "r20h0", 99.0, 0.030, "4ms", 0.4),
    ("home-dirs", "r6h2", "r21h5", 95.0, 0.250, "90ms", None),
    ("video-meta", "r9h4", "r33h3", 99.0, 0.120, "45ms", 0.7),
)


def share(rack: int, way: str, at_s: float) -> float | None:
    """Utilization of a rack's link at a time; None without a report."""
    if rack == 7 and at_s % 2400 > 700:
        return None
    own = random.Random(f"{rack} {way}")
    level, phase = 0.3 * (0.5 + own.random()), 6.283 * own.random()
    load = level * (1 + 0.3 * math.sin(at_s / 600 + phase))
    for spell in range(int(at_s // SPELL_S) - 2, int(at_s // SPELL_S) + 1):
        draw = random.Random(f"{rack} {way} {spell}")
        if draw.random() > 0.3:
            continue
        since = at_s - SPELL_S * (spell + draw.random())
        size, lasts = 0.42 + 0.4 * draw.random(), 340 * (0.4 + 1.2 * draw.random())
        if since >= 0:
            load += size * min(1, since / 40) * (1 if since < lasts else math.exp((lasts - since) / 90))
    return min(0.985, max(0.02, load + 0.02 * (own.random() - 0.5)))


def links(at_s: float) -> dict[str, float]:
    """Loads of all links, in bit/s."""
    loads = {}
    for rack in range(RACKS):
        for way, of_host in (("uplink", "egress"), ("downlink", "ingress")):
            carried = share(rack, way, at_s)
            if carried is None:
                continue
            loads[f"r{rack}:{way}"] = carried * RACK_BPS
            parts = [(0.2 + random.Random(f"{rack} {way} {host}").random()) ** 2 for host in range(HOSTS)]
            for host, part in enumerate(parts):
                bps = min(0.97 * HOST_BPS, 0.8 * carried * RACK_BPS * part / sum(parts))
                loads[f"r{rack}h{host}:{of_host}"] = bps
    return loads


def devices(at_s: float) -> list[DeviceReport]:
    """Loads of all SSDs; one in forty is hot."""
    reports: list[DeviceReport] = []
    for rack, host, at in itertools.product(range(RACKS), range(HOSTS), range(2)):
        own = random.Random(f"{rack} {host} nvme{at}")
        level, phase = 0.08 + 0.5 * own.random() ** 2, 6.283 * own.random()
        busy = min(0.97, level * (1 + 0.25 * math.sin(at_s / 300 + phase)) + 0.5 * (own.random() < 0.025))
        reads, writes = busy * READ_BPS * own.random(), busy * WRITE_BPS * own.random()
        device: DeviceReport = {"device": f"r{rack}h{host}:nvme{at}", "busy": busy}
        reports.append(device | {"read_bps": reads, "write_bps": writes, "queue": busy / (1.02 - busy)})
    return reports


def main(url: str) -> None:
    """Places tasks, replicas and workloads at the service at `url`, and reports telemetry to it."""
    client = leeward.Client(url)
    before = datetime.now(UTC)
    hosts = [f"r{rack}h{host}" for rack, host in itertools.product(range(RACKS), range(HOSTS))]
    stored: dict[str, HostReport] = {
        name: {"stored": f"{2 + 9 * random.Random(name).random():.2f}TB"} for name in hosts
    }
    client.report(before - timedelta(seconds=1), before, links=links(before.timestamp()), hosts=stored)
    tasks = [{"name": "crawl", "cpus": 2, "memory": "4GiB", "egress": {"mean": "200Mbps"}, "tolerant": True}]
    apps = [{"name": f"crawl-{at}", "tasks": tasks} for at in range(JOBS)]
    jobs = [client.place_tasks(app, job=app["name"]) for app in apps]
    for name, host, server, percentile, latency_s, burst, _ in WORKLOADS:
        curves = {
            "network-in": [{"rate": "2MB/s", "burst": "256kB"}],
            "storage": [{"rate": "15%", "burst": burst}],
            "network-out": [{"rate": "8MB/s", "burst": "512kB"}],
        }
        slo = {"percentile": percentile, "latency": f"{round(1e3 * latency_s)}ms"}
        workload = {"name": name, "client": host, "server": f"{server}:nvme0", "slo": slo}
        client.promise(workload | {"unloaded": "2ms", "curves": curves})
    for turn in itertools.count():
        time.sleep(INTERVAL_S)
        now = datetime.now(UTC)
        carried = links(now.timestamp())
        # Tasks in hot racks send more, so that the service advises moves.
        hot = {rack for rack in range(RACKS) if carried.get(f"r{rack}:uplink", 0) > 0.75 * RACK_BPS}
        seen = {name: promised * part for name, *_, promised, _, part in WORKLOADS if part is not None}
        client.report(
            before,
            now,
            links=carried,
            devices=devices(now.timestamp()),
            tasks=[
                {
                    "decision": job["id"],
                    "task": 0,
                    "egress_bps": 1_500_000_000 if rack_of(job) in hot else 200_000_000,
                    "ingress_bps": 100_000_000,
                }
                for job in jobs
            ],
            workloads=seen,
        )
        before = now
        # Answers one advised move every half a minute, as done or with a reason; the others expire.
        waiting = list(client.migrations(state="advised")) if turn % 6 == 5 else []
        if waiting and turn % 12 == 5:
            client.answer_migration(waiting[0]["id"], "done")
        elif waiting:
            client.answer_migration(waiting[0]["id"], "refused", "it holds a lock")
        for writer in (turn % RACKS, (turn * 7 + 3) % RACKS):
            client.place_replicas("256MiB", writer=f"r{writer}h{turn % HOSTS}", lasts="10min")


def rack_of(job: Decision) -> int:
    """Number of the rack that runs the job's task."""
    return int(job["hosts"][0][1:].partition("h")[0])


if __name__ == "__main__":
    main(sys.argv[1])
