"""Rows of a reproduction: values of a paper beside those measured here.

A measured value has a confidence interval over seeds; the result of a formula has none. A figure that this
version cannot measure still has a row, with the reason instead of a value, so that the gap stays visible.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leeward.sweep import interval

FAR = 15.0
"""Difference from the paper in percent that needs a reason."""
INSIDE = "the interval includes the paper's value"
NOT_EXPLAINED = "not explained"
"""Note of a row without a tested or counted reason."""


@dataclass(frozen=True)
class Row:
    """A quantity of a figure or section, as the paper has it and as measured here."""

    figure: str
    """The paper's figure or section, or our name for an experiment beyond the paper."""
    quantity: str
    unit: str
    paper: float | None
    """The paper's value; None if it has none."""
    ours: float | None
    """Mean over seeds, or the result of a formula; None if the quantity was not measured."""
    ci_low: float | None
    ci_high: float | None
    """95 % confidence interval of that mean; None for formulas, and with fewer than two seeds."""
    deviation_percent: float | None
    """Difference of our value from the paper's, in percent of the paper's."""
    note: str
    """Differences from the paper, and their reasons."""
    simulator: float | None = None
    """For a quantity of the lab: the simulator's value; None if it has none."""
    expected: str = ""
    """For a quantity of the lab: what it should be."""
    met: bool | None = None
    """Whether it is; None if nothing is expected, or nothing was measured."""
    simulator_low: float | None = None
    simulator_high: float | None = None
    """95 % confidence interval of the simulator's mean; None for single runs."""


def measured_row(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float],
    paper: float | None = None,
    note: str = "",
) -> Row:
    """A row with the mean of values, one value for each seed."""
    if not values:
        return missing_row(figure, quantity, unit, paper, "nothing of this kind in these runs")
    mean = math.fsum(values) / len(values)
    low, high = interval(values) or (None, None)
    return Row(figure, quantity, unit, paper, mean, low, high, _deviation(mean, paper), note)


def reference_row(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float],
    paper: float | None,
    note: str,
) -> Row:
    """A row without a deviation, because the paper's value is for reference only."""
    return replace(measured_row(figure, quantity, unit, values, paper, note), deviation_percent=None)


def computed_row(
    figure: str, quantity: str, unit: str, value: float, paper: float | None = None, note: str = ""
) -> Row:
    """A row with the result of a formula."""
    return Row(figure, quantity, unit, paper, value, None, None, _deviation(value, paper), note)


def missing_row(figure: str, quantity: str, unit: str, paper: float | None, why: str) -> Row:
    """A row without a measured value; its note states the reason."""
    return Row(figure, quantity, unit, paper, None, None, None, None, f"not measured: {why}")


def with_reason(row: Row, reason: str = "") -> Row:
    """A row whose note has the reason of a difference from the paper of more than `FAR`.

    Args:
        row: The row.
        reason: A tested or counted reason; without one, a note of the row stands for it.
    """
    if abs(row.deviation_percent or 0.0) <= FAR:
        return row
    is_inside = (
        row.paper is not None
        and row.ci_low is not None
        and row.ci_high is not None
        and row.ci_low <= row.paper <= row.ci_high
    )
    reason = INSIDE if is_inside else reason or ("" if row.note else NOT_EXPLAINED)
    return replace(row, note="; ".join(filter(None, (reason, row.note))))


def _deviation(ours: float, paper: float | None) -> float | None:
    return 100 * (ours - paper) / abs(paper) if paper else None
