"""Rows of a reproduction: what a paper says beside what was measured here.

What is measured comes with a confidence interval over seeds; what follows from a formula has none. A figure
that this version cannot simulate is a row all the same, without a value of ours and with the reason, so
that it cannot be taken for done or forgotten.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leeward.sweep import interval


@dataclass(frozen=True)
class Row:
    """A quantity of a figure or section, as the paper has it and as measured here."""

    figure: str
    """The paper's figure or section, or our name for what the paper did not ask."""
    quantity: str
    unit: str
    paper: float | None
    """The paper's value; None if it has none."""
    ours: float | None
    """Mean over seeds; None if it cannot be simulated here."""
    ci_low: float | None
    ci_high: float | None
    """95 % confidence interval of that mean; None for formulas, and with less than two seeds."""
    deviation_percent: float | None
    """By how much ours differs, in percent of the paper's."""
    note: str
    """What differs and why."""


def measured(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float],
    paper: float | None = None,
    note: str = "",
) -> Row:
    """A row of values by seed."""
    if not values:
        return missing(figure, quantity, unit, paper, "nothing of this kind in these runs")
    mean = math.fsum(values) / len(values)
    low, high = interval(values) or (None, None)
    return Row(figure, quantity, unit, paper, mean, low, high, _deviation(mean, paper), note)


def reference(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float],
    paper: float | None,
    note: str,
) -> Row:
    """A row of values by seed beside one of the paper that it does not repeat: nothing deviates from it."""
    return replace(measured(figure, quantity, unit, values, paper, note), deviation_percent=None)


def computed(
    figure: str, quantity: str, unit: str, value: float, paper: float | None = None, note: str = ""
) -> Row:
    """A row that follows from a formula alone."""
    return Row(figure, quantity, unit, paper, value, None, None, _deviation(value, paper), note)


def missing(figure: str, quantity: str, unit: str, paper: float | None, why: str) -> Row:
    """A row that has no value here."""
    return Row(figure, quantity, unit, paper, None, None, None, None, f"not measured: {why}")


def _deviation(ours: float, paper: float | None) -> float | None:
    return 100 * (ours - paper) / abs(paper) if paper else None
