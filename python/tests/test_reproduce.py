import json
import math
import subprocess
from collections.abc import Callable
from dataclasses import fields
from itertools import combinations
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some

from leeward.errors import InputError
from leeward.reproduce import Row, reproduce
from leeward.reproduce.rows import measured, missing
from leeward.reproduce.sinbad import FIGURES, analysis, limits, sweeps
from leeward.reproduce.table import cells, markdown

Run = Callable[..., subprocess.CompletedProcess[str]]
SLICE = "7.2,8,limits,equations"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """A slice of the reproduction: two seeds, two minutes."""
    out = tmp_path_factory.mktemp("reproduced")
    return out, reproduce("sinbad", SLICE.split(","), seeds=2, out=out, horizon="2min")


@given(some.integers(1, 8), some.data())
def test_figure_12_is_the_share_of_placements_that_meet_a_contended_link(
    racks: int, data: some.DataObject
) -> None:
    contended, copies = data.draw(some.integers(0, racks)), data.draw(some.integers(1, racks))
    placements = list(combinations(range(racks), copies))
    slow = sum(any(rack < contended for rack in placement) for placement in placements)
    assert analysis.slowdown(contended, copies, racks) == pytest.approx(slow / len(placements))


@given(some.integers(1, 150), some.integers(1, 10))
def test_the_approximation_of_figure_12_is_a_lower_bound_and_exact_for_one_copy(
    contended: int, copies: int
) -> None:
    exact, near = analysis.slowdown(contended, copies), analysis.approximation(contended / 150, copies)
    assert near <= exact + 1e-12
    if copies == 1:
        assert near == pytest.approx(exact)


@given(some.lists(some.floats(0, 1.9e9), min_size=1, max_size=20), some.integers(0, 60))
def test_by_the_equations_greedy_placement_is_no_slower_than_uniform_while_no_link_takes_two_blocks(
    used: list[float], count: int
) -> None:
    count = min(count, len(used))
    default, opt = analysis.predict(numpy.array([used]), numpy.array([float(count)]))
    if count * sweeps.DISK_BPS <= sum(max(sweeps.RACK_LINK_BPS - one - sweeps.DISK_BPS, 0) for one in used):
        assert opt <= default * (1 + 1e-12)


def test_the_equations_are_those_worked_by_hand() -> None:
    # Two links, 2 Gb/s and 0.1 Gb/s left, one block of 2^31 bit: at 0.4 Gb/s it takes 5.36871 s, at 0.1 Gb/s
    # 21.47484 s. Uniform has half of each, OPT the first. The second block still finds 1.6 Gb/s there.
    background = numpy.array([[0.0, 1.9e9]])
    default, opt = analysis.predict(background, numpy.array([2.0]))
    assert [default, opt] == pytest.approx([13.42177, 5.36871], abs=1e-5)


@given(
    some.lists(
        some.tuples(some.integers(0, 3), some.floats(0, 9), some.floats(0.1, 5)), min_size=1, max_size=12
    )
)
def test_seconds_that_copies_share_a_disk_are_those_of_each_pair(
    copies: list[tuple[int, float, float]],
) -> None:
    host, start, length = (numpy.array(column) for column in zip(*copies, strict=True))
    end = start + length
    found = limits.shared(host, start, end)
    for at in range(len(copies)):
        others = [n for n in range(len(copies)) if n != at and host[n] == host[at]]
        each = [max(min(end[at], end[n]) - max(start[at], start[n]), 0.0) for n in others]
        assert found[at] == pytest.approx(math.fsum(each))


def test_every_policy_is_tried_with_one_and_with_two_remote_racks_where_there_are_racks() -> None:
    for figure in FIGURES.values():
        for sweep in figure.sweeps:
            if "machines" not in sweep.name and sweep.name != "day" and sweep is not sweeps.TASKS:
                one, two = ([p for p in sweep.policies if f"remote_racks={n}" in p] for n in (1, 2))
                assert [p.replace("racks=1", "racks=2") for p in one] == two
                assert len(one) + len(two) == len(sweep.policies)


def test_intervals_and_deviations_of_rows_are_those_worked_by_hand() -> None:
    # Mean 2, s = 1, t(2) at 0.975 is 4.30265: half = 4.30265 / sqrt(3) = 2.48414.
    row = measured("8", "it", "x", [1.0, 2.0, 3.0], paper=1.6)
    values = [row.ours, row.deviation_percent, row.ci_low, row.ci_high]
    assert values == pytest.approx([2, 25, -0.48414, 4.48414], abs=1e-5)
    assert measured("8", "it", "x", [2.0]).ci_low is None


def test_what_is_not_measured_cannot_be_taken_for_a_value() -> None:
    row = missing("4", "it", "%", 42.0, "no such thing")
    (shown,), notes = cells([row, measured("4", "that", "%", [1.0])][:1])
    assert shown == ("4", "it", "42.0 %", "NOT MEASURED", "", "1")
    assert notes == [("1", "not measured: no such thing")]
    assert measured("4", "it", "%", []).note.startswith("not measured: ")


def test_tables_for_the_book_stand_between_anchors() -> None:
    page = markdown({"7.2-sources": ("bound", [measured("7.2", "it", "x", [1.0, 1.0], 2.0, "why")])})
    start, end = "<!-- ANCHOR: figure_7_2-sources -->", "<!-- ANCHOR_END: figure_7_2-sources -->"
    assert (
        page.index(start) < page.index("| 7.2 | it | 2.00x | 1.00x ± 0.00x | -50 % | 1 |") < page.index(end)
    )
    assert "1. why" in page


def test_a_slice_has_a_value_and_an_interval_for_every_row(made: tuple[Path, list[Row]]) -> None:
    _, rows = made
    assert {"7.2", "7.2 batching", "8", "limits", "equations"} == {row.figure for row in rows}
    # Among two minutes there may be no block that is slower, but of all else there is something.
    for row in rows:
        assert row.ours is not None, row
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.ci_low <= row.ours <= row.ci_high
        assert (row.deviation_percent is None) == (row.paper is None)


def test_shares_of_blocks_add_up(made: tuple[Path, list[Row]]) -> None:
    _, rows = made
    held = [row for row in rows if row.quantity.startswith("full blocks, uniform, 1 remote by")]
    assert len(held) == len(limits.REASONS)
    assert sum(row.ours or 0 for row in held) == pytest.approx(100)
    than = [row for row in rows if row.quantity.endswith("sinbad-file than uniform, 1 remote")]
    shares = {row.quantity.partition(":")[0]: row.ours or 0 for row in than}
    twice = shares.pop("full blocks twice as fast or more")
    assert sum(shares.values()) == pytest.approx(100)
    assert twice <= shares["full blocks faster"]


def test_waiting_for_decisions_makes_writes_longer_from_asking_and_only_from_there(
    made: tuple[Path, list[Row]],
) -> None:
    _, rows = made
    factor = {row.quantity: row.ours or 0 for row in rows if row.figure == "7.2 batching"}
    at_once = [value for quantity, value in factor.items() if "q = 0 s" in quantity]
    assert at_once[0] == at_once[1]
    said = "full blocks, sinbad-file, q = 10 s, waiting {}: uniform / this, 1 remote"
    assert factor[said.format("counts")] < factor[said.format("does not count")]


def test_pictures_are_there_as_svg_and_png(made: tuple[Path, list[Row]]) -> None:
    out, _ = made
    names = {path.name for path in (out / "pictures").iterdir()}
    assert names == {f"{name}.{kind}" for name in ("7.2", "8", "equations") for kind in ("svg", "png")}
    assert (out / "pictures" / "8.svg").read_text().lstrip().startswith("<?xml")
    assert (out / "pictures" / "8.png").read_bytes().startswith(b"\x89PNG")


def test_a_reproduction_goes_on_from_its_folder_and_ends_in_the_same_bytes(
    made: tuple[Path, list[Row]], run: Run
) -> None:
    out, rows = made
    before = {path.name: path.read_bytes() for path in [*out.glob("*.*"), *(out / "pictures").iterdir()]}
    options = ["--figure", SLICE, "--seeds", "2", "--horizon", "2min", "--out", str(out), "-o", "json"]
    shown = run("reproduce", "sinbad", *options)
    assert shown.returncode == 0, shown.stderr
    assert "20 of 20 cells are there already" in shown.stderr
    printed = json.loads(shown.stdout)
    assert [Row(**row) for row in printed] == rows
    assert set(printed[0]) == {field.name for field in fields(Row)}
    assert before == {
        path.name: path.read_bytes() for path in [*out.glob("*.*"), *(out / "pictures").iterdir()]
    }


def test_the_command_prints_a_table_and_notes(run: Run) -> None:
    shown = run("reproduce", "sinbad", "--figure", "12", "--out", "out")
    assert shown.returncode == 0, shown.stderr
    header, first, *_ = shown.stdout.splitlines()
    assert header.split() == ["figure", "quantity", "paper", "ours", "deviation", "note"]
    assert first.startswith("12      slowdown under uniform, 1 off-rack copies, 3 of 150 links contended")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("choreo",), "error: paper: unknown paper `choreo`; there is: sinbad"),
        (("sinbad", "--figure", "3"), "error: --figure: unknown figure `3`; there are: 4, 5,"),
        (("sinbad", "--figure", "8", "--horizon", "5"), "error: --set horizon=5"),
        (("sinbad", "--seeds", "0"), "error: Invalid value for '--seeds'"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_2(run: Run, arguments: tuple[str, ...], error: str) -> None:
    shown = run("reproduce", *arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith(error), shown.stderr


def test_figures_that_need_traces_say_which_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEEWARD_DATA", str(tmp_path))
    (row,) = reproduce("sinbad", ["traces"])
    assert row.ours is None
    assert row.note == "not measured: there is no fb2010-coflow/FB2010-1Hr-150-0.txt in the folder of traces"
    with pytest.raises(InputError, match="unknown figure"):
        reproduce("sinbad", ["13"])
