"""An operator's use: a Prometheus that scraped a fabric for half a day, and the hotspots in its data."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml
from pyarrow import parquet

from leeward import Cluster
from leeward.telemetry.synthetic import Plant, telemetry

Run = Callable[..., subprocess.CompletedProcess[str]]
MIN, HOUR = 60_000, 3_600_000
START = 1_751_328_000_000
FROM, UNTIL, HOURS = "2025-07-01T00:00Z", "2025-07-01T10:00Z", 10
INTERVAL = 5 * MIN


def disks(terabytes: int) -> dict[str, Any]:
    return {"kind": "disk", "devices": [{"read": "1GB/s", "write": "1GB/s", "capacity": f"{terabytes}TB"}]}


FABRIC = {
    "racks": [{"count": 4, "kind": "compute"}, disks(50), disks(50), disks(200)],
    "hosts_per_rack": 1,
    "nic": "10Gbps",
    "rack_link": "10Gbps",
    "cpus": 10,
}
MAP = r"""
prometheus: {in: ifHCInOctets, out: ifHCOutOctets, speed: ifHighSpeed}
links:
  - match: {instance: 'tor-(?P<rack>r\d+)', ifName: uplink}
    in: '{rack}:downlink'
    out: '{rack}:uplink'
  - match: {instance: 'tor-(?P<rack>r\d+)', ifName: 'host(?P<host>\d+)'}
    in: '{rack}h{host}:egress'
    out: '{rack}h{host}:ingress'
"""
HALVED = START + 6 * HOUR
PLANTS = (
    # The load is higher than ever before, for eighty minutes.
    Plant("r0:uplink", START + 2 * HOUR, START + 2 * HOUR + 80 * MIN, 0.8),
    # Half of the ports fail, and the load stays the same.
    Plant("r1:uplink", START, START + HOURS * HOUR, 0.48),
    Plant("r1:uplink", HALVED, HALVED + 2 * HOUR, 0.48, 0.5),
    Plant("r1:downlink", HALVED, HALVED + 2 * HOUR, 0.1, 0.5),
    # The rack has four times the disk capacity of the others, behind the same uplink.
    Plant("r6:uplink", START + 4 * HOUR, START + 9 * HOUR, 0.95),
    Plant("r2h0:ingress", START + 5 * HOUR, START + 5 * HOUR + 10 * MIN, 0.99),
)
HOT = {
    # Link: start and end.
    "r0:uplink": (2 * HOUR, 2 * HOUR + 80 * MIN),
    "r1:uplink": (6 * HOUR, 8 * HOUR),
    "r6:uplink": (4 * HOUR, 9 * HOUR),
    "r2h0:ingress": (5 * HOUR, 5 * HOUR + 10 * MIN),
}
CAUSES = {
    ("r0:uplink", "demand-growth"),
    ("r1:uplink", "capacity-loss"),
    ("r6:uplink", "demand-growth"),
    ("r6", "low-uplink"),
    ("r2h0:ingress", "demand-growth"),
    ("shuffle", "concentration"),
}
TASKS = ["t_ms,rack,job,tasks,cpus,tx_bps,rx_bps"]
TASKS += [
    f"{START + hour * HOUR},{row}"
    for hour in range(1, HOURS)
    for row in ("r0,web,2,4,4e8,0", "r1,web,2,4,4e8,0", "r2,web,2,4,4e8,0", "r0,shuffle,8,8,7e9,0")
]


def openmetrics() -> Iterator[str]:
    """Counters of switches for each minute: octets in both directions of each port, and its speed."""
    links = Cluster(FABRIC).links()
    end = START + HOURS * HOUR
    result = telemetry(links, PLANTS, start_ms=START, end_ms=end, cadence_ms=MIN, means=(0.1, 0.4))
    for link, name in enumerate(links["name"].to_pylist()):
        rows = result.filter(numpy.equal(result["link"].to_numpy(), link))
        node, way = name.split(":")
        rack, _, host = node.partition("h")
        labels = f'{{instance="tor-{rack}",ifName="{f"host{host}" if host else "uplink"}"}}'
        metric = "ifHCInOctets" if way in ("downlink", "egress") else "ifHCOutOctets"
        octets = 10**12 + numpy.cumsum(rows["bits"].to_numpy() // 8)
        times = (rows["t_ms"].to_numpy() // 1000).tolist()
        yield f"{metric}{labels} {10**12} {START // 1000}"
        yield from (f"{metric}{labels} {value} {at}" for value, at in zip(octets, times, strict=True))
        if way in ("uplink", "egress"):
            speeds = (rows["capacity_bps"].to_numpy() // 10**6).tolist()
            yield f"ifHighSpeed{labels} {speeds[0]} {START // 1000}"
            yield from (f"ifHighSpeed{labels} {value} {at}" for value, at in zip(speeds, times, strict=True))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, backfill: Any) -> Iterator[str]:
    """The address of a Prometheus that scraped the fabric."""
    with backfill(tmp_path_factory.mktemp("prometheus"), openmetrics()) as address:
        yield address


@pytest.fixture
def command(prometheus: str, tmp_path: Path) -> tuple[str, ...]:
    """Options of `leeward hotspots`."""
    (tmp_path / "racks.yaml").write_text(yaml.safe_dump(FABRIC))
    (tmp_path / "map.yaml").write_text(MAP)
    (tmp_path / "tasks.csv").write_text("\n".join(TASKS) + "\n")
    return (
        *("hotspots", "--prometheus", prometheus, "--cluster", "racks.yaml", "--map", "map.yaml"),
        *("--since", FROM, "--until", UNTIL, "--cache", "kept", "--tasks", "tasks.csv"),
    )


def test_hotspots_in_prometheus_are_reported_with_their_causes(run: Run, command: tuple[str, ...]) -> None:
    result = run(*command, "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    hot = {row["name"]: row for row in document["links"] if row["hot"]}
    assert {
        name: (row["hot_since_ms"] - START, row["last_hot_ms"] - START) for name, row in hot.items()
    } == HOT
    assert {name: row["hot"] for name, row in hot.items()} == {
        name: (end - start) // INTERVAL for name, (start, end) in HOT.items()
    }
    actual = {(row["subject"], row["cause"]) for row in document["findings"]}
    assert actual >= CAUSES
    # The other links have no findings.
    assert {one for one in actual if ":" in one[0]} == {one for one in CAUSES if ":" in one[0]}
    assert document["discards"] == []


def test_the_exported_rules_mark_the_same_intervals_hot(
    run: Run, command: tuple[str, ...], prometheus: str, tmp_path: Path
) -> None:
    completed = run(*command, "--out", "out")
    assert completed.returncode == 0, completed.stderr
    ours = {
        (row["name"], at)
        for row in parquet.read_table(tmp_path / "out" / "runs.parquet").to_pylist()
        for at in range(row["start_ms"], row["end_ms"], INTERVAL)
    }
    assert len(ours) == sum(end - start for start, end in HOT.values()) // INTERVAL

    exported = run(
        "export", "prometheus-rules", "--map", "map.yaml", "--cluster", "racks.yaml", "--cadence", "1min"
    )
    assert exported.returncode == 0, exported.stderr
    recorded = {
        rule["record"]: rule["expr"]
        for rule in yaml.safe_load(exported.stdout)["groups"][0]["rules"]
        if "record" in rule
    }
    # Prometheus did not evaluate the rules, so each recorded name is replaced by its expression.
    expression = "leeward:link_hot:bool == 1"
    for name, recording in reversed(recorded.items()):
        expression = expression.replace(name, f"({recording})")
    fields = {
        "query": expression,
        "start": (START + INTERVAL) / 1000,
        "end": (START + HOURS * HOUR) / 1000,
        "step": INTERVAL / 1000,
    }
    body = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(f"{prometheus}/api/v1/query_range", body, timeout=60) as answer:
        result = json.load(answer)["data"]["result"]
    theirs = {
        (one["metric"]["link"], round(1000 * at) - INTERVAL) for one in result for at, _ in one["values"]
    }
    assert theirs == ours
