"""Reasons that a variant tests: the outcome is that of the variant's row."""

from pathlib import Path

import pytest

from leeward_reproduce import results_folder
from leeward_reproduce.hotspots.reasons import Cause, Causes
from leeward_reproduce.rows import Reason, Row, change_row, measured_row, row_key
from leeward_reproduce.summary import Counts, counts
from leeward_reproduce.table import whole_note
from leeward_reproduce.variants import with_tests

KEY = row_key("8-large", "factor")


def far(paper: float | tuple[float, float] = 1.0) -> Row:
    return measured_row("8", "factor", "x", [3.0], paper, reason=Reason("small files", variant=KEY))


def variant(value: float, quantity: str = "factor") -> Row:
    return measured_row("8-large", quantity, "x", [value])


@pytest.mark.parametrize(
    ("value", "test", "is_refuted"),
    [
        (1.5, "tested: figure 8-large: 1.50x", False),
        (2.0, "tested: figure 8-large: 2.00x", False),
        (0.5, "tested: figure 8-large: 0.50x", False),
        (2.1, "tested: explains less than half, figure 8-large: 2.10x", True),
        (5.0, "tested: explains less than half, figure 8-large: 5.00x", True),
    ],
)
def test_a_reason_holds_if_its_variant_removes_half_of_the_difference(
    value: float, test: str, is_refuted: bool
) -> None:
    row, other = with_tests([far(), variant(value)])
    assert whole_note(row) == f"small files ({test})"
    assert row.is_refuted is is_refuted
    assert other == variant(value)
    assert counts([row]) == Counts(1, 0, 0, int(not is_refuted), int(is_refuted))


def test_the_distance_from_a_range_is_that_from_its_nearer_end() -> None:
    row, _ = with_tests([far((1.0, 2.0)), variant(0.4)])
    assert row.is_refuted
    row, _ = with_tests([far((1.0, 2.0)), variant(1.0)])
    assert not row.is_refuted


def test_a_reason_whose_variant_was_not_measured_is_untested() -> None:
    assert [whole_note(row) for row in with_tests([far()])] == ["small files (untested)"]
    empty = measured_row("8-large", "factor", "x", [])
    assert whole_note(with_tests([far(), empty])[0]) == "small files (untested)"
    near = measured_row("8", "factor", "x", [1.0], 1.0, reason=Reason("small files", variant=KEY))
    assert with_tests([near, variant(1.0)])[0] == near


def test_a_row_with_another_label_is_named_in_full() -> None:
    key = row_key("8", "factor, large")
    row = change_row("8", "factor", [-10.0], -40.0, reason=Reason("small files", variant=key))
    other = change_row("8", "factor, large", [-38.0])
    (tested, _) = with_tests([row, other])
    assert tested.tested == "figure 8: factor, large: -38.0 %"


def test_a_folder_tests_reasons_by_the_figures_of_other_calls(tmp_path: Path) -> None:
    inputs, titles = results_folder.current_inputs("sinbad", 10, None), {"8": "eight", "8-large": "large"}
    results_folder.write(tmp_path, inputs, titles, [far()])
    assert "small files (untested)" in (tmp_path / "results.md").read_text()
    for value, outcome in ((1.2, "(tested: figure 8-large: 1.20x)"), (4.0, "explains less than half")):
        results_folder.write(tmp_path, inputs, titles, [variant(value)])
        assert outcome in (tmp_path / "results.md").read_text()


@pytest.mark.parametrize(
    ("values", "is_tolerance", "text"),
    [([0.5], False, "faster"), ([2.0], False, "slower"), ([0.5], True, "slower"), ([2.0], True, "faster")],
)
def test_causes_are_those_of_the_side_of_the_difference(
    values: list[float], is_tolerance: bool, text: str
) -> None:
    causes = Causes(slower=Cause("slower", ", variant"), faster=Cause("faster"))
    reason = causes.reason("13", "it", values, 1.0, is_tolerance)
    assert reason is not None
    assert (reason.text, reason.variant) == (text, row_key("13", "it, variant") if text == "slower" else "")
    assert causes.reason("13", "it", [], 1.0, is_tolerance) is None
    assert causes.reason("13", "it", values, None, is_tolerance) is None
    assert Causes().reason("13", "it", values, 1.0, is_tolerance) is None
