"""The thesis' figures on real disks: scenarios, rows from measurements of this file, and a short run."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from leeward._quantities import read_rate
from leeward.errors import InputError
from leeward_reproduce.hdfs.usage import RejectedRunError
from leeward_reproduce.perform import reproduce
from leeward_reproduce.real.results import RESULT
from leeward_reproduce.real.scenario_files import content_hash, read_csv
from leeward_reproduce.rows import Row
from leeward_reproduce.slo.real import (
    bed,
    bench,
    calibration,
    chapter3,
    chapter5,
    disks,
    measures,
    overhead,
    parts,
    perform,
    quantities,
    run,
    scenario,
    simulator,
    traffic,
    uncached,
)
from leeward_reproduce.slo.real.bench import Outcome
from leeward_reproduce.slo.real.cases import FIFO, PM, Case, Member
from leeward_reproduce.slo.real.figures import Results
from leeward_reproduce.slo.real.measures import Measures
from leeward_reproduce.slo.real.overhead import Overhead
from leeward_reproduce.slo.real.perform import FIGURES
from leeward_reproduce.slo.real.scenario import Scenario
from leeward_reproduce.slo.real.traffic import Mix, Requests
from support.parts import lack

SECONDS = 6.0
SMALL = Case(
    "small",
    chapter3.DISK,
    SECONDS,
    (PM, FIFO),
    partial(chapter3._shared, chapter3.SLOS, SECONDS),
    chapter3.FACTORS,
)
"""Figure 3.3, in short."""


def random(seed: int = 1) -> numpy.random.Generator:
    return numpy.random.default_rng(seed)


def of_times(seconds: Sequence[float], size: int = 4096) -> Requests:
    """Reads of a size at these times."""
    count = len(seconds)
    sizes = numpy.full(count, size, dtype=numpy.int64)
    return Requests(numpy.array(seconds), sizes, numpy.full(count, True), numpy.zeros(count, numpy.int64))


# Requests.


@pytest.mark.parametrize("gap_c2", [1.0, 20.0])
def test_drawn_requests_have_the_rate_and_the_burstiness_that_are_stated(gap_c2: float) -> None:
    mix = Mix(((4096, 3.0), (65_536, 1.0)))
    drawn = traffic.draw(random(), mix, 50.0, gap_c2, 5.0, 400.0)
    assert len(drawn) == 20_000
    assert drawn.seconds[0] > 5
    assert drawn.seconds[-1] < 405
    assert (numpy.diff(drawn.seconds) >= 0).all()
    gaps = numpy.diff(drawn.seconds)
    assert gaps.mean() == pytest.approx(0.02, rel=0.01)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(gap_c2, rel=0.15)
    assert (drawn.sizes == 4096).mean() == pytest.approx(0.75, abs=0.01)
    assert drawn.is_read.all()
    assert (drawn.offsets + drawn.sizes <= traffic.FILE_BYTES).all()
    assert mix.mean(float) == pytest.approx(drawn.sizes.mean(), rel=0.02)


def test_lookups_of_a_cache_have_their_rate_and_bursts() -> None:
    drawn = traffic.cache(random(), 50.0, 5.0, 2000.0)
    assert len(drawn) / 2000 == pytest.approx(50, rel=0.02)
    assert drawn.sizes.mean() == pytest.approx(28e3, rel=0.05)
    counts, _ = numpy.histogram(drawn.seconds, bins=2000)
    assert counts.var() > 1.5 * counts.mean()


def test_the_least_burst_is_the_one_that_delays_no_request() -> None:
    requests = of_times([0.0, 0.0, 0.1, 1.0])
    # Three requests of a tenth in 0.1 s, less the tokens of this time.
    assert traffic.least_burst(requests, 0.5, lambda _: 0.1) == pytest.approx(0.25)
    assert traffic.least_burst(requests, 10.0, lambda _: 0.1) == pytest.approx(0.2)


def test_halves_begin_at_zero_and_traces_keep_their_requests(tmp_path: Path) -> None:
    first, second = traffic.halves(of_times([1.0, 4.0, 5.0, 9.0]), 10.0)
    assert first.seconds.tolist() == [1.0, 4.0]
    assert second.seconds.tolist() == [0.0, 4.0]
    both = first.beside(second)
    assert both.seconds.tolist() == [0.0, 1.0, 4.0, 4.0]
    both.write(tmp_path / "trace.csv")
    rows = read_csv(tmp_path / "trace.csv")
    assert [(float(row["seconds"]), row["kind"], row["size"]) for row in rows] == [
        (at, "read", "4096") for at in both.seconds
    ]


def test_a_copy_never_runs_out_of_requests() -> None:
    copied = traffic.copy(30.0, 10e6)
    assert copied.sizes.sum() >= 30 * 10e6
    assert (copied.offsets + copied.sizes <= traffic.FILE_BYTES).all()


def test_no_request_makes_a_kernel_read_ahead() -> None:
    copied = traffic.copy(30.0, 10e6)
    spaced = traffic.steady(0.01, [4096, 65_536], 600)
    for requests, step, near in ((copied, 1 << 20, 13), (spaced, 65_536, 409)):
        assert (requests.offsets > 0).all()
        # The place before is read long before, or long after.
        for distance in range(1, near):
            assert (requests.offsets[distance:] != requests.offsets[:-distance] + step).all()
    drawn = traffic.draw(random(), Mix(((4096, 1.0), (1 << 20, 1.0))), 50.0, 1.0, 0.0, 40.0)
    assert (drawn.offsets > 0).all()
    assert (drawn.offsets % drawn.sizes == 0).all()
    assert (drawn.offsets + drawn.sizes <= copied.offsets.min()).all()


def test_pages_are_dropped_once_two_looks_have_found_them_complete(tmp_path: Path) -> None:
    assert list(uncached.runs(b"\0\1\1\0\1", b"\1\1\1\0\1")) == [(1, 3), (4, 5)]
    assert not list(uncached.runs(bytes(3), b"\1\1\1"))
    files: dict[Path, uncached.File] = {}
    file = tmp_path / "requests"
    file.write_bytes(bytes(10_000))
    (tmp_path / "empty").touch()
    uncached.search(tmp_path, files)
    assert list(files) == [file]
    for _ in range(3):
        files[file].drop()
    file.write_bytes(bytes(20_000))
    uncached.search(tmp_path, files)
    assert files[file].size == 20_000
    file.unlink()
    uncached.search(tmp_path, files)
    assert not files


def test_a_device_file_has_the_work_of_requests() -> None:
    table = disks.device(10e6)["table"]
    for row in table:
        assert 1 / row["read_iops"] == pytest.approx(disks.work(10e6, row["size_bytes"]), rel=1e-4)
    assert 1e-6 * table[-1]["size_bytes"] * table[-1]["read_iops"] == pytest.approx(9.3, rel=0.01)


# Scenarios.


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """The short scenario under seed 1."""
    return scenario.write(tmp_path_factory.mktemp("small"), SMALL, 1)


def test_equal_seeds_give_equal_scenarios(small: Scenario, tmp_path: Path) -> None:
    again = scenario.write(tmp_path / "again", SMALL, 1)
    other = scenario.write(tmp_path / "other", SMALL, 2)
    assert content_hash(again.folder) == content_hash(small.folder) != content_hash(other.folder)
    assert (again.slos, again.bounds) == (small.slos, small.bounds)


@pytest.mark.parametrize(
    "case", [chapter3.LIMITED, chapter3.BURSTY["H"], chapter3.FLOODED, chapter3.LINKED, *chapter3.ORDERS[:2]]
)
def test_bounds_of_each_case_are_within_its_slos(case: Case, tmp_path: Path) -> None:
    made = scenario.write(tmp_path, case, 1)
    assert made.promised, made.bounds
    of_members = {one.name: one.slo for one in made.members if one.slo is not None}
    factors = {round(made.slos[name] / slo, 9) for name, slo in of_members.items()}
    assert len(factors) == 1
    assert factors <= set(chapter3.FACTORS)


def test_the_simulator_keeps_the_bounds_of_a_scenario(small: Scenario) -> None:
    runs = simulator.simulate_all(small)
    assert list(runs) == ["pm", "fifo"]
    assert quantities.kept("pm", "ABC")(runs, small) == 3
    assert quantities.later("pm")(runs, small) == 0
    assert 0 < quantities.used("pm")(runs, small) <= 1
    assert quantities.worst("fifo")(runs, small) > quantities.worst("pm")(runs, small)
    declared = {one.name: len(one.requests) for one in small.members}
    assert {name: runs["pm"].workloads[name]["requests"] for name in "ABC"} == {
        name: declared[name] for name in "ABC"
    }
    # The copy takes what is left: more than half of the disk.
    assert quantities.carried("pm", chapter3.copy_name("s0"))(runs, small) > 2


def test_seeds_alternate_the_order_of_policies_and_long_cases_have_one() -> None:
    assert [policy.name for policy in SMALL.order(1)] == ["pm", "fifo"]
    assert [policy.name for policy in SMALL.order(2)] == ["fifo", "pm"]
    assert list(SMALL.seeds(3)) == [1, 2, 3]
    assert list(chapter3.WITHIN_CASE.seeds(3)) == [1]


# Measurements, and runs that do not count.


def test_measurements_have_percentiles_windows_and_late_requests() -> None:
    at = numpy.arange(0, 360, 0.1)
    latencies = numpy.where(at < 180, 0.01, 0.03)
    latencies[0] = 0.5
    seen = measures.seen(at, latencies, 0.02, 1000)
    assert (seen["requests"], seen["late"], seen["windows"], seen["met"]) == (3600, 1801, 2, 1)
    assert (seen["p50"], seen["p999"], seen["worst"]) == (0.03, 0.03, 0.5)
    assert len(seen["largest"]) == measures.LARGEST
    assert measures.beyond(seen, 0.1) == 1
    empty = measures.seen(numpy.array([]), numpy.array([]), 0.02, 0)
    assert (empty["requests"], empty["p999"], empty["worst"], empty["largest"]) == (0, 0.0, 0.0, [])


def test_requests_without_an_answer_are_as_late_as_the_end(tmp_path: Path) -> None:
    header = "seconds,kind,size,offset,late_s,latency_s,state\n"
    rows = "1,read,4096,0,0,0.5,done\n2,read,4096,0,0,,unanswered\n"
    (tmp_path / "rows.csv").write_text(header + rows)
    seen = measures.read_rows(tmp_path / "rows.csv", 1.0, 10.0)
    assert (seen["requests"], seen["unanswered"], seen["late"], seen["worst"]) == (2, 1, 1, 8.0)
    assert seen["bytes"] == 4096


def summary(**fields: Any) -> dict[str, Any]:
    """Summary of a replay."""
    return {"failed": 0, "short": 0, "problem": None, "lateness": {"p999_s": 0.001}} | fields


@pytest.mark.parametrize(
    ("fields", "busy", "error", "words"),
    [
        ({"lateness": {"p999_s": 0.02}}, 0.5, RejectedRunError, r"A sent requests 20\.0 ms late"),
        ({}, 0.95, RejectedRunError, "processors 95% busy"),
        ({"failed": 2, "problem": "stale file handle"}, 0.5, OSError, "2 requests failed: stale file handle"),
        ({"short": 1}, 0.5, OSError, "1 short reads"),
        ({"lateness": {"p999_s": None}}, 0.5, OSError, "A sent no requests"),
    ],
)
def test_runs_of_busy_machines_and_failed_requests_do_not_count(
    fields: dict[str, Any], busy: float, error: type[OSError], words: str
) -> None:
    run.check("it", {"A": summary(), "B": summary()}, 0.5)
    with pytest.raises(error, match=words):
        run.check("it", {"A": summary(**fields)}, busy)


def test_a_disk_has_to_be_as_fast_as_its_device_file() -> None:
    calibration.check_speed("s0", 4096, 100.0, 100.0)
    with pytest.raises(RejectedRunError, match=r"serves 99 requests of 4096 B a second, .* assume 100"):
        calibration.check_speed("s0", 4096, 99.0, 100.0)


def test_single_requests_never_meet() -> None:
    for rate in (2.4e6, 10e6, 400e6):
        alone = calibration.single(rate)
        gaps = numpy.diff(alone.seconds)
        assert gaps.min() > 3 * max(disks.work(rate, size) for size in calibration.SIZES)
        assert (alone.offsets + alone.sizes <= traffic.FILE_BYTES).all()


# Rows.


def example(case: Case, seed: int, folder: Path, slow: frozenset[str]) -> Outcome:
    """An outcome in which policies are at half of the SLOs, or at twice if they are in `slow`.

    Bounds are at 0.8 of the SLOs. Latencies in the simulator are nine tenths of those on the bed.
    """
    if case is chapter3.CALM:
        # Where all workloads keep to their limits, all policies are as in the thesis, or none.
        slow = frozenset() if slow is AS_IN_THE_THESIS else frozenset({"pm", "fifo"})
    if case.name.startswith("5."):
        requests = of_times([0.0, 1.0])
        members: Sequence[Member] = [
            Member(f"w{at}", f"c{at}", f"s{at % 2}", 0.25, requests, requests) for at in range(4)
        ]
    else:
        members = case.members(random(seed))
    slos = {one.name: 2.0 * one.slo for one in members if one.slo is not None}
    bounds = {name: 0.8 * slo for name, slo in slos.items()}

    def workload(member: Member, over: float, count: int) -> dict[str, Any]:
        latency = over * slos.get(member.name, 1.0)
        return {
            "requests": count,
            "late": count if over > 1 else 0,
            "unanswered": 0,
            **dict.fromkeys((*measures.PERCENTILES, "worst"), latency),
            "largest": [latency] * 3,
            "windows": 2,
            "met": 1 if over > 1 else 2,
            "bytes": 1e6 * case.seconds,
        }

    def runs(scale: float, real: bool) -> dict[str, Measures]:
        result = {}
        for policy in case.policies:
            over = scale * (2.0 if policy.name in slow else 0.5)
            seen = {one.name: workload(one, over, 20_000) for one in members}
            of_bed = Measures(seen, {"s0": 0.01}, 0.002, 0.4, 1.05)
            result[policy.name] = of_bed if real else Measures(seen)
        return result

    made = Scenario(case, seed, folder, members, len(members), slos, bounds)
    return Outcome(made, runs(0.9, False), runs(1.0, True))


AS_IN_THE_THESIS = frozenset({"fifo", "ps", "low-rate", "medium-rate", "high-rate"})
OTHERWISE = frozenset({"pm", "all-three", "snc", "enforced", "demoted", "by-slo"})


def rows_of(name: str, slow: frozenset[str], seeds: int = 2) -> dict[str, Row]:
    """Rows of a figure by their quantities."""
    cases = FIGURES[name].cases
    outcomes = {
        case: [example(case, seed, Path("absent"), slow) for seed in case.seeds(seeds)] for case in cases
    }
    micros = 100e-6 if slow is AS_IN_THE_THESIS else 200e-6
    rates = (1e8, 0.95e8) if slow is AS_IN_THE_THESIS else (1e8, 0.5e8)
    measured = Overhead([(300e-6, 300e-6 + micros)] * 3, [rates] * 3)
    rows = FIGURES[name].rows(Results(outcomes, measured))
    assert {row.figure for row in rows} == {name}
    by_text = {row.quantity: row for row in rows}
    assert len(by_text) == len(rows)
    assert all(row.ours is not None for row in rows)
    return by_text


@pytest.mark.parametrize("name", FIGURES)
def test_expectations_are_met_by_results_like_the_thesis_and_not_by_others(name: str) -> None:
    rows = rows_of(name, AS_IN_THE_THESIS)
    expected = [row for row in rows.values() if row.expected]
    assert expected
    assert all(row.met for row in expected), [row for row in expected if not row.met]
    # These have the opposite of each outcome. That bounds are within SLOs does not depend on runs.
    others = [row for row in rows_of(name, OTHERWISE).values() if row.expected]
    fixed = ("seeds with bounds within", "requests within limits", "real against simulator")
    assert not any(row.met for row in others if not row.quantity.endswith(fixed)), others


def test_rows_of_figure_3_3_have_the_thesis_the_simulator_and_the_bed_beside_each_other() -> None:
    rows = rows_of("3.3", AS_IN_THE_THESIS)
    kept = rows["PM: of three, within at 99.9 %"]
    assert (kept.paper, kept.simulator, kept.ours, kept.expected) == (3, 3, 3, "at least 3 workloads")
    fifo = rows["FIFO: latency over SLO at 99.9 %, the worst of three"]
    assert [fifo.simulator, fifo.ours] == pytest.approx([1.8, 2.0])
    assert rows["PM: factor of the SLOs"].ours == pytest.approx(2.0)
    assert rows["PM: copied"].ours == pytest.approx(1.0)
    tail = rows["largest latency of single requests"]
    assert tail.simulator is None
    assert tail.ours == pytest.approx(10.0)
    assert rows["lateness of clients at 99.9 %, the latest"].ours == pytest.approx(2.0)
    assert rows["processors in use, the busiest run"].ours == pytest.approx(40.0)
    assert rows["bytes that disks read, over those of requests, the most"].ours == pytest.approx(1.05)
    assert rows["PM: A, median latency: real against simulator"].ours == pytest.approx(100 / 9)


def test_requests_count_as_late_after_their_bound_and_the_tail() -> None:
    outcome = example(chapter3.FLOODED, 1, Path("absent"), frozenset())
    # D misbehaves and counts neither way; C has three large latencies, of half of its SLO.
    runs = outcome.real
    assert quantities.later("pm")(runs, outcome.scenario) == 0
    tight = replace(outcome.scenario, bounds={"C": 0.5 * outcome.scenario.slos["C"] - 0.02, "D": 0.0})
    assert quantities.later("pm")(runs, tight) == 3
    close = replace(outcome.scenario, bounds={"C": 0.5 * outcome.scenario.slos["C"] - 0.005, "D": 0.0})
    assert quantities.later("pm")(runs, close) == 0
    assert quantities.requests("pm")(runs, outcome.scenario) == 20_000


def test_orders_are_counted_over_all_six() -> None:
    row = rows_of("3.9", AS_IN_THE_THESIS)["PM: orders of six with all within at 99.9 %"]
    assert (row.paper, row.simulator, row.ours) == (6, 6, 6)
    row = rows_of("3.9", OTHERWISE)["bySLO: orders of six with all within at 99.9 %"]
    assert (row.paper, row.ours, row.met) == (5, 0, False)


def test_overhead_is_the_difference_of_pairs() -> None:
    rows = rows_of("overhead", AS_IN_THE_THESIS)
    added = rows["median latency that it adds"]
    assert (added.simulator, added.met) == (None, True)
    assert added.ours == pytest.approx(100.0)
    assert rows["throughput, of that without it"].ours == pytest.approx(95.0)


def test_the_link_is_not_the_limit_of_the_overhead() -> None:
    link = read_rate("link", overhead.SHAPE.link) / 8
    assert link > 2 * overhead.SHAPE.disk_rate("s0")


# The command.


def test_arguments_that_make_no_sense_and_machines_without_parts_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="each trace is replayed to its end"):
        reproduce("slo", real=True, horizon="1min")
    with pytest.raises(InputError, match="2: real runs would disturb each other"):
        reproduce("slo", real=True, jobs=2)
    with pytest.raises(InputError, match=r"unknown figure `3\.8`"):
        reproduce("slo", ["3.8"], real=True)
    monkeypatch.setattr(parts, "missing", lambda: "missing for file servers in a lab: root")
    with pytest.raises(OSError, match="missing for file servers in a lab: root"):
        reproduce("slo", ["overhead"], real=True, out=tmp_path)


def test_without_released_traces_the_rows_of_chapter_5_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEEWARD_DATA", str(tmp_path))
    (row,) = reproduce("slo", ["5.5"], real=True)
    assert row.ours is None
    assert "zhu-workloadcompactor" in row.note


def test_the_number_of_runs_is_that_of_seeds_and_policies() -> None:
    selection = {name: FIGURES[name] for name in ("3.3", "within", "overhead")}
    assert perform.runs(selection, 3) == 3 * 4 + 1 + 1


def test_runs_are_kept_in_their_folder_and_rejected_ones_are_made_again(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    outcome = example(SMALL, 1, small.folder, frozenset())

    @contextmanager
    def up(shape: object) -> Iterator[object]:
        yield SimpleNamespace(shape=shape)

    def make(_bed: object, _scenario: object, policy: Any, _tails: object, advance: Any) -> Measures:
        made.append(policy.name)
        if len(made) == 1:
            raise RejectedRunError("the machine was busy")
        advance(1.0)
        return outcome.real[policy.name]

    monkeypatch.setattr(bed, "up", up)
    monkeypatch.setattr(bench, "prepare", lambda *_: {"s0": 0.01})
    monkeypatch.setattr(bench, "run", make)
    shares: list[float] = []
    first = bench.make_outcomes([SMALL], 1, tmp_path, shares.append)
    assert made == ["pm", "pm", "fifo"]
    assert shares[0] == 0
    assert shares[-1] == pytest.approx(1.0)
    assert "the machine was busy" in (tmp_path / "small" / "seed-1" / RESULT).read_text()
    assert bench.make_outcomes([SMALL], 1, tmp_path, shares.append)[SMALL][0].real == first[SMALL][0].real
    assert len(made) == 3
    # Results of another scenario are not taken for those of this one.
    monkeypatch.setattr(traffic, "FILE_BYTES", traffic.FILE_BYTES // 2)
    with pytest.raises(InputError, match="is of another scenario"):
        bench.make_outcomes([SMALL], 1, tmp_path, shares.append)


def test_a_run_that_is_always_rejected_is_an_error() -> None:
    rejected: list[str] = []

    def never() -> None:
        raise RejectedRunError("the machine was busy")

    with pytest.raises(RejectedRunError):
        bench.attempt(never, rejected)
    assert len(rejected) == bench.ATTEMPTS - 1


def test_limits_of_packed_workloads_are_those_of_an_slo_file() -> None:
    assert scenario.literal("storage", 0.25, 0.5) == {"rate": "25.0000000000%", "burst": "500000000ns"}
    assert scenario.literal("storage", 1e-13, 0.0)["rate"] == "0.0000000001%"
    assert scenario.literal("network-out", 1.5, 10.2) == {"rate": "2B/s", "burst": "11B"}
    assert list(chapter5.CASES) == ["5.5", "5.6"]


def test_a_short_run_on_real_disks_serves_every_request_in_the_order_of_its_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = parts.missing()
    if lacks is not None:
        lack(lacks)
    # Other tests run at the same time, so the times of this run mean little.
    monkeypatch.setattr(run, "LATE_S", 10.0)
    monkeypatch.setattr(run, "BUSY", 2.0)
    monkeypatch.setattr(calibration, "check_speed", lambda *_: None)
    outcomes = bench.make_outcomes([SMALL], 1, tmp_path, lambda _: None)
    (outcome,) = outcomes[SMALL]
    for policy, one in outcome.real.items():
        assert one.tails["s0"] > 0
        for name in "ABC":
            seen, simulated = one.workloads[name], outcome.simulator[policy].workloads[name]
            assert (seen["requests"], seen["unanswered"]) == (simulated["requests"], 0), (policy, name)
    copied = chapter3.copy_name("s0")
    assert outcome.real["pm"].workloads[copied]["bytes"] > 0
    # Under FIFO, all wait for the copy, which keeps 16 MiB open.
    over = {policy: quantities.worst(policy)(outcome.real, outcome.scenario) for policy in outcome.real}
    assert over["pm"] < over["fifo"]
