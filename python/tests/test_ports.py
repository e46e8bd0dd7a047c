"""Several series of one link: labels that change, copies, bonds, VLANs and bundles."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from leeward import Cluster
from leeward.telemetry import Engine, Samples, read, windows
from leeward.telemetry.ports import Run, beside

CLUSTER = Cluster({"racks": 1, "hosts_per_rack": 1, "nic": "10Gbps", "rack_link": "10Gbps"})
T, STEP, READINGS = 1_795_500_000, 60, 121
CAPACITY = 10 * 10**9
Row = dict[str, Any]

MAP = r"""
columns: {labels: [instance, ifName, ifIndex, ifAlias, replica]}
prometheus: {out: ifHCOutOctets, speed: SPEED, speed_unit: bps}
links:
  - match: {instance: 'tor-(?P<rack>r\d+)', ifName: '(Ethernet|bond|Port-Channel).*'}
    out: '{rack}:uplink'
"""


def loads(seed: int) -> list[float]:
    """A load for each step, uneven, with the mean 1."""
    draw = random.Random(seed)
    raw = [draw.uniform(0.2, 1.8) for _ in range(READINGS)]
    return [one * READINGS / sum(raw) for one in raw]


def port(
    name: str = "Ethernet49",
    load: float = 0.4,
    seed: int = 1,
    start: int = 10**12,
    during: range = range(READINGS),
    shift: int = 0,
    capacity: float = CAPACITY,
    **labels: str,
) -> list[Row]:
    """Readings of a counter with a mean load, during some steps."""
    shape, value, rows = loads(seed), float(start), []
    for step in range(READINGS):
        # A reading at another second has the octets up to that second.
        at = value + shape[step] * load * capacity / 8 * shift
        if step in during:
            identity = {"ifIndex": "49", "ifAlias": "up", "replica": "a"} | labels
            rows.append(
                {"t_s": T + STEP * step + shift, "instance": "tor-r0", "ifName": name}
                | identity
                | {"ifHCOutOctets": int(at), "speed_bps": int(capacity)}
            )
        value += shape[step] * load * capacity / 8 * STEP
    return rows


def two_halves(**labels: Any) -> list[Row]:
    """One counter whose labels change halfway."""
    half = READINGS // 2
    return [*port(during=range(half)), *port(during=range(half, READINGS), **labels)]


def bond(extra: float = 0.0) -> list[Row]:
    """A bond of two members; `extra` is the load of a third that is not there."""
    members = [port(f"Ethernet{49 + at}", 0.2 + 0.1 * at, 2 + at, 10**11) for at in range(2)]
    third = port("Ethernet51", extra, 9, 0)
    sums = [
        row | {"ifName": "bond0", "ifHCOutOctets": one + two, "speed_bps": 2 * CAPACITY}
        for row, one, two in (
            (a, a["ifHCOutOctets"] + b["ifHCOutOctets"], c["ifHCOutOctets"])
            for a, b, c in zip(*members, third, strict=True)
        )
    ]
    return [*members[0], *members[1], *sums]


CASES: dict[str, tuple[Callable[[], list[Row]], float, int, set[str]]] = {
    # Readings, utilization, number of ports, and reasons of readings that are left out.
    "one series": (port, 0.4, 1, set()),
    "a label changes": (lambda: two_halves(ifAlias="up to spine 1"), 0.4, 1, set()),
    "an index moves": (lambda: two_halves(ifIndex="513"), 0.4, 1, set()),
    "copies at once": (lambda: [*port(), *port(replica="b", shift=11)], 0.4, 1, {"replica"}),
    "three copies, one ends": (
        lambda: [*port(during=range(60)), *port(replica="b", shift=20), *port(replica="c", shift=40)],
        0.4,
        1,
        {"replica"},
    ),
    "copies, and a label changes": (
        lambda: [*two_halves(ifAlias="new"), *port(replica="b", shift=7)], 0.4, 1, {"replica"}
    ),
    "a bundle": (lambda: [*port(), *port("Ethernet50", 0.8, 2)], 0.6, 2, set()),
    "a bundle with equal loads": (lambda: [*port(), *port("Ethernet50")], 0.4, 2, set()),
    "a bundle of which a label changes": (
        lambda: [*two_halves(ifAlias="new"), *port("Ethernet50", 0.8, 2)], 0.6, 2, set()
    ),
    "a bond and its members": (bond, 0.25, 2, {"aggregate"}),
    "a bond with an unseen member": (lambda: bond(0.5), 0.5, 2, {"member"}),
    "a bond of one": (lambda: [*port(), *port("Port-Channel1", start=10**9)], 0.4, 1, {"aggregate"}),
    "a VLAN": (lambda: [*port(), *port("Ethernet49.100", 0.3, 1)], 0.4, 1, {"sub-interface"}),
}  # fmt: skip
CAPACITIES = {"a bond with an unseen member": 2 * CAPACITY}


def table_of(rows: list[Row], speeds: bool) -> pyarrow.Table:
    table = pyarrow.Table.from_pylist(rows)
    return table if speeds else table.drop_columns("speed_bps")


def check(samples: Samples, load: float, ports: int, reasons: set[str], capacity: int) -> None:
    table = windows(samples, 3_600_000).table.order_by("start_ms")
    rows = samples.engine.arrow(table).to_pylist()
    whole = [row for row in rows if row["covered_ms"] >= 3_300_000]
    assert whole
    for row in whole:
        assert row["capacity_bits"] / row["covered_ms"] * 1000 == pytest.approx(capacity, rel=0.02)
    mean = sum(row["ppm"] for row in whole) / len(whole) / 1e6
    assert mean == pytest.approx(load, rel=0.1)
    assert set(samples.discards.counts) - {"no-speed"} == reasons


@pytest.mark.parametrize("speeds", [True, False])
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("case", CASES)
def test_series_of_one_link_in_files(tmp_path: Path, case: str, form: str, speeds: bool) -> None:
    make, load, ports, reasons = CASES[case]
    table = table_of(make(), speeds)
    file = tmp_path / f"ports.{form}"
    if form == "csv":
        from pyarrow import csv

        csv.write_csv(table, file)
    else:
        parquet.write_table(table, file)
    (tmp_path / "map.yaml").write_text(MAP)
    # The cluster file has the capacity of all ports; a port's own speed is its own.
    cluster = {"racks": 1, "hosts_per_rack": 1, "nic": "10Gbps", "rack_link": f"{10 * ports}Gbps"}
    samples = read(Cluster(cluster), [file], map=tmp_path / "map.yaml", engine=Engine.duckdb(threads=1))
    check(samples, load, ports, reasons, ports * CAPACITY)


def openmetrics() -> Iterator[str]:
    """All cases as series of one server, each of a rack of its own."""
    for metric, column in (("ifHCOutOctets", "ifHCOutOctets"), ("SPEED", "speed_bps")):
        yield f"# TYPE {metric} gauge"
        for rack, (make, *_) in enumerate(CASES.values()):
            for row in make():
                names = ("ifName", "ifIndex", "ifAlias", "replica")
                labels = ",".join(f'{name}="{row[name]}"' for name in names)
                yield f'{metric}{{instance="tor-r{rack}",{labels}}} {row[column]} {row["t_s"]}'


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: Any, backfill: Callable[..., AbstractContextManager[str]]) -> Iterator[str]:
    with backfill(tmp_path_factory.mktemp("prometheus"), openmetrics()) as address:
        yield address


def test_series_of_one_link_in_prometheus(prometheus: str, tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(MAP)
    cluster = Cluster({"racks": len(CASES), "hosts_per_rack": 1, "nic": "10Gbps", "rack_link": "10Gbps"})
    end = T + STEP * (READINGS + 2)
    samples = read(
        cluster,
        prometheus=prometheus,
        map=tmp_path / "map.yaml",
        since="3h",
        now_ms=1000 * end,
        keep=tmp_path / "kept",
        cadence="60s",
    )
    table = windows(samples, 3_600_000).table
    rows = samples.engine.arrow(table.filter(table.covered_ms >= 3_300_000)).to_pylist()
    names = cluster.links()["name"].to_pylist()
    for rack, (case, (_, load, ports, _)) in enumerate(CASES.items()):
        found = [row for row in rows if names[row["link"]] == f"r{rack}:uplink"]
        assert found, case
        for row in found:
            capacity = row["capacity_bits"] / row["covered_ms"] * 1000
            assert capacity == pytest.approx(ports * CAPACITY, rel=0.02), case
        mean = sum(row["ppm"] for row in found) / len(found) / 1e6
        assert mean == pytest.approx(load, rel=0.1), case
    assert set(samples.discards.counts) == set().union(*(reasons for *_, reasons in CASES.values()))


@pytest.mark.parametrize(
    ("text", "load", "reasons"),
    [("", 0.25, set()), ("replica_labels: [replica]\n", 0.4, {"replica"})],
)
def test_labels_of_copies_may_be_named(tmp_path: Path, text: str, load: float, reasons: set[str]) -> None:
    # The values of these copies differ, so only the map tells that they are copies.
    rows = [*port(during=range(READINGS)), *port(replica="b", load=0.1, seed=5)]
    parquet.write_table(table_of(rows, True), tmp_path / "ports.parquet")
    (tmp_path / "map.yaml").write_text(MAP + text)
    samples = read(CLUSTER, [tmp_path / "ports.parquet"], map=tmp_path / "map.yaml")
    check(samples, load, 1, reasons, CAPACITY if reasons else 2 * CAPACITY)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12))
def test_the_number_of_ports_is_the_greatest_number_of_series_at_once(spans: list[tuple[int, int]]) -> None:
    runs = [
        Run(str(at), "out", 0, {}, 1, 1000 * start, 1000 * (start + length), "")
        for at, (start, length) in enumerate(spans)
    ]
    chains = beside(runs, 0)
    times = sorted({run.first_ms for run in runs})
    assert len(chains) == max(sum(run.first_ms <= time <= run.last_ms for run in runs) for time in times)
    for chain in chains:
        assert all(one.last_ms < other.first_ms for one, other in pairwise(chain))
