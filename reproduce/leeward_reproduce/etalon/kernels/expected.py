"""Expectations of quantities, and rows that say whether they are met."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.lab.checks.values import Range, at_most
from leeward_reproduce.rows import Reason, Row, compare, with_reason


def near(value: float, points: float) -> Range:
    """Percentages within some points of the paper's."""
    return Range(f"within {points:g} points", value - points, value + points)


@dataclass(frozen=True)
class Values:
    """A quantity in the simulator and in the lab; None if it was not measured there, or does not exist."""

    simulator: float | None
    lab: float | None


def row(
    figure: str,
    quantity: str,
    unit: str,
    values: Values,
    *,
    paper: float | None = None,
    expected: Range | None = None,
    note: str = "",
    reason: Reason | None = None,
    is_change: bool = False,
) -> Row:
    """A row of the lab. A value that is missing or not finite is not measured.

    Args:
        figure: Name of the figure.
        quantity: Name of the quantity.
        unit: Its unit.
        values: Its values.
        paper: Value of the paper.
        expected: What the value of the lab should be.
        note: Note of the row.
        reason: Reason of a difference from the paper, for a row that does not hold.
        is_change: True for a change in percent.
    """
    measured = _finite(values.lab)
    result = Row(
        figure,
        quantity,
        unit,
        None,
        measured,
        None,
        None,
        None,
        note,
        _finite(values.simulator),
        expected.text if expected else "",
        expected.holds(measured) if expected and measured is not None else None,
    )
    return with_reason(compare(result, paper, is_change=is_change), reason)


def agreement(
    figure: str,
    quantity: str,
    unit: str,
    pairs: Sequence[tuple[float | None, float | None]],
    *,
    points: bool,
    note: str = "",
) -> Row:
    """The largest difference of the lab from the simulator over pairs of values (simulator, lab).

    With `points`, the values are percentages, and at most 8 points are expected; otherwise the difference is
    a share of the simulator's value, and at most 20 % are expected.
    """
    known = [(one, other) for one, other in pairs if one is not None and other is not None]
    gaps = [
        abs(other - one) if points else 100 * abs(other / one - 1) for one, other in known if points or one
    ]
    expected = at_most(8, "8 points") if points else at_most(20, "20 %")
    largest = max(gaps, default=None)
    return row(figure, quantity, unit, Values(None, largest), expected=expected, note=note)


def _finite(value: float | None) -> float | None:
    # Values of NumPy are no values of JSON.
    return float(value) if value is not None and math.isfinite(value) else None
