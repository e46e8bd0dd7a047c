"""Plans that add ports to busy racks or move their work, and simulations of these plans."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from leeward import Cluster, InputError
from leeward.plan.planning import Plan, Settings, plan
from leeward.plan.ports import ports
from leeward.plan.series import Numbers, Series, loads, nearest_rank
from leeward.plan.shift import LinkLoads, Rack, shift
from leeward.plan.simulate import Evaluator, simulate
from leeward.telemetry import Engine, Samples, windows
from leeward.telemetry.samples import COLUMNS

Run = Callable[..., Any]
GB = 10**9
MINUTES = 300_000
START = 1_750_000_000_000 // MINUTES * MINUTES
EVALUATOR = Evaluator(750_000, 98_000)


def cluster(racks: int = 3, pods: int = 0, link: str = "10Gbps") -> Cluster:
    given_pods = {"pods": pods, "pod_link": "40Gbps"} if pods else {}
    return Cluster({"racks": racks, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": link} | given_pods)


def samples(
    network: Cluster,
    gbps: Mapping[str, Sequence[float | None]],
    capacities: Mapping[str, Sequence[float]] | None = None,
    engine: Engine | None = None,
) -> Samples:
    """Samples of each link, one for each interval; None is a missing sample."""
    links = network.links()
    links_by_name = {row["name"]: row for row in links.to_pylist()}
    rows = []
    for name, series in gbps.items():
        capacity = (capacities or {}).get(name, [links_by_name[name]["capacity_bps"] / GB] * len(series))
        for number, (rate, most) in enumerate(zip(series, capacity, strict=True)):
            if rate is not None:
                t_ms = START + (number + 1) * MINUTES
                bits = round(rate * GB) * 300
                rows.append((links_by_name[name]["link"], t_ms, MINUTES, bits, round(most * GB)))
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    table = pyarrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    engine = engine or Engine.duckdb(threads=1)
    return Samples(engine, engine.table(table), links, network.rack_table(), MINUTES)


def both_directions(gbps: Mapping[str, Sequence[float | None]]) -> dict[str, Sequence[float | None]]:
    """Gives both links of a rack the same series."""
    return {f"{rack}:{way}": series for rack, series in gbps.items() for way in ("uplink", "downlink")}


def series(name: str, gbps: Sequence[float], capacity: float = 10.0) -> Series:
    load = numpy.asarray(gbps) * GB
    return Series(name, load, numpy.full(len(load), capacity * GB), round(capacity * GB))


loads_gbps = st.lists(st.integers(0, 1000).map(lambda hundredths: hundredths / 100), min_size=1, max_size=60)


@pytest.mark.hypothesis
@given(loads_gbps, st.integers(1, 100_000))
def test_a_percentile_is_the_nearest_rank(values: list[float], thousandths: int) -> None:
    actual = nearest_rank(numpy.asarray(values), thousandths)
    need = thousandths * len(values)
    assert sum(value <= actual for value in values) * 100_000 >= need
    assert sum(value < actual for value in values) * 100_000 < need


@pytest.mark.hypothesis
@given(loads_gbps, st.sampled_from([1, 10, 25, 3]), st.integers(100_000, 1_000_000))
def test_planned_ports_suffice_and_one_fewer_does_not(gbps: list[float], speed: int, threshold: int) -> None:
    link = series("r0:uplink", gbps)
    wanted = ports([link], threshold, 98_000, speed * GB)
    load = round(nearest_rank(link.load_bps, 98_000))
    assert wanted.needed * speed * GB * threshold >= load * 10**6
    assert wanted.needed == 0 or (wanted.needed - 1) * speed * GB * threshold < load * 10**6


@pytest.mark.parametrize(
    ("capacity", "speed"),
    [(400, 100), (800, 200), (40, 10), (20, 10), (100, 25), (10, 10), (80, 40), (320, 40), (7, 7)],
)
def test_an_assumed_port_speed_is_a_common_one(capacity: int, speed: int) -> None:
    wanted = ports([series("r0:uplink", [1.0], capacity)], 750_000, 98_000, None)
    assert (wanted.speed_bps, wanted.assumed) == (speed * GB, True)


def test_lost_ports_are_counted_apart_from_added_ones() -> None:
    link = Series("r0:uplink", numpy.full(4, 18.0 * GB), numpy.full(4, 20.0 * GB), 40 * GB)
    wanted = ports([link], 750_000, 98_000, 10 * GB)
    assert (wanted.now, wanted.lost, wanted.needed, wanted.added) == (2, 2, 3, 1)


@pytest.mark.hypothesis
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 2), min_size=1, max_size=60), st.integers(1, 100_000))
def test_a_percentile_with_added_work_is_that_of_the_summed_load(
    pairs: list[tuple[int, int]], thousandths: int
) -> None:
    link, more = series("r0:uplink", [load for load, _ in pairs]), numpy.asarray([2.0 * GB])
    added = numpy.asarray([one for _, one in pairs]) * more
    both = nearest_rank(link.load_bps + added, thousandths) / link.now_bps
    assert LinkLoads(750_000, thousandths).percentile(link, added) == both


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Rack]:
    """Racks in two pods, the first over the threshold."""
    length = draw(st.integers(5, 20))
    rates = st.lists(st.integers(0, 100), min_size=length, max_size=length)
    pods = {
        pod: {way: series(f"{pod}:{way}", [12.0] * length, 40) for way in ("uplink", "downlink")}
        for pod in ("p0", "p1")
    }
    document = {}
    for number in range(draw(st.integers(2, 6))):
        name, pod = f"r{number}", f"p{number % 2}"
        high = 100 if number == 0 else draw(st.sampled_from([10, 30, 70]))
        links = {
            way: series(f"{name}:{way}", [high * share / 1000 for share in draw(rates)])
            for way in ("uplink", "downlink")
        }
        document[name] = Rack(name, "mixed", pod, links, pods[pod])
    return document


@pytest.mark.hypothesis
@given(fleets())
def test_a_shift_conserves_work_and_overloads_no_rack(racks: dict[str, Rack]) -> None:
    carried = LinkLoads(750_000, 98_000)
    targets = {
        name: rack
        for name, rack in racks.items()
        if name != "r0" and all(carried.percentile(link) <= 0.75 for link in rack.links.values())
    }
    moved = shift(racks["r0"], targets, carried)
    assert moved.left >= 0
    assert set(moved.to) <= targets.keys()
    for way in ("uplink", "downlink"):
        before = sum(rack.links[way].load_bps for rack in racks.values())
        after = sum(carried.of(rack.links[way]) for rack in racks.values())
        assert numpy.allclose(before, after, rtol=1e-12)
    for name in moved.to:
        assert all(carried.percentile(link) <= 0.75 for link in targets[name].links.values())
    if moved.left == 0:
        assert all(carried.percentile(link) <= 0.75 * (1 + 1e-12) for link in racks["r0"].links.values())
        if moved.percent:
            link_of = racks["r0"].links.values()
            share = 1 - (moved.percent - 1) / 100
            assert any(share * nearest_rank(link.load_bps, 98_000) > 0.75 * 10 * GB for link in link_of)


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 4, phases=(Phase.explicit, Phase.generate))
@given(
    st.lists(st.lists(st.none() | st.integers(0, 1000), min_size=6, max_size=6), min_size=2, max_size=2),
    st.lists(st.sampled_from([2, 5, 10]), min_size=6, max_size=6),
)
def test_the_simulated_outcome_before_a_change_matches_the_measurement(
    hundredths: list[list[int | None]], capacities: list[float]
) -> None:
    # Loads are at most the capacity of their link, because the simulator drops any load above it.
    rates: list[list[float | None]] = [
        [
            None if value is None else value * capacity / 1000
            for value, capacity in zip(row, capacities, strict=True)
        ]
        for row in hundredths
    ]
    gbps = {"r0:uplink": rates[0], "r1:downlink": rates[1]}
    changing: dict[str, Sequence[float]] = {"r0:uplink": capacities, "r1:downlink": capacities}
    every = windows(samples(cluster(), gbps, changing), MINUTES)
    names = every.samples.links["name"].to_pylist()
    measured = loads(every, [names.index(name) for name in gbps])
    racks = {
        name.split(":")[0]: Rack(name.split(":")[0], "mixed", None, {name.split(":")[1]: link}, {})
        for name, link in measured.links.items()
    }
    actual = simulate(racks, measured, {}, None)
    for name, link in measured.links.items():
        assert numpy.allclose(actual[name], link.utilization, rtol=1e-9, atol=1e-9)
        assert EVALUATOR.evaluate(actual[name]) == EVALUATOR.evaluate(link.utilization)


BUSY: list[float | None] = [*[9.0] * 10, *[2.0] * 10]
QUIET: list[float | None] = [1.0] * 20


def test_a_busy_rack_gets_ports_and_a_shift_and_both_cool_it() -> None:
    result = plan(
        samples(cluster(), both_directions({"r0": BUSY, "r1": QUIET, "r2": QUIET})),
        Settings(port_bps=10 * GB),
    )
    assert (result.racks, result.over, result.ports) == (3, 1, 1)
    (one,) = result.planned
    assert (one.rack, one.ports.now, one.ports.needed) == ("r0", 1, 2)
    # The load has to fall from 9 to 7.5 Gb/s, which is a sixth of the work, or 17 %.
    assert one.shift.percent == 17
    assert sum(one.shift.to.values()) == 17
    assert set(one.shift.to) == {"r1", "r2"}
    runs = one.outcomes["r0:uplink"]
    assert [runs[name].hot for name in ("before", "ports", "shift")] == [10, 0, 0]
    assert runs["before"].most == pytest.approx(0.9)
    assert runs["ports"].most == pytest.approx(0.45)
    assert runs["shift"].most == pytest.approx(0.9 * 0.83)
    taken = result.taking["r1:uplink"]
    assert taken["before"].most == pytest.approx(0.1)
    assert taken["shift"].most == pytest.approx(0.1 + 0.009 * 10 * one.shift.to["r1"] / 10)


def test_the_plan_is_empty_if_no_rack_is_too_busy() -> None:
    result = plan(samples(cluster(), both_directions({"r0": QUIET, "r1": QUIET})))
    assert (result.racks, result.over, result.planned, result.taking) == (2, 0, [], {})


def test_work_without_a_target_rack_is_reported() -> None:
    full: list[float | None] = [7.4] * 20
    result = plan(samples(cluster(), both_directions({"r0": BUSY, "r1": full, "r2": full})))
    (one,) = result.planned
    assert (one.shift.percent, one.shift.left, one.shift.to) == (17, 17 - len(one.shift.to), one.shift.to)
    assert sum(one.shift.to.values()) <= 2


def test_work_of_disk_racks_moves_only_to_disk_and_mixed_racks() -> None:
    kinds = ["disk", "compute", "mixed"]
    racks = [{"name": f"r{number}", "kind": kind} for number, kind in enumerate(kinds)]
    network = Cluster({"racks": racks, "hosts_per_rack": 1, "nic": "10Gbps", "rack_link": "10Gbps"})
    result = plan(samples(network, both_directions({"r0": BUSY, "r1": QUIET, "r2": QUIET})))
    assert result.planned[0].shift.to == {"r2": 17}


def test_a_rack_without_observations_at_those_times_takes_no_work() -> None:
    unseen: list[float | None] = [None] * 11 + [1.0] * 9
    result = plan(samples(cluster(), both_directions({"r0": BUSY, "r1": unseen, "r2": QUIET})))
    assert result.planned[0].shift.to == {"r2": 17}


def test_work_that_leaves_a_pod_crosses_the_links_of_both() -> None:
    racks = both_directions({"r0": BUSY, "r1": [7.4] * 20, "r2": QUIET, "r3": QUIET})
    network = cluster(racks=4, pods=2)
    result = plan(samples(network, racks | both_directions({"p0": [20.0] * 20, "p1": [4.0] * 20})))
    (one,) = result.planned
    outside = one.shift.to.get("r2", 0) + one.shift.to.get("r3", 0)
    assert outside == 17
    assert result.taking["p1:uplink"]["shift"].most == pytest.approx(0.1 + outside * 0.09 / 40)
    assert result.taking["p0:uplink"]["shift"].most == pytest.approx(0.5 - outside * 0.02 / 40)


def test_restored_capacity_needs_no_ports() -> None:
    capacity = {f"r0:{way}": [5.0] * 10 + [10.0] * 10 for way in ("uplink", "downlink")}
    gbps = both_directions({"r0": [4.5] * 20, "r1": QUIET})
    result = plan(samples(cluster(), gbps, capacity), Settings(port_bps=5 * GB))
    (one,) = result.planned
    assert (one.ports.added, one.ports.lost, one.shift.percent) == (0, 0, 0)
    assert one.outcomes["r0:uplink"]["before"].hot == 10
    assert one.outcomes["r0:uplink"]["ports"].hot == 0


def test_both_engines_give_the_same_plan(spark: Engine) -> None:
    gbps = both_directions({"r0": BUSY, "r1": QUIET, "r2": [7.0] * 20})
    records = [plan(samples(cluster(), gbps, engine=engine)).record() for engine in (Engine.duckdb(), spark)]
    assert records[0] == records[1]


def test_telemetry_without_rack_links_is_an_error() -> None:
    with pytest.raises(InputError, match="no uplink or downlink of a rack was seen"):
        plan(samples(cluster(), {"r0h0:egress": QUIET}))


@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        ({"percentile": 0.0}, "percentile: `0`"),
        ({"percentile": 101.0}, "percentile: `101`"),
        ({"percentile": float("nan")}, "percentile: `nan`"),
        ({"threshold_ppm": 0}, "threshold: `0%`"),
        ({"threshold_ppm": 1_000_001}, "threshold: `100"),
        ({"port_bps": 0}, "port: `0`"),
        ({"interval_ms": 999}, "interval: `999 ms`: expected from 1 s to 1 d"),
        ({"coverage": 1.1}, "coverage: `1.1`: expected a share from 0 to 1"),
    ],
)
def test_invalid_settings_are_rejected(invalid: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError) as raised:
        Settings(**invalid)
    assert str(raised.value).startswith(error)


def write_files(folder: Path) -> list[str]:
    """A cluster file and telemetry for the command."""
    (folder / "racks.yaml").write_text(
        json.dumps({"racks": 3, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "10Gbps"})
    )
    rows: dict[str, list[Any]] = {"t_s": [], "link": [], "load_bps": []}
    for name, rates in both_directions({"r0": BUSY, "r1": QUIET, "r2": QUIET}).items():
        for number, rate in enumerate(rates):
            rows["t_s"].append((START + (number + 1) * MINUTES) // 1000)
            rows["link"].append(name)
            rows["load_bps"].append((rate or 0.0) * GB)
    parquet.write_table(pyarrow.table(rows), folder / "day.parquet")
    return ["plan", "--cluster", "racks.yaml", "--telemetry", "day.parquet", "--cadence", "5min"]


def test_the_command_prints_a_table_and_json(run: Run, tmp_path: Path) -> None:
    command = write_files(tmp_path)
    result = run(*command, "--port-rate", "10Gbps")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "1 of 3 racks over 75 % in p98; 1 ports to add"
    assert lines[3].split()[:7] == ["r0", "uplink", "90", "%", "10", "+1", "x"]
    assert "not modelled: demand that grows into new capacity" in result.stderr
    record = json.loads(run(*command, "-o", "json").stdout)
    assert record["planned"][0]["links"]["r0:uplink"]["before"]["hot"] == 10
    assert record["planned"][0]["shift"]["left"] == 0


def test_json_and_tables_agree(run: Run, tmp_path: Path) -> None:
    result = run(*write_files(tmp_path), "--port-rate", "10Gbps", "--out", "plan", "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    tables = {path.stem: parquet.read_table(path).to_pylist() for path in tmp_path.glob("plan/*.parquet")}
    (rack,) = document["planned"]
    assert [row | {"rack": "r0"} for row in tables["racks"]] == tables["racks"]
    assert {name: tables["racks"][0][name] for name in rack["ports"]} == rack["ports"]
    assert (tables["racks"][0]["shift"], tables["racks"][0]["left"]) == (17, 0)
    assert {row["to"]: row["percent"] for row in tables["shifts"]} == rack["shift"]["to"]
    outcomes = {(row.pop("link"), row.pop("rack"), row.pop("run")): row for row in tables["links"]}
    assert outcomes == {
        (link, name, run): outcome
        for name, links in (("r0", rack["links"]), (None, document["taking"]))
        for link, runs in links.items()
        for run, outcome in runs.items()
    }
    summary = json.loads((tmp_path / "plan" / "summary.json").read_text())
    assert summary.pop("analysis") == "plan"
    assert summary.pop("tables") == sorted(tables)
    assert summary == {name: document[name] for name in summary}
    assert document.keys() - summary.keys() == {"planned", "taking"}


def test_interval_length_and_coverage_are_settings(run: Run, tmp_path: Path) -> None:
    command = [*write_files(tmp_path), "--interval", "10min", "-o", "json"]
    record = json.loads(run(*command).stdout)
    assert record["planned"][0]["links"]["r0:uplink"]["before"]["intervals"] == 11
    # The first and the last interval are observed for half of their length.
    strict = json.loads(run(*command, "--coverage", "60%").stdout)
    assert strict["settings"]["coverage"] == 0.6
    assert strict["planned"][0]["links"]["r0:uplink"]["before"]["intervals"] == 9


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--hot", "75"], "--hot: `75`: expected a percentage, such as 75%"),
        (["--percentile", "0"], "--percentile: `0`: expected a number above 0"),
        (["--interval", "5"], "--interval: `5`"),
        (["--port-rate", "10"], "--port-rate: `10`"),
        (["--coverage", "5"], "--coverage: `5`: expected a percentage, such as 75%"),
        (["--coverage", "101%"], "--coverage: `1.01`: expected a share from 0 to 1"),
    ],
)
def test_invalid_options_are_named(run: Run, tmp_path: Path, options: list[str], error: str) -> None:
    result = run(*write_files(tmp_path), *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"error: {error}" in result.stderr


def outcomes(result: Plan) -> Numbers:
    return numpy.asarray([run.percentile for runs in result.taking.values() for run in runs.values()])


def test_the_same_telemetry_gives_the_same_plan() -> None:
    gbps = both_directions({"r0": BUSY, "r1": QUIET, "r2": QUIET})
    first, second = (plan(samples(cluster(), gbps)) for _ in range(2))
    assert first.record() == second.record()
    assert (outcomes(first) == outcomes(second)).all()
