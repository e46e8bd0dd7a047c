"""Hotspots planted in telemetry are found exactly: link, start, length, cause."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leeward
from leeward.hotspots import Analysis, Settings, analyze
from leeward.hotspots.durations import hot_intervals, named_runs, runs
from leeward.telemetry import Engine, Samples, windows
from leeward.telemetry.synthetic import Plant, telemetry

MIN, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = 1_767_571_200_000
FABRIC = {
    "racks": [
        {"count": 2, "kind": "compute"},
        {"kind": "disk", "devices": [{"read": "1GB/s", "write": "1GB/s", "capacity": "100TB"}]},
        {"kind": "mixed", "devices": [{"read": "1GB/s", "write": "1GB/s", "capacity": "50TB"}]},
    ],
    "hosts_per_rack": 2,
    "nic": "10Gbps",
    "rack_link": "10Gbps",
    "cpus": 10,
    "pods": 2,
    "pod_link": "40Gbps",
}
PLANTS = (
    Plant("r0:uplink", START + 2 * HOUR, START + 2 * HOUR + 40 * MIN, 0.8),
    Plant("r2:downlink", START + 3 * HOUR, START + 9 * HOUR, 0.95),
    Plant("r3:uplink", START + DAY, START + 2 * DAY + 2 * HOUR, 0.9),
    # Half of the link's ports fail, and its load stays the same.
    Plant("r1:uplink", START + 30 * HOUR, START + 34 * HOUR, 0.48, 0.5),
    Plant("r1:uplink", START + 20 * HOUR, START + 30 * HOUR, 0.48),
    Plant("r1h0:ingress", START + 5 * HOUR, START + 5 * HOUR + 10 * MIN, 0.99),
    Plant("r0:downlink", START + 6 * HOUR, START + 7 * HOUR, 0.85),
    Plant("r0:downlink", START + 6 * HOUR + 20 * MIN, START + 6 * HOUR + 30 * MIN, seen=False),
)
TRUTH = {
    # Each link and start of a run has its length, its class and its cause.
    ("r0:uplink", 2 * HOUR): (40 * MIN, "minutes", "demand-growth"),
    ("r2:downlink", 3 * HOUR): (6 * HOUR, "hours", "demand-growth"),
    ("r3:uplink", DAY): (26 * HOUR, "days", "demand-growth"),
    ("r1:uplink", 30 * HOUR): (4 * HOUR, "hours", "capacity-loss"),
    ("r1h0:ingress", 5 * HOUR): (10 * MIN, "minutes", "demand-growth"),
    ("r0:downlink", 6 * HOUR): (20 * MIN, "minutes", "demand-growth"),
    ("r0:downlink", 6 * HOUR + 30 * MIN): (30 * MIN, "minutes", "demand-growth"),
}


@cache
def cluster() -> leeward.Cluster:
    return leeward.Cluster(FABRIC)


def samples(
    plants: Sequence[Plant] = (), engine: Engine | None = None, hours: float = 60, **options: Any
) -> Samples:
    engine = engine or Engine.duckdb(threads=1)
    options = {"cadence_ms": 5 * MIN} | options
    table = telemetry(
        cluster().links(), plants, start_ms=START, end_ms=START + round(hours * HOUR), **options
    )
    links, racks = cluster().links(), cluster().rack_table()
    return Samples(engine, engine.table(table), links, racks, options["cadence_ms"])


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyze(samples(PLANTS))


def by(table: pyarrow.Table, *keys: str) -> dict[Any, dict[str, Any]]:
    return {tuple(row[key] for key in keys) if keys[1:] else row[keys[0]]: row for row in table.to_pylist()}


def test_planted_runs_are_found_with_start_length_class_and_cause(analysis: Analysis) -> None:
    causes = by(analysis.causes.runs, "name", "start_ms")
    actual = {
        (row["name"], row["start_ms"] - START): (
            row["end_ms"] - row["start_ms"],
            row["class"],
            causes[row["name"], row["start_ms"]]["cause"],
        )
        for row in analysis.runs.to_pylist()
    }
    assert actual == TRUTH


def test_links_without_a_planted_run_are_not_hot(analysis: Analysis) -> None:
    hot = {row["name"] for row in analysis.links.to_pylist() if row["hot"]}
    assert hot == {name for name, _ in TRUTH}
    assert analysis.extent.hot == sum(length for length, _, _ in TRUTH.values()) // (5 * MIN)
    assert analysis.units.num_rows == 0


def test_rates_of_cross_sections_are_hot_over_observed_intervals(analysis: Analysis) -> None:
    rows = by(analysis.cross_sections, "cross_section", "direction")
    intervals = 60 * 12
    assert list(rows) == [
        (section, way) for section in ("host-ToR", "ToR-pod", "pod-core") for way in ("down", "up")
    ]
    up = rows["ToR-pod", "up"]
    assert (up["links"], up["hot_links"], up["intervals"]) == (4, 3, 4 * intervals)
    assert up["hot"] == (40 * MIN + 26 * HOUR + 4 * HOUR) // (5 * MIN)
    assert up["rate"] == up["hot"] / up["intervals"]
    # Two of r0's intervals were not observed.
    assert rows["ToR-pod", "down"]["intervals"] == 4 * intervals - 2
    assert rows["pod-core", "up"]["hot"] == 0


def test_hotspots_by_rack_kind_count_rack_links_only(analysis: Analysis) -> None:
    kinds = by(analysis.kinds, "kind")
    hot = {"compute": 8 + 48 + 10, "disk": 72, "mixed": 312}
    assert {kind: row["hot"] for kind, row in kinds.items()} == hot
    assert {kind: row["share"] for kind, row in kinds.items()} == {
        kind: count / sum(hot.values()) for kind, count in hot.items()
    }


def test_a_link_has_the_time_it_became_hot_and_its_utilization(analysis: Analysis) -> None:
    link = analysis.links.to_pylist()[0]
    assert (link["name"], link["kind"], link["hot"], link["runs"]) == ("r3:uplink", "mixed", 312, 1)
    assert (link["hot_since_ms"] - START, link["last_hot_ms"] - START) == (DAY, 2 * DAY + 2 * HOUR)
    assert (link["longest_ms"], link["p95_ppm"], link["most_ppm"]) == (26 * HOUR, 900_000, 900_000)


def test_an_unobserved_interval_ends_a_run_unless_it_is_bridged() -> None:
    every = windows(samples(PLANTS))
    for bridge, expected in ((0, [20, 30]), (1, [20, 30]), (2, [60])):
        chosen = Settings(bridge=bridge)
        actual = named_runs(every, runs(every, hot_intervals(every, chosen)), chosen).to_pylist()
        of_link = sorted((run["start_ms"], run) for run in actual if run["name"] == "r0:downlink")
        assert [(run["end_ms"] - run["start_ms"]) // MIN for _, run in of_link] == expected
        assert all(run["open"] for _, run in of_link) == (bridge < 2)


def test_runs_up_to_the_end_of_the_observation_are_open(analysis: Analysis) -> None:
    every = windows(samples([Plant("r0:uplink", START + HOUR, START + 4 * HOUR, 0.8)], hours=2))
    actual = named_runs(every, runs(every, hot_intervals(every, Settings())), Settings()).to_pylist()
    assert [run["open"] for run in actual] == [True]
    assert {row["name"] for row in analysis.runs.to_pylist() if row["open"]} == {"r0:downlink"}


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 8)
@given(
    st.lists(st.sampled_from(["hot", "cold", "unseen"]), min_size=1, max_size=60),
    st.integers(0, 3),
)
def test_runs_match_a_direct_count(states: list[str], bridge: int) -> None:
    plants = [
        Plant(
            "r0:uplink",
            START + at * 5 * MIN,
            START + (at + 1) * 5 * MIN,
            {"hot": 0.9, "cold": 0.2, "unseen": None}[state],
            seen=state != "unseen",
        )
        for at, state in enumerate(states)
    ]
    every = windows(samples(plants, hours=len(states) / 12))
    chosen = Settings(bridge=bridge)
    actual = named_runs(every, runs(every, hot_intervals(every, chosen)), chosen).to_pylist()
    spans = sorted(
        ((run["start_ms"] - START) // (5 * MIN), (run["end_ms"] - START) // (5 * MIN), run["intervals"])
        for run in actual
        if run["name"] == "r0:uplink"
    )
    assert spans == list(_by_hand(states, bridge))


def _by_hand(states: list[str], bridge: int) -> Iterator[tuple[int, int, int]]:
    first, last, count = None, 0, 0
    for at, state in enumerate([*states, "cold"]):
        if state == "hot":
            first = at if first is None else first
            last, count = at, count + 1
        elif first is not None and (state == "cold" or at - last > bridge):
            yield first, last + 1, count
            first, count = None, 0


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 25)
@given(st.integers(0, 2**32), st.integers(1, 99), st.sampled_from([1, 5, 15]))
def test_counts_add_up_and_percentiles_are_within_a_bin(seed: int, percent: int, minutes: int) -> None:
    chosen = Settings(hot_ppm=percent * 10_000, interval_ms=minutes * MIN, ahead_ms=minutes * MIN)
    source = samples(seed=seed, means=(0.0, 0.6), hours=3, cadence_ms=MIN)
    result = analyze(source, chosen)
    every = windows(source, minutes * MIN)
    ppm: dict[int, list[int]] = {}
    for row in source.engine.arrow(every.table).to_pylist():
        ppm.setdefault(row["link"], []).append(row["ppm"])
    names = cluster().links()["name"].to_pylist()
    for row in result.links.to_pylist():
        values = sorted(ppm[names.index(row["name"])])
        assert row["hot"] == sum(value > chosen.hot_ppm for value in values)
        for rank in (50, 95, 98):
            exact = values[-(-len(values) * rank // 100) - 1]
            assert row[f"p{rank}_ppm"] <= exact < row[f"p{rank}_ppm"] + 10_000
    assert sum(row["hot"] for row in result.cross_sections.to_pylist()) == result.extent.hot
    assert sum(row["intervals"] for row in result.utilization.to_pylist()) == result.extent.intervals
    assert sum(row["intervals"] for row in result.runs.to_pylist()) == result.extent.hot
    assert sum(row["intervals"] for row in result.causes.by_cause.to_pylist()) == result.extent.hot
    for row in result.durations.to_pylist():
        assert 0 < row["time_up_to"] <= 1
        assert 0 < row["up_to"] <= 1


@pytest.mark.parametrize(
    ("factor", "guess"),
    [(1.3, 8.0), (6.4, 8.0), (20.0, 1000.0), (640.0, 1000.0), (5000.0, 8000.0), (9000.0, None)],
)
def test_utilization_above_105_percent_is_reported_with_its_likely_factor(
    factor: float, guess: float | None
) -> None:
    # The planted link has `factor` times its load and capacity; its true capacity is restored below.
    source = samples([Plant("r0:uplink", START, START + 3 * HOUR, factor, factor)], hours=3)
    engine = source.engine
    capacities = {row["link"]: row["capacity_bps"] for row in cluster().links().to_pylist()}
    rows = engine.arrow(source.table).to_pylist()
    table = pyarrow.Table.from_pylist(
        [row | {"capacity_bps": capacities[row["link"]]} for row in rows], engine.arrow(source.table).schema
    )
    inflated = analyze(Samples(engine, engine.table(table), source.links, source.racks, 5 * MIN))
    (row,) = inflated.units.to_pylist()
    assert (row["name"], row["factor"], row["over"], row["intervals"]) == ("r0:uplink", guess, 36, 36)
    assert row["most_ppm"] == round(factor * 1e6)
    assert inflated.extent.hot == 36
    assert sum(one["doubtful"] for one in inflated.imbalance.unevenness.to_pylist()) == 36


def test_telemetry_without_observed_intervals_is_an_error() -> None:
    chosen = Settings(interval_ms=HOUR, coverage=1.0, ahead_ms=HOUR)
    with pytest.raises(
        leeward.InputError, match="no link was seen for long enough in any of 28 inter"
    ) as caught:
        analyze(samples(hours=0.9), chosen)
    assert "--coverage" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("invalid", "argument"),
    [
        ({"hot_ppm": 0}, "hot"),
        ({"hot_ppm": 1_050_000}, "hot"),
        ({"interval_ms": 10}, "interval"),
        ({"coverage": 1.5}, "coverage"),
        ({"bridge": -1}, "bridge"),
        ({"ahead_ms": 7 * MIN}, "ahead"),
        ({"train": 1.0}, "train"),
        ({"cpu_bps": float("nan")}, "cpu_bps"),
    ],
)
def test_invalid_settings_are_rejected_by_name(invalid: dict[str, Any], argument: str) -> None:
    with pytest.raises(leeward.InputError) as caught:
        Settings(**invalid)
    assert caught.value.file == argument


def test_spark_and_duckdb_give_the_same_analysis(spark: Engine) -> None:
    analyze_with: Callable[[Engine], Analysis] = lambda engine: analyze(  # noqa: E731
        samples(PLANTS, engine, cadence_ms=10 * MIN), Settings(interval_ms=10 * MIN, ahead_ms=10 * MIN)
    )
    ours, theirs = analyze_with(Engine.duckdb(threads=2)), analyze_with(spark)
    assert ours.summary() == theirs.summary()
    for name, table in ours.tables().items():
        assert table.to_pylist() == theirs.tables()[name].to_pylist(), name
