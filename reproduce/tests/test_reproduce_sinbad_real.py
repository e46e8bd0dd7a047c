"""Sinbad's figures on real bytes: scenarios, rows from measurements of this file, and short runs."""

import json
import math
from pathlib import Path

import pytest
import yaml

from leeward.errors import InputError
from leeward_reproduce.hdfs import class_path, missing
from leeward_reproduce.perform import reproduce
from leeward_reproduce.real.results import RESULT
from leeward_reproduce.real.results import write as write_result
from leeward_reproduce.real.rows import Pair
from leeward_reproduce.real.scenario_files import content_hash
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad.real import pairs, scenario
from leeward_reproduce.sinbad.real.cases import (
    BASE,
    CASES,
    HALF,
    LATE,
    LOST,
    LOST_PAPER,
    MEMORY,
    SHAPE,
    TWICE,
    Case,
)
from leeward_reproduce.sinbad.real.pairs import Measures, Results, order
from leeward_reproduce.sinbad.real.perform import FIGURES
from support.parts import lack


def test_the_cluster_reads_the_writes_and_rates_of_the_scenario(tmp_path: Path) -> None:
    load = scenario.read(scenario.write(tmp_path, 3, "60s", BASE))
    assert load.seconds == 60
    assert len(load.writes) == round(scenario.FILES_PER_S * 40)
    assert all(5 <= one.at_s <= 45 for one in load.writes)
    assert {one.bytes // SHAPE.block for one in load.writes} <= set(scenario.SIZES)
    # Each rack has a rate in each of four epochs, and in each one rack is hot.
    assert len(load.streams) == 4 * SHAPE.racks
    for at in (0.0, 15.0, 30.0, 45.0):
        shares = sorted(one.rate_bps / scenario.LINK_BPS for one in load.streams if one.at_s == at)
        assert shares[-1] >= 0.7
        assert shares[-2] <= 0.4
        # The last background goes on until all files are complete, as in the simulator.
        assert {one.until_s for one in load.streams if one.at_s == at} == {at + 15 if at < 45 else None}


def test_equal_seeds_give_equal_scenarios(tmp_path: Path) -> None:
    first, again, other = (
        scenario.read(scenario.write(tmp_path / name, seed, "60s", BASE))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_arrival_rates_leave_out_files_or_add_as_many_of_the_same_sizes(tmp_path: Path) -> None:
    base, half, twice = (
        scenario.read(scenario.write(tmp_path / case.name, 1, "60s", case)) for case in (BASE, HALF, TWICE)
    )
    assert half.writes == base.writes[::2]
    assert set(base.writes) <= set(twice.writes)
    assert sorted(one.bytes for one in twice.writes) == sorted(2 * [one.bytes for one in base.writes])
    assert [one.at_s for one in twice.writes] == sorted(one.at_s for one in twice.writes)
    assert base.streams == half.streams == twice.streams


def test_a_case_with_another_arrival_rate_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"load 0\.7: expected one of 0\.5, 1, 2"):
        Case("other", load=0.7)


def test_late_and_lost_reports_are_those_of_the_scenario_and_change_the_choices(tmp_path: Path) -> None:
    runs = {}
    for case in (BASE, LATE, LOST, LOST_PAPER):
        file = scenario.write(tmp_path / case.name, 2, "60s", case)
        runs[case] = pairs.simulate_pair(file, case)
    assert list(runs[LOST_PAPER]) == list(runs[LOST]) == list(runs[LATE]) == ["sinbad"]
    times = [tuple(one["sinbad"].seconds) for one in runs.values()]
    assert len(set(times)) == len(times)


def test_one_case_has_the_estimator_of_the_paper_in_the_scenario_and_in_the_namenode(tmp_path: Path) -> None:
    files = {case: scenario.write(tmp_path / case.name, 1, "60s", case) for case in CASES}
    contents = {case: yaml.safe_load(file.read_text()) for case, file in files.items()}
    paper = {"missing": "sinbad", "initial": "zero"}
    assert contents[LOST_PAPER] == {**contents[LOST], "ledger": paper}
    for name in ("cluster.yaml", "blocks.csv", "rates.csv"):
        of_both = [(files[case].parent / name).read_bytes() for case in (LOST, LOST_PAPER)]
        assert of_both[0] == of_both[1]
    assert LOST_PAPER.properties == {
        "dfs.leeward.sinbad.missing": "sinbad",
        "dfs.leeward.sinbad.initial": "zero",
    }
    for case in CASES[:-1]:
        assert "ledger" not in contents[case]
        assert case.properties == {}


def test_runs_in_the_repository_are_of_the_scenarios_of_this_version(tmp_path: Path) -> None:
    folder = class_path.PROJECT.parents[1] / "papers" / "sinbad" / "real-runs" / "sweeps"
    if not folder.is_dir():
        pytest.skip("papers/sinbad has no measurements of runs")
    by_name = {case.name: case for case in CASES}
    for file in folder.glob(f"*/*/{RESULT}"):
        case, seed = by_name[file.parent.name], int(file.parents[1].name.removeprefix("seed-"))
        place = tmp_path / file.parents[1].name / case.name
        scenario.write(place, seed, scenario.LENGTH, case)
        assert json.loads(file.read_text())["scenario"] == content_hash(place), file


def test_the_cluster_in_memory_has_no_disks(tmp_path: Path) -> None:
    scenario.write(tmp_path, 1, "60s", MEMORY)
    assert "devices" not in (tmp_path / "cluster.yaml").read_text()
    assert MEMORY.shape != BASE.shape == SHAPE


def test_the_first_policy_alternates_over_seeds_and_over_cases() -> None:
    assert order(BASE, 1) == order(HALF, 2) == ("default", "sinbad")
    assert order(BASE, 2) == order(HALF, 1) == ("sinbad", "default")
    assert {tuple(order(case, seed)) for case in (LATE, LOST_PAPER) for seed in (1, 2)} == {("sinbad",)}
    assert [case.name for case in CASES] == [
        "base",
        "half-load",
        "twice-load",
        "late-reports",
        "lost-reports",
        "memory",
        "lost-reports-paper",
    ], "the place of a case decides on the order of its policies"


def test_the_simulator_runs_the_scenario_under_both_policies(tmp_path: Path) -> None:
    file = scenario.write(tmp_path, 1, "60s", BASE)
    load, measures = scenario.read(file), pairs.simulate_pair(file, BASE)
    for one in measures.values():
        assert one.blocks == [each.bytes // SHAPE.block for each in load.writes]
        # A block takes at least its time on a link of a rack.
        least = 8 * SHAPE.block / scenario.LINK_BPS
        assert all(seconds is None or seconds > 0.99 * least for seconds in one.seconds)
        assert all(0 < one.cv[way] < 4 for way in pairs.WAYS)
        # A copy counts when its block is finished.
        finished = [seconds is not None for seconds in one.seconds]
        least_bytes = 3 * SHAPE.block * sum(b for b, done in zip(one.blocks, finished, strict=True) if done)
        assert least_bytes <= sum(one.stored.values()) <= 3 * SHAPE.block * sum(one.blocks)
    assert measures["default"].seconds != measures["sinbad"].seconds


def test_short_runs_and_several_at_once_are_errors() -> None:
    for fields, message in (
        ({"horizon": "20s"}, "`20s`: expected at least 40s"),
        ({"horizon": "x"}, "horizon"),
        ({"lab": True}, "leave out `lab`"),
        ({"jobs": 2}, "2: real runs would disturb each other"),
    ):
        with pytest.raises(InputError, match=message):
            reproduce("sinbad", real=True, **fields)
    with pytest.raises(InputError, match="`choreo` has no figures on real bytes; these papers have: sinbad"):
        reproduce("choreo", real=True)


SLOW = {TWICE: 3.0, LATE: 1.25, LOST: 1.5, LOST_PAPER: 1.75}
"""Times of a case over those of `BASE`."""


def example_pair(seed: int, case: Case) -> Pair[Measures]:
    """A pair in which `sinbad` takes half of the time. Times of the simulator are longer by a tenth."""
    slow = SLOW.get(case, 1.0)
    blocks = [1, 2, 4, 1]
    cv = {"downlink": 0.8, "uplink": 0.5, "ingress": 1.0, "egress": 0.9}
    less = {"downlink": 0.5 * slow, "uplink": 0.5, "ingress": 0.7, "egress": 0.9}

    def measures(scale: float, last: float | None, busy: float | None) -> dict[str, Measures]:
        times = [scale * slow * (seed + count) for count in blocks[:3]]
        runs = {
            "default": Measures(blocks, [*times, last], cv, {"r0h0": 10, "r0h1": 10, "r1h0": 40}, busy=busy),
            "sinbad": Measures(
                blocks,
                [*(0.5 * time for time in times), slow],
                less,
                {"r0h0": 0, "r0h1": 0, "r1h0": 9},
                3,
                {"ranked": 19, "stale": 1} if busy else {"ranked": 30},
                busy,
            ),
        }
        # HDFS's policy reads no reports, so it has no runs of cases with others.
        return {policy: runs[policy] for policy in case.policies}

    return Pair(seed, measures(1.1, None, None), measures(1.0, 2.0 * slow, 0.8))


def results(seeds: int) -> Results:
    """Pairs of all cases."""
    return {case: [example_pair(seed, case) for seed in range(1, seeds + 1)] for case in CASES}


def rows_by_text(figure: str) -> dict[str, Row]:
    return {row.quantity: row for row in FIGURES[figure].rows(results(2))}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_rows_of_its_name_with_values_of_paper_simulator_and_cluster(name: str) -> None:
    figure = FIGURES[name]
    rows = figure.rows({case: of_case for case, of_case in results(4).items() if case in figure.cases})
    assert {row.figure for row in rows} == {name}
    assert all(row.ours is not None for row in rows)
    assert all(row.ci_low is not None for row in rows)
    assert all((row.simulator is None) == (row.simulator_low is None) for row in rows)


@pytest.mark.parametrize("name", ["6", "7", "7.6", "11"])
def test_factors_are_the_times_of_the_default_policy_over_those_of_sinbad(name: str) -> None:
    ratios = [row for text, row in rows_by_text(name).items() if text.endswith(": default / sinbad")]
    assert ratios
    for row in ratios:
        # The simulator does not complete the last file, so it has no part in its factor.
        assert [row.simulator, row.ours] == pytest.approx([2.0, 2.0])


def test_factors_of_late_and_lost_reports_are_against_the_default_policy_with_reports() -> None:
    rows = rows_by_text("reports")
    for words, slow in (
        ("as they should be", 1.0),
        ("1 s late", 1.25),
        ("a share of 0.5 lost", 1.5),
        ("a share of 0.5 lost, the paper's estimator", 1.75),
    ):
        row = rows[f"files, mean, reports {words}: default / sinbad"]
        assert [row.simulator, row.ours] == pytest.approx([2.0 / slow, 2.0 / slow])
        assert rows[f"median Cv, links into racks, reports {words}: sinbad"].ours == pytest.approx(0.5 * slow)
        placed = rows[f"blocks that HDFS's policy placed, reports {words}: sinbad"]
        assert (placed.simulator, placed.ours) == (0.0, 5.0)


def test_rows_of_figures_8_and_9_have_the_decrease_of_the_variation() -> None:
    racks = rows_by_text("8")["decrease of the median Cv, links into racks: default - sinbad"]
    assert [racks.paper, racks.ours] == pytest.approx([0.33, 0.3])
    machines = rows_by_text("9")["decrease of the median Cv, links into machines: default - sinbad"]
    assert [machines.paper, machines.ours] == pytest.approx([0.46, 0.3])


def test_rows_of_section_7_4_have_the_variation_of_stored_bytes() -> None:
    rows = rows_by_text("7.4")
    machines = rows["Cv of bytes by machine after the run: default"]
    # 6.7 GB of 92.4 GB; bytes 10, 10 and 40 have the mean 20 and the standard deviation 14.14.
    assert machines.paper == pytest.approx(0.0725, abs=1e-4)
    assert machines.ours == pytest.approx(14.142 / 20, abs=1e-3)
    assert rows["Cv of bytes by rack after the run: default"].ours == pytest.approx(10 / 30)
    assert rows["growth of the Cv of bytes by rack: sinbad - default"].ours == pytest.approx(1 - 10 / 30)
    assert rows["Cv of bytes by rack: default: real against simulator"].ours == pytest.approx(0)


def test_rows_of_figure_11_have_the_times_at_twice_the_rate_over_those_before() -> None:
    row = rows_by_text("11")["files, mean, 2x arrival rate / 1x: default"]
    assert [row.paper, row.simulator, row.ours] == pytest.approx([1.4, 3.0, 3.0])


def test_rows_of_section_7_6_have_the_evicted_files() -> None:
    rows = rows_by_text("7.6")
    assert rows["files that full caches evict in a run: sinbad"].ours == 3
    assert rows["time of a file, mean, in memory / on disks: sinbad"].ours == pytest.approx(1.0)


def test_the_agreement_with_the_simulator_is_that_of_pairs() -> None:
    rows = rows_by_text("6")
    for policy in ("default", "sinbad"):
        row = rows[f"time of a file, mean: {policy}: real against simulator"]
        assert (row.expected, row.met) == ("interval within 20 %", False)
        # The simulator does not complete the last file, which is a short one.
        seeds = (3.0 / (1.1 * 10 / 3), 3.75 / (1.1 * 13 / 3))
        assert row.ours == pytest.approx(100 * (math.sqrt(seeds[0] * seeds[1]) - 1))
        assert rows[f"processors in use: {policy}"].ours == 80.0
        assert rows[f"processors in use: {policy}"].simulator is None


def test_a_folder_with_the_measurements_of_all_runs_needs_no_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_path, "missing", lambda: "missing for HDFS in a lab: root")
    out, figures = tmp_path / "out", ["7.4", "reports"]
    cases = {case: out / "sweeps" / "seed-1" / case.name for name in figures for case in FIGURES[name].cases}
    for case, folder in cases.items():
        scenario.write(folder, 1, "40s", case)
        write_result(folder, example_pair(1, case).real)
        for file in (*folder.glob("*.yaml"), *folder.glob("*.csv")):
            file.unlink()
        assert [file.name for file in folder.iterdir()] == [RESULT]
    rows = reproduce("sinbad", figures, real=True, seeds=1, horizon="40s", out=out)
    assert {row.figure for row in rows} == set(figures)
    assert all(row.ours is not None for row in rows)
    (cases[LATE] / RESULT).unlink()
    with pytest.raises(OSError, match="missing for HDFS in a lab: root"):
        reproduce("sinbad", figures, real=True, seeds=1, horizon="40s", out=out)


@pytest.mark.whole
@pytest.mark.parametrize("figures", [["6", "7.4", "8", "9", "reports"], ["7.6"]])
def test_short_runs_have_all_rows_and_a_second_call_reads_them(tmp_path: Path, figures: list[str]) -> None:
    lacks = missing()
    if lacks is not None:
        lack(lacks)
    rows = reproduce("sinbad", figures, real=True, seeds=1, horizon="40s", out=tmp_path / "out")
    assert {row.figure for row in rows} == set(figures)
    # Such short runs may have no file of one block.
    assert all(row.ours is not None for row in rows if not row.quantity.startswith("blocks"))
    again = reproduce("sinbad", figures, real=True, seeds=1, horizon="40s", out=tmp_path / "out")
    assert again == rows
    assert "| real |" in (tmp_path / "out" / "results.md").read_text()
