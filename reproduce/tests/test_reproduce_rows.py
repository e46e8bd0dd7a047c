"""Rows beside a paper: when they hold, their reasons, their cells, and the summary of a page."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from leeward_reproduce import results_folder
from leeward_reproduce.rows import (
    INSIDE,
    NOT_EXPLAINED,
    WIDE,
    Paper,
    Reason,
    Row,
    as_reference,
    change_row,
    computed_row,
    measured_row,
    missing_row,
    reference_row,
    with_reason,
)
from leeward_reproduce.summary import Counts, MainResult, counts, summary
from leeward_reproduce.table import deviation_text, markdown, paper_text, table, whole_note

numbers = some.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("ours", "paper", "percent", "holds", "text"),
    [
        (1.1, 1.0, 10.0, True, "+10 %"),
        (1.15, 1.0, 15.0, True, "+15 %"),
        (1.16, 1.0, 16.0, False, "+16 %"),
        (0.8, 1.0, -20.0, False, "-20 %"),
        (-2.0, -1.0, -100.0, False, "-100 %"),
        (0.0, 0.0, 0.0, True, "+0 %"),
        (0.5, 0.0, None, False, "+0.5 GiB"),
        (9.0, (8.0, 14.0), 0.0, True, "within"),
        (16.0, (8.0, 14.0), 100 / 7, True, "+14 %"),
        (28.0, (8.0, 14.0), 100.0, False, "+100 %"),
        (4.0, (8.0, 14.0), -50.0, False, "-50 %"),
        (1.0, None, None, None, ""),
    ],
)
def test_a_value_holds_near_that_of_the_paper_or_in_its_range(
    ours: float, paper: Paper, percent: float | None, holds: bool | None, text: str
) -> None:
    row = computed_row("8", "it", "GiB", ours, paper)
    assert row.deviation_percent == (None if percent is None else pytest.approx(percent))
    assert (row.holds, row.deviation_points, deviation_text(row)) == (holds, None, text)


@pytest.mark.parametrize(
    ("ours", "paper", "points", "holds", "text"),
    [
        (-85.0, -90.0, 5.0, True, "5 points weaker"),
        (-33.5, -90.0, 56.5, False, "56 points weaker"),
        (-55.0, -13.0, -42.0, False, "42 points stronger"),
        (18.0, 10.9, 7.1, False, "7 points stronger"),
        (12.0, 10.9, 1.1, True, "1 point stronger"),
        (11.0, 10.9, 0.1, True, "0 points"),
        (1.0, -3.0, 4.0, False, "4 points, opposite sign"),
        (0.0, -3.0, 3.0, False, "3 points weaker"),
        (-3.0, 0.0, -3.0, True, "-3 points"),
        (-42.0, 0.0, -42.0, False, "-42 points"),
        (0.0, 0.0, 0.0, True, "0 points"),
        (10.0, (8.0, 14.0), 0.0, True, "within"),
        (37.0, (8.0, 14.0), 23.0, False, "23 points stronger"),
        (-55.0, (-80.0, -50.0), 0.0, True, "within"),
        (-46.0, (-80.0, -50.0), 4.0, True, "4 points weaker"),
    ],
)
def test_a_change_holds_within_five_points_with_the_sign_of_the_paper(
    ours: float, paper: Paper, points: float, holds: bool, text: str
) -> None:
    row = change_row("8", "it", [ours], paper)
    assert row.deviation_points == pytest.approx(points)
    assert (row.holds, row.deviation_percent, deviation_text(row)) == (holds, None, text)


@given(numbers, numbers, numbers)
def test_the_difference_from_a_range_is_that_from_its_nearer_end(
    one: float, other: float, ours: float
) -> None:
    low, high = min(one, other), max(one, other)
    row = change_row("8", "it", [ours], (low, high))
    difference = 0.0 if low <= ours <= high else min(abs(ours - low), abs(ours - high))
    assert abs(row.deviation_points or 0.0) == pytest.approx(difference)
    assert row.nearest is not None
    assert low <= row.nearest <= high


@given(numbers, numbers)
def test_a_change_of_the_other_sign_never_holds(ours: float, paper: float) -> None:
    if ours * paper < 0:
        assert change_row("8", "it", [ours], paper).holds is False


def test_shares_of_zero_percent_in_the_paper_differ_by_points() -> None:
    row = measured_row("4.10", "late", "%", [7.0, 8.0], 0.0)
    assert (row.holds, row.deviation_percent, row.deviation_points) == (False, None, 7.5)
    assert deviation_text(row) == "+8 points"
    hit = measured_row("4.10", "late", "%", [0.0, 0.0], 0.0)
    assert (hit.holds, deviation_text(hit)) == (True, "+0 %")


def test_rows_for_reference_have_the_value_of_the_paper_and_no_difference() -> None:
    rows = [
        reference_row("8", "it", "%", [1.0, 2.0], 47.0, "of a whole job"),
        reference_row("8", "it", "%", [1.0], (2.0, 3.0), "of a whole job"),
        as_reference(computed_row("8", "it", "%", 1.0, None, "of a whole job"), 47.0),
        missing_row("8", "it", "%", 47.0, "no such thing"),
        computed_row("8", "it", "%", 1.0),
    ]
    for row in rows:
        assert (row.holds, row.deviation_percent, row.deviation_points, row.reason) == (None, None, None, "")
        assert deviation_text(row) == ""
    assert [paper_text(row) for row in rows] == ["47.0 %", "2.0 % to 3.0 %", "47.0 %", "47.0 %", ""]
    assert counts(rows) == Counts(0, 0, 0, 0, 0)
    assert summary(rows) == ""


@pytest.mark.parametrize(
    ("values", "paper", "reason", "expected"),
    [
        ([1.1], 1.0, Reason("smaller files", "files of 1 GB"), ""),
        ([1.2], 1.0, Reason("smaller files", "files of 1 GB"), "smaller files (tested: files of 1 GB)"),
        ([1.2], 1.0, Reason("smaller files"), "smaller files (untested)"),
        ([0.8], 1.0, None, ""),
        (
            [0.9, 1.2, 1.5],
            1.0,
            None,
            "the interval includes the paper's value (tested: the interval over seeds)",
        ),
        (
            [1.9, 2.5, 3.1],
            (3.0, 4.0),
            Reason("smaller files", "files of 1 GB"),
            "the interval includes the paper's value; smaller files (tested: the interval over seeds)",
        ),
        ([1.0, 3.0], None, Reason("smaller files"), ""),
        (
            [0.5, 1.9],
            1.0,
            Reason("smaller files", "files of 1 GB"),
            f"{WIDE.text}; smaller files (untested)",
        ),
        (
            [0.5, 1.9],
            (2.0, 3.0),
            None,
            f"{WIDE.text} (untested)",
        ),
    ],
)
def test_only_rows_that_do_not_hold_have_a_reason(
    values: list[float], paper: Paper, reason: Reason | None, expected: str
) -> None:
    assert whole_note(measured_row("8", "it", "x", values, paper, reason=reason)) == expected


def test_the_first_reason_of_a_row_stays_and_a_full_reproduction_gives_every_row_one() -> None:
    far = measured_row("8", "it", "x", [2.0], 1.0, "a note", Reason("smaller files"))
    assert with_reason(far, Reason("another")) == far
    assert whole_note(far) == "smaller files (untested); a note"
    bare = measured_row("8", "it", "x", [2.0], 1.0)
    whole = results_folder.current_inputs("sinbad", results_folder.SEEDS, None)
    assert [whole_note(row) for row in results_folder.mark_rows([far, bare], whole)] == [
        "smaller files (untested); a note",
        "not explained (untested)",
    ]
    look = results_folder.current_inputs("sinbad", 1, None)
    assert [whole_note(row) for row in results_folder.mark_rows([bare], look)] == ["a first look: 1 seed"]


def test_a_page_begins_with_a_summary_of_its_rows() -> None:
    rows = [
        measured_row("8", "factor", "x", [1.0, 1.1], 1.0),
        measured_row("8", "zero", "GiB", [0.0, 0.0], 0.0),
        measured_row("8", "inside", "x", [0.9, 1.2, 1.5], 1.0),
        measured_row("8", "too wide", "x", [0.5, 1.9], 1.0),
        measured_row("9", "far", "x", [2.0, 2.0], 1.0, reason=Reason("smaller files", "files of 1 GB")),
        change_row("9", "change", [-10.0], -40.0, reason=Reason("smaller files")),
        with_reason(measured_row("9", "why", "x", [2.0, 2.0], 1.0), NOT_EXPLAINED),
        measured_row("9", "ours alone", "x", [2.0, 2.0]),
    ]
    assert counts(rows) == Counts(7, 2, 1, 1, 3)
    main = (
        MainResult("main", "8", "factor"),
        MainResult("less favourable", "9", "far"),
        MainResult("main", "10", "of another call"),
    )
    text = summary(rows, main)
    assert text.startswith("**2 of 7 compared rows hold**: ")
    assert (
        "Of the other 5, 1 have an interval that includes the paper's value, 1 have a tested reason, and 3"
        " have a reason that was not tested or was refuted by its test, or none." in text
    )
    assert "| main | factor (8) | 1.00x | 1.05x ± 0.64x | +5 % |" in text
    assert "| less favourable | far (9) | 1.00x | 2.00x ± 0.00x | +100 % |" in text
    assert "of another call" not in text
    page = markdown("made so", {"8": ("eight", rows[:4]), "9": ("nine", rows[4:])}, summary=text)
    assert page.startswith(
        f"made so\n\n<!-- ANCHOR: summary -->\n\n{text}\n\n<!-- ANCHOR_END: summary -->\n\n## 8"
    )
    assert "other" not in summary(rows[:2], main)


def test_an_interval_that_includes_the_value_counts_apart_from_tested_reasons() -> None:
    row = measured_row("8", "inside", "x", [0.9, 1.2, 1.5], 1.0)
    assert (row.reason, row.tested) == (INSIDE.text, INSIDE.tested)
    assert counts([row]) == Counts(1, 0, 1, 0, 0)
    assert counts([replace(row, reason="smaller files")]) == Counts(1, 0, 0, 1, 0)
    wide = measured_row("8", "wide", "x", [0.5, 1.9], 1.0)
    assert (wide.reason, wide.tested) == (WIDE.text, "")
    assert counts([wide]) == Counts(1, 0, 0, 0, 1)


def test_an_interval_around_a_change_of_nothing_is_judged_by_no_width() -> None:
    row = change_row("19", "it", [-30.0, 10.0, 50.0], 0.0)
    assert (row.holds, row.reason) == (False, INSIDE.text)


def test_a_folder_of_results_has_the_summary_of_all_its_figures(tmp_path: Path) -> None:
    inputs = results_folder.current_inputs("sinbad", 10, None)
    titles, main = {"8": "eight", "9": "nine"}, [MainResult("main", "9", "it")]
    results_folder.write(tmp_path, inputs, titles, [measured_row("8", "it", "x", [1.0], 1.0)], main)
    results_folder.write(tmp_path, inputs, titles, [measured_row("9", "it", "x", [2.0], 1.0)], main)
    page = (tmp_path / "results.md").read_text()
    assert "**1 of 2 compared rows hold**" in page
    assert "| main | it (9) | 1.00x | 2.00x | +100 % |" in page
    assert all(isinstance(row, Row) for row in results_folder.read_rows(tmp_path, inputs))


def test_cells_of_a_table_have_ranges_points_and_reasons() -> None:
    row = change_row("10a", "speed-up", [31.9, 32.1], (8.0, 14.0), "apps", Reason("few large transfers"))
    text = table([row])
    assert text.cells == [("10a", "speed-up", "8.0 % to 14.0 %", "32.0 % ± 1.3 %", "18 points stronger", "1")]
    assert text.notes == [("1", "few large transfers (untested); apps")]
