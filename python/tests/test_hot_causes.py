"""Causes of planted hotspots are found with evidence; hotspots without evidence have an unknown cause."""

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import leeward
from leeward._quantities import percent_text
from leeward.hotspots import Analysis, Settings, Tables, analyze
from leeward.hotspots.causes import _uplink_findings
from leeward.hotspots.causes.provision import provision
from leeward.hotspots.causes.tables import REQUESTS, SPLIT, TASKS, Column, read
from leeward.hotspots.causes.tasks import correlation
from leeward.hotspots.report.rows import sections
from leeward.telemetry import Discards, Engine, Samples
from leeward.telemetry.synthetic import Plant, telemetry

MIN, HOUR = 60_000, 3_600_000
START = 1_767_571_200_000
FABRIC: dict[str, Any] = {
    "racks": [
        {"count": 2, "kind": "compute"},
        {"kind": "disk", "devices": [{"read": "1GB/s", "write": "1GB/s", "capacity": "100TB"}]},
        {"kind": "mixed", "devices": [{"read": "1GB/s", "write": "1GB/s", "capacity": "50TB"}]},
    ],
    "hosts_per_rack": 2,
    "nic": "10Gbps",
    "rack_link": "10Gbps",
    "cpus": 10,
}
GIGA = 1e9


def samples_of(plants: list[Plant], fabric: dict[str, Any] = FABRIC) -> Samples:
    cluster = leeward.Cluster(fabric)
    engine = Engine.duckdb(threads=1)
    table = telemetry(
        cluster.links(), plants, start_ms=START, end_ms=START + 4 * HOUR, cadence_ms=5 * MIN, means=(0.2, 0.2)
    )
    return Samples(engine, engine.table(table), cluster.links(), cluster.rack_table(), 5 * MIN)


def analysis_of(
    plants: list[Plant],
    columns: tuple[Column, ...] = (),
    rows: list[dict[str, Any]] | None = None,
    fabric: dict[str, Any] = FABRIC,
    **chosen: Any,
) -> Analysis:
    samples = samples_of(plants, fabric)
    tables = Tables()
    if rows is not None:
        given = samples.engine.table(pyarrow.Table.from_pylist(rows))
        name = {SPLIT: "split", TASKS: "tasks", REQUESTS: "requests"}[columns]
        tables = Tables(**{name: given})
    return analyze(samples, Settings(**chosen), tables)


def causes(analysis: Analysis) -> set[tuple[str, str]]:
    return {(row["subject"], row["cause"]) for row in analysis.causes.findings.to_pylist()}


CHANGES: dict[str, tuple[tuple[float, float] | None, tuple[float, float], str]] = {
    # Load and capacity before the hotspot, load and capacity during it, and the cause.
    "r0:uplink": ((0.48, 1.0), (0.48, 0.5), "capacity-loss"),
    "r1:uplink": ((0.4, 1.0), (0.85, 1.0), "demand-growth"),
    "r2:uplink": ((0.3, 1.0), (0.48, 0.5), "both"),
    "r3:uplink": ((0.72, 1.0), (0.78, 1.0), "demand"),
    "r4:uplink": ((0.72, 1.0), (0.78, 0.8), "both"),
    "r5:uplink": (None, (0.8, 1.0), "unknown"),
}


@pytest.fixture(scope="module")
def capacity_changes() -> Analysis:
    plants = []
    for name, (before, during, _) in CHANGES.items():
        plants.append(Plant(name, START + 2 * HOUR, START + 3 * HOUR, *during))
        if before is None:
            plants.append(Plant(name, START, START + 2 * HOUR, seen=False))
        else:
            plants.append(Plant(name, START, START + 2 * HOUR, *before))
    return analysis_of(plants, fabric=FABRIC | {"racks": [{"count": 6, "kind": "compute"}]})


@pytest.mark.parametrize("name", CHANGES)
def test_capacity_loss_is_distinguished_from_demand_growth(capacity_changes: Analysis, name: str) -> None:
    *_, cause = CHANGES[name]
    last = [row for row in capacity_changes.causes.runs.to_pylist() if row["name"] == name][-1]
    assert (last["start_ms"], last["cause"]) == (START + 2 * HOUR, cause)
    # The evidence of each cause has its numbers.
    (row,) = [
        row
        for row in capacity_changes.causes.findings.to_pylist()
        if (row["subject"], row["cause"]) == (name, cause)
    ]
    assert "Gb/s" in row["evidence"]


def test_evidence_of_a_capacity_loss_gives_the_remaining_capacity() -> None:
    result = analysis_of(
        [
            Plant("r0:uplink", START + 2 * HOUR, START + 3 * HOUR, 0.48, 0.5),
            Plant("r0:uplink", START, START + 2 * HOUR, 0.48),
        ]
    )
    (row,) = result.causes.findings.to_pylist()
    assert row["evidence"] == (
        "capacity 5 Gb/s, 50 % of the earlier 10 Gb/s;"
        " load 4.8 Gb/s, 1.00 times the earlier maximum of 4.8 Gb/s"
    )


SPLITS = {
    # Load of storage and of compute in Gb/s, and the class that is above its share.
    "r3": (3.0, 6.0, "both"),
    "r4": (4.0, 4.9, "storage"),
    "r5": (2.4, 6.0, "compute"),
    "r6": (2.4, 4.9, "neither"),
}


@pytest.fixture(scope="module")
def split() -> Analysis:
    start_ms = START + 2 * HOUR
    rows = [
        {"rack": rack, "t_ms": start_ms + n * MIN, "direction": "up"}
        | {"storage_bps": storage * GIGA, "compute_bps": compute * GIGA}
        for rack, (storage, compute, _) in SPLITS.items()
        for n in range(1, 31)
    ]
    *others, mixed = FABRIC["racks"]
    fabric = FABRIC | {"racks": [*others, *[mixed] * len(SPLITS)]}
    plants = [Plant(f"{rack}:uplink", start_ms, start_ms + HOUR, 0.9) for rack in SPLITS]
    return analysis_of(plants, SPLIT, rows, fabric)


# The guideline is 0.5 Gb/s per processor and 0.05 Gb/s per terabyte: a third of each 10 Gb/s is for disks.
@pytest.mark.parametrize("rack", SPLITS)
def test_hotspots_of_mixed_racks_belong_to_the_class_above_its_share(split: Analysis, rack: str) -> None:
    storage, _, owner = SPLITS[rack]
    (up,) = [row for row in split.causes.split.to_pylist() if (row["rack"], row["direction"]) == (rack, "up")]
    assert up["storage_share"] == pytest.approx(1 / 3)
    # The table covers half of the hour.
    assert {name: up[name] for name in ("storage", "compute", "both", "neither", "unknown")} == {
        name: 6 if name in (owner, "unknown") else 0
        for name in ("storage", "compute", "both", "neither", "unknown")
    }
    assert up["storage_kbits"] == pytest.approx(storage * 1e6 * 1800)
    named = {"both": "storage-and-compute"}.get(owner, owner)
    assert ((rack, named) in causes(split)) == (owner != "neither")


def test_hotspots_without_a_split_table_are_of_unknown_class() -> None:
    result = analysis_of([Plant("r3:uplink", START, START + HOUR, 0.9)])
    (row,) = result.causes.split.to_pylist()
    assert (row["unknown"], row["storage"], row["compute"], row["neither"]) == (12, 0, 0, 0)


def test_uplink_classes_follow_the_given_guideline_within_a_tenth() -> None:
    samples = samples_of([Plant("r2:uplink", START, START + HOUR, 0.9)])
    links = analyze(samples, Settings()).links
    # r2 has 0.05 and r3 0.1 Gb/s for a terabyte.
    for guideline, classes in (
        (0.05, ("Medium-Uplink", "High-Uplink")),
        (0.0549, ("Medium-Uplink", "High-Uplink")),
        (0.056, ("Low-Uplink", "High-Uplink")),
        (0.1, ("Low-Uplink", "Medium-Uplink")),
        (0.2, ("Low-Uplink", "Low-Uplink")),
    ):
        fleet = provision(samples, Settings(disk_bps_per_tb=guideline * GIGA))
        rows = {row["rack"]: row for row in fleet.racks.to_pylist()}
        assert (rows["r2"]["class"], rows["r3"]["class"]) == classes
        assert rows["r0"]["class"] is None
        named = {(row["subject"], row["cause"]) for row in _uplink_findings(links, fleet)}
        assert (("r2", "low-uplink") in named) == (classes[0] == "Low-Uplink")


def test_requests_are_matched_with_the_utilization_of_their_direction() -> None:
    start_ms = START + HOUR
    rows = [
        {"rack": rack, "t_ms": start_ms + MIN, "requests": float(count), "operation": operation}
        for rack, count, operation in (
            ("r2", 30, "read"),
            ("r3", 10, "read"),
            ("r2", 5, "write"),
            ("r2", 7, "any"),
            ("r0", 2, "read"),
        )
    ] + [{"rack": "r2", "t_ms": START + 90 * HOUR, "requests": 4.0, "operation": "read"}]
    plants = [
        Plant("r2:uplink", start_ms, start_ms + HOUR, 0.925),
        Plant("r3:uplink", start_ms, start_ms + HOUR, 0.925),
        Plant("r0:uplink", start_ms, start_ms + HOUR, 0.925),
        Plant("r2:downlink", start_ms, start_ms + HOUR, 0.33),
    ]
    result = analysis_of(plants, REQUESTS, rows, disk_bps_per_tb=0.1 * GIGA)
    assert result.causes.served is not None
    assert [
        (row["operation"], row["percent"], row["class"], row["requests"], row["share"])
        for row in result.causes.served.to_pylist()
    ] == [
        ("any", 90, "Low-Uplink", 7, 1.0),
        ("read", -5, "Low-Uplink", 4, 1.0),
        ("read", 90, "Low-Uplink", 30, 30 / 42),
        ("read", 90, "Medium-Uplink", 10, 10 / 42),
        ("read", 90, "unknown", 2, 2 / 42),
        ("write", 30, "Low-Uplink", 5, 1.0),
    ]
    # A rack has 96 intervals in both directions together; twelve of them, an hour of its uplink, are hot.
    (table,) = (one for one in sections(result, 10) if one.title == "Do uplinks fit their disks?")
    assert table.rows == [
        (
            "Medium-Uplink",
            "1",
            "100 %",
            "100 %",
            "12",
            "12.5 %",
            percent_text(10 / 58),
            percent_text(10 / 49),
        ),
        (
            "Low-Uplink",
            "1",
            "50 %",
            "50 %",
            "12",
            "12.5 %",
            percent_text(46 / 58),
            percent_text(37 / 49),
        ),
    ]
    assert table.more[0].startswith("the guideline: 100 Mbps of uplink for a terabyte of disks")


def tasks_of(spread: dict[str, dict[str, tuple[int, float, float]]]) -> list[dict[str, Any]]:
    """Rows of each job and rack at four times; `spread` has its tasks, its processors and its Gb/s sent."""
    return [
        {"rack": rack, "job": job, "t_ms": START + hour * HOUR, "tasks": float(tasks), "cpus": cpus}
        | {"tx_bps": rate * GIGA, "rx_bps": 0.0}
        for job, racks in spread.items()
        for rack, (tasks, cpus, rate) in racks.items()
        for hour in range(1, 5)
    ]


def test_a_job_concentrated_on_hot_racks_is_named() -> None:
    web = dict.fromkeys(("r0", "r1", "r3"), (2, 4.0, 0.4))
    packed = tasks_of({"web": web, "batch": web, "io": {"r0": (8, 8.0, 7.0)}})
    result = analysis_of([Plant("r0:uplink", START + HOUR, START + 3 * HOUR, 0.9)], TASKS, packed)
    tasks = result.causes.tasks
    assert tasks is not None
    jobs = {row["job"]: row for row in tasks.jobs.to_pylist()}
    # The job has 0.875 Gb/s per processor; the median job has 0.1.
    assert (jobs["io"]["bps_per_cpu"], jobs["io"]["normalized"]) == (0.875 * GIGA, 8.75)
    assert [row["job"] for row in tasks.jobs.to_pylist() if row["intensive"]] == ["io"]
    (first, *others) = tasks.concentrated.to_pylist()
    assert (first["job"], first["concentrated"], first["share"], first["expected"]) == ("io", True, 1.0, 0.5)
    assert (first["hot_racks"], first["idle_racks"], first["idle_without"]) == (1, 1, 1)
    assert not any(row["concentrated"] for row in others)
    racks = {row["rack"]: row for row in tasks.racks.to_pylist()}
    assert (racks["r0"]["intensive_tasks"], racks["r0"]["per_gbps"], racks["r1"]["per_gbps"]) == (
        8.0,
        0.8,
        0.0,
    )
    assert {("io", "concentration"), ("r0", "network-intensive-tasks")} <= causes(result)


def test_a_job_spread_over_racks_is_not_a_concentration() -> None:
    even = dict.fromkeys(("r0", "r1"), (4, 4.0, 3.0))
    result = analysis_of(
        [Plant("r0:uplink", START + HOUR, START + 3 * HOUR, 0.9)], TASKS, tasks_of({"io": even})
    )
    assert not any(cause == "concentration" for _, cause in causes(result))


def test_a_correlation_has_an_interval_or_is_none() -> None:
    r, low, high = correlation([1, 2, 3, 4, 5], [2, 4, 5, 4, 5]) or (0, 0, 0)
    assert r == pytest.approx(0.7745967)
    assert low < r < high
    assert correlation([1, 2, 3], [1, 2, 3]) is None
    assert correlation([1, 1, 1, 1], [1, 2, 3, 4]) is None
    assert correlation([1, 2, 3, 4], [2, 4, 6, 8]) == pytest.approx((1, 1, 1))


GOOD = "t_s,rack,storage_bps,compute_bps\n100,r3,1e9,2e9\n"


def test_invalid_rows_are_counted_by_reason(tmp_path: Path) -> None:
    path = tmp_path / "split.csv"
    path.write_text(
        GOOD + "100,r9,1,2\n100,r3,-1,2\n100,r3,,2\n100,r3,nan,2\n,r3,1,2\n-5,r3,1,2\n100,r3,1e18,2\n"
    )
    discards, engine = Discards(), Engine.duckdb()
    kept = engine.arrow(read(engine, path, SPLIT, ["r3"], discards)).to_pylist()
    assert kept == [
        {"t_ms": 100_000, "rack": "r3", "storage_bps": 1e9, "compute_bps": 2e9, "direction": "both"}
    ]
    assert discards.counts == {"no-rack": 1, "negative": 1, "not-a-number": 4, "too-large": 1}
    assert discards.examples["no-rack"] == ["split.csv: rack r9 at 100000"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_s,rack,storage_bps\n1,r3,2\n", "compute_bps: there is no such column"),
        ("rack,storage_bps,compute_bps\nr3,1,2\n", "t_s: there is no such column"),
        ("t_s,rack,storage_bps,compute_bps\n1,r3,fast,2\n", r"no row can be used \(not-a-number: 1\)"),
        ("", "empty; expected a header"),
        (None, "no such file"),
    ],
)
def test_an_unreadable_table_is_rejected_with_the_reason(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "split.csv"
    if text is not None:
        path.write_text(text)
    engine = Engine.duckdb()
    with pytest.raises(leeward.InputError, match=message) as caught:
        read(engine, path, SPLIT, ["r3"], Discards())
    assert caught.value.file == str(path)


def test_tasks_outside_the_time_of_the_telemetry_are_discarded_and_counted() -> None:
    def task_row(at: int, job: str) -> dict[str, Any]:
        return {"rack": "r0", "t_ms": at, "job": job, "cpus": 1, "tx_bps": GIGA, "rx_bps": GIGA, "tasks": 1}

    plants = [Plant("r0:uplink", START, START + HOUR, 0.9)]
    result = analysis_of(
        plants, TASKS, [task_row(START + HOUR, "now"), task_row(START - 8760 * HOUR, "a year ago")]
    )
    assert result.causes.tasks is not None
    assert result.causes.tasks.jobs["job"].to_pylist() == ["now"]
    assert result.discards.counts == {"outside": 1}
    with pytest.raises(
        leeward.InputError,
        match=r"no row is in the time of the telemetry, .*: 1 rows, 2025-01-05T00:00:00Z to ",
    ):
        analysis_of(plants, TASKS, [task_row(START - 8760 * HOUR, "a year ago")])


def test_a_table_may_be_parquet(tmp_path: Path) -> None:
    path = tmp_path / "tasks.parquet"
    rows = [{"t_ms": 5, "rack": "r3", "job": "a", "cpus": 2, "tx_bps": 1, "rx_bps": 3}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    engine = Engine.duckdb()
    assert engine.arrow(read(engine, path, TASKS, ["r3"], Discards())).to_pylist() == [
        rows[0] | {"cpus": 2.0, "tx_bps": 1.0, "rx_bps": 3.0, "tasks": 1.0}
    ]
