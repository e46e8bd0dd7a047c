"""Tests of reasons by variants: rows that differ in the reason alone.

If the reason holds, the variant is nearer to the paper. It has to remove at least half of the difference;
otherwise its test refutes the reason. The outcome is in the row, so no row claims a test that has not run.
"""

from collections.abc import Sequence
from dataclasses import replace

from leeward_reproduce.rows import Row, row_key
from leeward_reproduce.table import ours_text

_LEAST = 0.5
"""Least part of a difference from the paper that a variant removes if the reason holds."""


def with_tests(rows: Sequence[Row], others: Sequence[Row] = ()) -> list[Row]:
    """The rows, with the outcome of the test of each reason that has a variant.

    Args:
        rows: Rows of some figures.
        others: More rows in which variants may be, such as those of other figures.
    """
    known = {row_key(row.figure, row.quantity): row for row in (*others, *rows)}
    return [_tested(row, known.get(row.variant)) if row.variant else row for row in rows]


def _tested(row: Row, variant: Row | None) -> Row:
    """A row with the outcome of its test; untested without a variant, or if that was not measured."""
    if variant is None or variant.ours is None or row.ours is None:
        return replace(row, tested="", is_refuted=False)
    is_refuted = _distance(row, variant.ours) > (1 - _LEAST) * _distance(row, row.ours)
    place = row.variant.removesuffix(f": {row.quantity}")
    outcome = "explains less than half, " if is_refuted else ""
    return replace(row, tested=f"{outcome}{place}: {ours_text(variant)}", is_refuted=is_refuted)


def _distance(row: Row, value: float) -> float:
    """Distance of a value from the paper's, or from the nearer end of its range."""
    if row.paper is None:
        return 0.0
    high = row.paper if row.paper_high is None else row.paper_high
    return abs(value - min(max(value, row.paper), high))
