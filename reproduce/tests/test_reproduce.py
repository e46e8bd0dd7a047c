import gc
import json
import math
import re
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some

import leeward
from leeward.errors import InputError
from leeward_reproduce import command, perform, results_folder
from leeward_reproduce.outcomes import outcomes
from leeward_reproduce.perform import reproduce
from leeward_reproduce.rows import Row, measured_row, missing_row
from leeward_reproduce.sinbad import FIGURES, analysis, limits, pairs, sweeps
from leeward_reproduce.table import markdown, table

Run = Callable[..., subprocess.CompletedProcess[str]]
SLICE = "7.2,8,limits,equations"


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """A slice of the reproduction: two seeds, two minutes."""
    out = tmp_path_factory.mktemp("reproduced")
    return out, reproduce("sinbad", SLICE.split(","), seeds=2, out=out, horizon="2min")


@given(some.integers(1, 8), some.data())
def test_figure_12_is_the_share_of_placements_on_a_contended_link(racks: int, data: some.DataObject) -> None:
    contended, copies = data.draw(some.integers(0, racks)), data.draw(some.integers(1, racks))
    placements = list(combinations(range(racks), copies))
    slow = sum(any(rack < contended for rack in placement) for placement in placements)
    assert analysis.slowdown(contended, copies, racks) == pytest.approx(slow / len(placements))


@given(some.integers(1, 150), some.integers(1, 10))
def test_the_figure_12_approximation_is_a_lower_bound_and_exact_for_one_copy(
    contended: int, copies: int
) -> None:
    exact, near = analysis.slowdown(contended, copies), analysis.approximation(contended / 150, copies)
    assert near <= exact + 1e-12
    if copies == 1:
        assert near == pytest.approx(exact)


@given(some.lists(some.floats(0, 1.9e9), min_size=1, max_size=20), some.integers(0, 60))
def test_greedy_placement_is_no_slower_than_uniform_with_one_block_per_link(
    used: list[float], count: int
) -> None:
    count = min(count, len(used))
    default, opt = analysis.predict(numpy.array([used]), numpy.array([float(count)]))
    if count * sweeps.DISK_BPS <= sum(max(sweeps.RACK_LINK_BPS - one - sweeps.DISK_BPS, 0) for one in used):
        assert opt <= default * (1 + 1e-12)


def test_the_equations_match_a_calculation_by_hand() -> None:
    # Two links have 2 Gb/s and 0.1 Gb/s left. A block of 2^31 bit takes 5.36871 s at 0.4 Gb/s, and 21.47484 s
    # at 0.1 Gb/s. Uniform has the mean of both times. OPT places both blocks on the first link, which has
    # 1.6 Gb/s left for the second block.
    background = numpy.array([[0.0, 1.9e9]])
    default, opt = analysis.predict(background, numpy.array([2.0]))
    assert [default, opt] == pytest.approx([13.42177, 5.36871], abs=1e-5)


@given(
    some.lists(
        some.tuples(some.integers(0, 3), some.floats(0, 9), some.floats(0.1, 5)), min_size=1, max_size=12
    )
)
def test_seconds_of_disk_sharing_are_the_sum_over_pairs_of_copies(
    copies: list[tuple[int, float, float]],
) -> None:
    host, start, length = (numpy.array(column) for column in zip(*copies, strict=True))
    end = start + length
    actual = limits.shared(host, start, end)
    for at in range(len(copies)):
        others = [n for n in range(len(copies)) if n != at and host[n] == host[at]]
        each = [max(min(end[at], end[n]) - max(start[at], start[n]), 0.0) for n in others]
        assert actual[at] == pytest.approx(math.fsum(each))


def test_every_policy_is_run_with_one_and_with_two_remote_racks() -> None:
    for figure in FIGURES.values():
        for sweep in figure.sweeps:
            # These sweeps have the default policy only and compare nothing.
            compares = sweep not in (sweeps.TASKS, sweeps.WRITERS)
            if "machines" not in sweep.name and not sweep.name.startswith("day") and compares:
                one, two = ([p for p in sweep.policies if f"remote_racks={n}" in p] for n in (1, 2))
                assert [p.replace("racks=1", "racks=2") for p in one] == two
                assert len(one) + len(two) == len(sweep.policies)


def test_intervals_and_deviations_of_rows_match_a_calculation_by_hand() -> None:
    # Mean 2, s = 1, t(2) at 0.975 is 4.30265: half = 4.30265 / sqrt(3) = 2.48414.
    row = measured_row("8", "it", "x", [1.0, 2.0, 3.0], paper=1.6)
    values = [row.ours, row.deviation_percent, row.ci_low, row.ci_high]
    assert values == pytest.approx([2, 25, -0.48414, 4.48414], abs=1e-5)
    assert measured_row("8", "it", "x", [2.0]).ci_low is None


def test_a_quantity_without_a_measurement_is_marked_not_measured() -> None:
    row = missing_row("4", "it", "%", 42.0, "no such thing")
    text = table([row])
    assert text.cells[0] == ("4", "it", "42.0 %", "NOT MEASURED", "", "1")
    assert text.notes == [("1", "not measured: no such thing")]
    assert measured_row("4", "it", "%", []).note.startswith("not measured: ")


def test_tables_for_the_book_are_between_anchors() -> None:
    rows = [measured_row("7.2-sources", "it", "x", [1.0, 1.0], 2.0, "why")]
    page = markdown("made so", {"7.2-sources": ("bound", rows)})
    assert page.startswith("made so\n\n## 7.2-sources: bound\n")
    start, end = "<!-- ANCHOR: figure_7_2-sources -->", "<!-- ANCHOR_END: figure_7_2-sources -->"
    assert (
        page.index(start)
        < page.index("| 7.2-sources | it | 2.00x | 1.00x ± 0.00x | -50 % | 1 |")
        < page.index(end)
    )
    assert "1. why" in page


def test_a_slice_has_a_value_and_an_interval_for_every_row(reproduction: tuple[Path, list[Row]]) -> None:
    _, rows = reproduction
    assert set(SLICE.split(",")) == {row.figure for row in rows}
    for row in rows:
        assert row.ours is not None, row
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.ci_low <= row.ours <= row.ci_high
        assert (row.deviation_percent is None) == (row.paper is None)


def test_shares_of_blocks_add_up_to_100_percent(reproduction: tuple[Path, list[Row]]) -> None:
    _, rows = reproduction
    held = [row for row in rows if row.quantity.startswith("full blocks, uniform, 1 remote by")]
    assert len(held) == len(limits.REASONS)
    assert sum(row.ours or 0 for row in held) == pytest.approx(100)
    than = [row for row in rows if row.quantity.endswith("sinbad-file than uniform, 1 remote")]
    shares = {row.quantity.partition(":")[0]: row.ours or 0 for row in than}
    twice = shares.pop("full blocks twice as fast or more")
    assert sum(shares.values()) == pytest.approx(100)
    assert twice <= shares["full blocks faster"]


def test_batching_delay_lengthens_writes_only_when_the_wait_counts(
    reproduction: tuple[Path, list[Row]],
) -> None:
    _, rows = reproduction
    factor = {row.quantity: row.ours or 0 for row in rows if row.quantity.startswith("batching: ")}
    at_once = [value for quantity, value in factor.items() if "q = 0 s" in quantity]
    assert at_once[0] == at_once[1]
    message = "batching: full blocks, sinbad-file, q = 10 s, waiting {}: uniform / this, 1 remote"
    assert factor[message.format("counts")] < factor[message.format("does not count")]


def test_pictures_are_written_as_svg_and_png(reproduction: tuple[Path, list[Row]]) -> None:
    out, _ = reproduction
    names = {path.name for path in (out / "pictures").iterdir()}
    assert names == {f"{name}.{kind}" for name in ("7.2", "8", "equations") for kind in ("svg", "png")}
    assert (out / "pictures" / "8.svg").read_text().lstrip().startswith("<?xml")
    assert (out / "pictures" / "8.png").read_bytes().startswith(b"\x89PNG")


def test_a_reproduction_resumes_from_its_folder_with_identical_files(
    reproduction: tuple[Path, list[Row]], run: Run
) -> None:
    out, rows = reproduction
    before = {path.name: path.read_bytes() for path in [*out.glob("*.*"), *(out / "pictures").iterdir()]}
    options = ["--figure", SLICE, "--seeds", "2", "--horizon", "2min", "--out", str(out), "-o", "json"]
    result = run("reproduce", "sinbad", *options)
    assert result.returncode == 0, result.stderr
    assert "20 of 20 cells are there already" in result.stderr
    printed = json.loads(result.stdout)
    assert [Row(**row) for row in printed] == rows
    assert set(printed[0]) == {field.name for field in fields(Row)}
    assert before == {
        path.name: path.read_bytes() for path in [*out.glob("*.*"), *(out / "pictures").iterdir()]
    }


def test_the_command_prints_a_table_and_notes(run: Run) -> None:
    result = run("reproduce", "sinbad", "--figure", "12", "--out", "out")
    assert result.returncode == 0, result.stderr
    header, first, *_ = result.stdout.splitlines()
    assert header.split() == ["figure", "quantity", "paper", "ours", "deviation", "note"]
    assert first.startswith("12      slowdown under uniform, 1 off-rack copies, 3 of 150 links contended")
    assert result.stderr.startswith(
        f"sinbad by Leeward {leeward.__version__}, seeds 1 to 10, runs as long as the"
    )
    assert result.stderr.splitlines()[-1] == "wrote out/rows.json, results.md, run.json and pictures"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("opera",), "error: PAPER: unknown paper `opera`; there are: sinbad, choreo"),
        (("sinbad", "--figure", "3"), "error: --figure: unknown figure `3`; there are: 4, 5,"),
        (("sinbad", "--figure", "8", "--horizon", "5"), "error: --horizon: `5`: the unit is missing"),
        (("sinbad", "--figure", "12", "--horizon", "xx"), "error: --horizon: `xx`: "),
        (("sinbad", "--horizon", "1min"), "error: --horizon: `1min`: expected at least 2 min: "),
        (("sinbad", "--horizon", "61s"), "error: --horizon: `61s`: expected at least 2 min: "),
        (("sinbad", "--horizon", "119s"), "error: --horizon: `119s`: expected at least 2 min: "),
        (("sinbad", "--figure", "12", "--horizon", "0s"), "error: --horizon: "),
        (("sinbad", "--figure", "12", "--horizon", "[1h]"), "error: --horizon: "),
        (("sinbad", "--out", ""), "error: Invalid value for '--out': expected a path"),
        (("sinbad", "--out", "afile"), "error: --out: `afile`: `afile` is not a folder"),
        (("choreo", "--horizon", "5min"), "error: --horizon: `5min`: apps run until they end"),
        (("sinbad", "--seeds", "0"), "error: Invalid value for '--seeds'"),
    ],
)
def test_invalid_options_exit_with_2_and_leave_no_files(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    (tmp_path / "afile").write_text("")
    result = run("reproduce", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["afile"]


def test_figures_that_need_traces_name_the_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEEWARD_DATA", str(tmp_path))
    (row,) = reproduce("sinbad", ["traces"])
    assert row.ours is None
    assert row.note == "not measured: there is no fb2010-coflow/FB2010-1Hr-150-0.txt in the folder of traces"
    with pytest.raises(InputError, match="unknown figure"):
        reproduce("sinbad", ["13"])


@pytest.mark.parametrize("paper", perform.PAPERS)
def test_help_and_errors_list_all_names_of_figures(paper: str) -> None:
    known = perform.figure_names(paper)
    assert command.FIGURES[paper].split() == known
    for name in known:
        perform.runs(paper, [name], 1)
    with pytest.raises(InputError) as caught:
        perform.runs(paper, ["0"], 1)
    assert caught.value.message.split(": ")[1].split(", ") == known


@given(
    some.dictionaries(some.integers(1, 5), some.floats(0, 1e9)),
    some.dictionaries(some.integers(1, 5), some.floats(0, 1e9) | some.just(0.0)),
)
def test_ratios_use_only_seeds_with_both_values_and_a_positive_divisor(
    before: dict[int, float], after: dict[int, float]
) -> None:
    seeds = [seed for seed in before if seed in after and after[seed] > 0]
    assert pairs.quotients(before, after) == [before[seed] / after[seed] for seed in seeds]


@pytest.mark.parametrize(
    "figures", ["5,7.2,7.2-flows,8,failures,limits,equations", "6,7,7.4,7.6-machines,9,11"]
)
def test_the_shortest_runs_give_finite_values_or_none(tmp_path: Path, figures: str) -> None:
    horizon = f"{sweeps.LEAST_S:.0f}s"
    rows = reproduce("sinbad", figures.split(","), seeds=1, out=tmp_path, horizon=horizon)
    assert {row.figure for row in rows} == set(figures.split(","))
    for row in rows:
        assert row.ours is None or math.isfinite(row.ours)
        assert ("a first look: 1 seed and runs of 120s" in row.note) == (row.ours is not None)
    json.loads((tmp_path / "rows.json").read_text())


def test_a_figure_without_values_has_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = replace(FIGURES["12"], rows=lambda _: [missing_row("12", "it", "%", None, "nothing")])
    monkeypatch.setitem(FIGURES, "12", nothing)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "12.svg").write_text("of an earlier call")
    reproduce("sinbad", "12", out=tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "pictures",
        "results.md",
        "rows.json",
        "run.json",
    ]


def test_the_inputs_of_a_reproduction_are_stored_with_its_rows(reproduction: tuple[Path, list[Row]]) -> None:
    out, rows = reproduction
    words = f"sinbad by Leeward {leeward.__version__}, seeds 1 to 2, runs of 2min (a first look"
    assert (out / "results.md").read_text().startswith(words)
    assert json.loads((out / "run.json").read_text()) == {
        "paper": "sinbad",
        "leeward": leeward.__version__,
        "seeds": 2,
        "horizon": "2min",
        "lab": False,
        "full_seeds": results_folder.SEEDS,
        "real": False,
        "kubernetes": False,
    }
    assert all(row.note.endswith("a first look: 2 seeds and runs of 2min") for row in rows)


def test_rows_of_papers_that_differ_much_have_a_note() -> None:
    folder = Path(__file__).parents[2] / "papers"
    for file in (*folder.glob("*/real.md"), folder / "sinbad" / "results.md"):
        for names, cells in table_rows(file.read_text(encoding="utf-8")):
            row = dict(zip(names, cells, strict=True))
            paper, ours = number(row["paper"]), number(row.get("real", row.get("ours", "")))
            if paper and ours is not None and abs(ours - paper) > 0.15 * abs(paper):
                assert row["note"], f"{file.parent.name}/{file.name}: {row['figure']}: {row['quantity']}"


def table_rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Headers and cells of the rows of all tables in a text."""
    names: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| "):
            names = []
        elif not names:
            names = cells
        elif not cells[0].startswith("---"):
            yield names, cells


def number(cell: str) -> float | None:
    """The number at the start of a cell; None without one."""
    found = re.match(r"-?[\d.,]+", cell)
    return float(found[0].replace(",", "")) if found else None


def test_a_reproduction_at_full_length_is_not_marked_as_a_first_look() -> None:
    whole = results_folder.current_inputs("sinbad", results_folder.SEEDS, None)
    row = measured_row("8", "it", "x", [1.0])
    assert (whole.look, results_folder.mark_rows([row], whole)) == ("", [row])
    far = measured_row("8", "it", "x", [1.0], 2.0, "of files")
    (marked,) = results_folder.mark_rows([far], whole)
    assert (marked.reason, marked.tested, marked.note) == ("not explained", "", "of files")
    explained = replace(far, reason="smaller files", tested="files of 1 GB")
    assert results_folder.mark_rows([explained], whole) == [explained]
    assert "first look" not in whole.summary
    lab = results_folder.current_inputs("etalon", 1, None, lab=True, full_seeds=1)
    assert (lab.look, lab.summary.endswith(", seed 1, shorter runs than the paper's")) == ("", True)
    assert results_folder.current_inputs("choreo", 2, None, lab=True).look == "2 seeds"
    real = results_folder.current_inputs("sinbad", results_folder.SEEDS, None, real=True)
    assert real.summary.startswith("sinbad on real bytes by Leeward")
    assert real.summary.endswith(", shorter runs than the paper's")
    kubernetes = results_folder.current_inputs("hotspots", results_folder.SEEDS, None, kubernetes=True)
    assert kubernetes.summary.startswith("hotspots in Kubernetes by Leeward")
    assert (kubernetes.measured, real.measured, lab.measured) == ("kubernetes", "real", "lab")


def test_figures_of_one_reproduction_are_merged_in_one_folder(tmp_path: Path) -> None:
    by, titles = (
        results_folder.current_inputs("sinbad", 10, None),
        {"4": "four", "8": "eight", "12": "twelve"},
    )
    four, eight = measured_row("4", "it", "x", [1.0]), measured_row("8", "it", "x", [1.0])
    again, twelve = measured_row("8", "it", "x", [2.0]), measured_row("12", "it", "x", [3.0])
    results_folder.write(tmp_path, by, titles, [eight, twelve])
    results_folder.write(tmp_path, by, titles, [again, four])
    assert results_folder.read_rows(tmp_path, by) == [four, again, twelve]
    page = (tmp_path / "results.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## 4: four",
        "## 8: eight",
        "## 12: twelve",
    ]


@pytest.mark.parametrize(
    ("seeds", "horizon", "version", "what"),
    [(2, None, None, "seeds"), (10, "5min", None, "horizon"), (10, None, "0.0.1", "leeward")],
)
def test_figures_of_another_reproduction_are_rejected_before_any_run(
    tmp_path: Path, run: Run, seeds: int, horizon: str | None, version: str | None, what: str
) -> None:
    by = results_folder.current_inputs("sinbad", seeds, horizon)
    by = replace(by, leeward=version or by.leeward)
    results_folder.write(tmp_path / "out", by, {"8": "eight"}, [measured_row("8", "it", "x", [1.0])])
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    result = run("reproduce", "sinbad", "--figure", "12", "--out", "out")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(
        f"error: --out: `out`: holds figures of {by.summary}; expected the same {what},"
    )
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("name", "text"),
    [("notes.txt", ""), ("rows.json", "[]"), ("results.md", ""), (".rows.json", "")],
)
def test_a_folder_with_other_files_is_rejected(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"^out: `.*`: holds "):
        reproduce("sinbad", "12", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"seeds": 0}, "seeds: `0`: expected a whole number of at least 1"),
        ({"jobs": 0}, "jobs: `0`: expected"),
        ({"horizon": "xx"}, "horizon: `xx`: "),
        ({"figures": []}, "figures: expected at least one"),
        ({"figures": "12,8"}, "figures: unknown figure `12,8`"),
        ({"out": "afile"}, "out: `afile`: `afile` is not a folder"),
    ],
)
def test_invalid_arguments_are_input_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("afile").write_text("")
    with pytest.raises(InputError) as caught:
        reproduce("sinbad", **({"figures": "12"} | arguments))
    assert str(caught.value).startswith(error)


def test_an_interrupted_reproduction_emits_no_warnings() -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with warnings.catch_warnings(record=True) as warned, pytest.raises(KeyboardInterrupt):
        outcomes([("8", seed) for seed in range(40)], lambda *_: time.sleep(0.05), 2, interrupt)
    gc.collect()
    assert [str(one.message) for one in warned] == []


def test_notes_are_printed_below_their_table(run: Run, tmp_path: Path) -> None:
    result = run("reproduce", "sinbad", "--figure", "traces", "--out", "out", LEEWARD_DATA=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith("1. not measured: there is no ")
    assert "not measured" not in result.stderr
    assert result.stderr.splitlines()[-1] == "wrote out/rows.json, results.md and run.json"


def test_the_cache_of_bottlenecks_is_freed_with_the_cells(
    tmp_path: Path, reproduction: tuple[Path, list[Row]]
) -> None:
    gc.collect()
    assert len(limits._KEPT) == 0


def test_the_scenarios_and_clusters_of_all_sweeps_exist() -> None:
    sweeps_of_figures = [sweep for figure in FIGURES.values() for sweep in figure.sweeps]
    assert [sweep.scenario for sweep in sweeps_of_figures if not sweep.scenario.is_file()] == []
    folder = sweeps.RACKS.parent
    clusters = [
        folder / value for sweep in sweeps_of_figures for path, value in sweep.fixed if path == sweeps.CLUSTER
    ]
    assert [cluster for cluster in [*clusters, sweeps.DEMO / "cluster.yaml"] if not cluster.is_file()] == []


def test_sweeps_that_share_a_folder_write_only_cells(reproduction: tuple[Path, list[Row]]) -> None:
    out, _ = reproduction
    assert {path.name for path in (out / "sweeps" / "hour").iterdir()} == {"cells"}


def test_the_choreo_reproduction_repeats_with_the_same_numbers(tmp_path: Path) -> None:
    rows = reproduce("choreo", ["10a", "accuracy"], seeds=1, out=tmp_path / "out", jobs=2)
    assert rows == reproduce("choreo", ["10a", "accuracy"], seeds=1, jobs=1)
    assert {row.figure for row in rows} == {"10a", "accuracy"}
    ours = {row.quantity: row.ours for row in rows}
    message = "speed-up, mean: leeward, rates within {} % of what they are, against random"
    assert (ours[message.format(0)] or 0) > (ours[message.format(50)] or 0) > 0
    shares = [ours[f"apps that {what}: choreo against random"] or 0 for what in ("gain", "lose")]
    assert 0 < sum(shares) <= 100
    assert sorted(path.name for path in (tmp_path / "out" / "pictures").iterdir()) == ["10a.png", "10a.svg"]
