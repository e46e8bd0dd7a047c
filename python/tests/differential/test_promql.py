"""Counters as PromQL reads them: the bits of each hour are `increase()`, less what Leeward names as lost."""

import json
import random
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leeward import Cluster
from leeward.telemetry import Samples, read, windows

HOUR, SCRAPE = 3600, 30
HOURS = 6
END = 1_767_225_600
START = END - HOURS * HOUR
CAPACITY = 10**10
MAP = """
prometheus: {in: ifHCInOctets, out: ifHCOutOctets}
links:
  - {match: {instance: 'tor-(?P<rack>r\\d+)'}, in: '{rack}:downlink', out: '{rack}:uplink'}
"""
METRICS = {"downlink": "ifHCInOctets", "uplink": "ifHCOutOctets"}
Readings = list[tuple[int, int]]
"""Time in milliseconds, and value of the counter."""


def link(rng: random.Random) -> tuple[Readings, Counter[int]]:
    """Readings of a link, and for each hour the octets of steps without a sample."""
    faults = rng.choice(
        [["", "late"], ["", "", "late", "lost"], ["", "", "", "", "", "restart", "gap", "lost"]]
    )
    # PromQL's numbers are doubles, which hold whole numbers up to 2^53.
    value, load = rng.randrange(10**12, 2**52), rng.random()
    at, before = 1000 * START, (1000 * START, value)
    readings, dropped = [before], Counter[int]()
    for step in range(1, HOURS * HOUR // SCRAPE + 1):
        load = min(1.0, max(0.0, load + rng.uniform(-0.1, 0.1)))
        due = 1000 * (START + SCRAPE * step)
        # Hours begin and end with a reading in time, so `increase()` extrapolates nothing.
        on_the_hour = SCRAPE * step % HOUR == 0
        fault = "" if on_the_hour else rng.choice(faults)
        now = due + (rng.randrange(1, 9_000) if fault == "late" else 0)
        value += round(load * CAPACITY / 8 * (now - at) / 1000)
        at = now
        if fault == "lost" or (fault == "gap" and SCRAPE * (step + 4) % HOUR > 5 * SCRAPE):
            continue
        if fault == "restart":
            value = rng.randrange(10**9)
        if value < before[1]:
            dropped[(at - 1) // (1000 * HOUR)] += value
        elif at - before[0] > 3000 * SCRAPE:
            dropped[(at - 1) // (1000 * HOUR)] += value - before[1]
        before = (at, value)
        readings.append(before)
    return readings, dropped


class Network:
    """Links with random readings."""

    def __init__(self, seed: int, racks: int) -> None:
        rng = random.Random(seed)
        self.racks = racks
        self.links = {(rack, way): link(rng) for rack in range(racks) for way in METRICS}

    def openmetrics(self) -> Iterator[str]:
        for way, metric in METRICS.items():
            yield f"# TYPE {metric} gauge"
            for rack in range(self.racks):
                for at, value in self.links[rack, way][0]:
                    yield f'{metric}{{instance="tor-r{rack}"}} {value} {at / 1000:.3f}'

    def read(self, address: str, folder: Path) -> Samples:
        (folder / "map.yaml").write_text(MAP)
        cluster = Cluster({"racks": self.racks, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "10Gbps"})
        period: dict[str, Any] = {"since": f"{HOURS}h", "now_ms": 1000 * END}
        return read(cluster, prometheus=address, map=folder / "map.yaml", keep=folder / "kept", **period)


def promql(address: str, query: str, at: int) -> dict[str, float]:
    """Value of each `instance` at a time."""
    arguments = urllib.parse.urlencode({"query": query, "time": at})
    with urllib.request.urlopen(f"{address}/api/v1/query?{arguments}", timeout=60) as response:
        result = json.load(response)["data"]["result"]
    return {row["metric"]["instance"]: float(row["value"][1]) for row in result}


def hourly(samples: Samples) -> dict[tuple[str, int], int]:
    """Bits of each link in each hour."""
    names = samples.links["name"].to_pylist()
    table = samples.table.mutate(hour=(samples.table.t_ms - 1) // (1000 * HOUR))
    sums = samples.engine.arrow(table.group_by("link", "hour").agg(bits=table.bits.sum()))
    return {(names[row["link"]], row["hour"]): int(row["bits"]) for row in sums.to_pylist()}


@pytest.mark.parametrize("racks", [4, pytest.param(100, marks=pytest.mark.whole)])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.whole)])
def test_bits_are_those_of_increase_less_what_is_named_as_lost(
    tmp_path: Path, backfill: Any, seed: int, racks: int
) -> None:
    network = Network(seed, racks)
    with backfill(tmp_path, network.openmetrics()) as address:
        samples = network.read(address, tmp_path)
        actual = hourly(samples)
        # The period excludes the reading at its start, so the first hour has no first step.
        for hour in range(START // HOUR + 1, END // HOUR):
            for way, metric in METRICS.items():
                increases = promql(address, f"increase({metric}[{HOUR}s])", (hour + 1) * HOUR)
                for rack in range(racks):
                    lost = network.links[rack, way][1][hour]
                    bits = actual.get((f"r{rack}:{way}", hour), 0) + 8 * lost
                    assert bits == pytest.approx(8 * increases[f"tor-r{rack}"], rel=1e-9), (rack, way, hour)
    assert set(samples.discards.counts) == {"reset", "gap"}
    assert samples.cadence_ms == 1000 * SCRAPE


@pytest.mark.parametrize("racks", [4, pytest.param(100, marks=pytest.mark.whole)])
def test_the_utilization_of_an_interval_is_that_of_rate(tmp_path: Path, backfill: Any, racks: int) -> None:
    rng = random.Random(racks)
    network = Network(0, racks)
    for key in network.links:
        value, rows = rng.randrange(2**40), []
        for step in range(HOURS * HOUR // SCRAPE + 1):
            rows.append((1000 * (START + SCRAPE * step), value))
            value += rng.randrange(CAPACITY // 8 * SCRAPE)
        network.links[key] = rows, Counter()
    with backfill(tmp_path, network.openmetrics()) as address:
        samples = network.read(address, tmp_path)
        names = samples.links["name"].to_pylist()
        rows = samples.engine.arrow(windows(samples, 300_000).table).to_pylist()
        shares = {(names[row["link"]], row["start_ms"]): row["ppm"] for row in rows}
        assert len(shares) == 2 * racks * HOURS * 12
        for start in range(START + 300, END, 300 * 7):
            for way, metric in METRICS.items():
                rates = promql(address, f"rate({metric}[300s])", start + 300)
                assert len(rates) == racks
                for instance, octets in rates.items():
                    share = shares[f"{instance.removeprefix('tor-')}:{way}", 1000 * start]
                    assert abs(share - 8e6 * octets / CAPACITY) <= 1, (instance, way, start)
