"""Expectations of quantities, and rows that say whether they are met."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leeward_reproduce.rows import Row


@dataclass(frozen=True)
class Range:
    """Values from `low` to `high`; None is without a bound."""

    text: str
    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value is in the range."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def about(value: float, percent: float) -> Range:
    """Values within a share of a value of the paper."""
    return Range(f"within {percent:g} %", value * (1 - percent / 100), value * (1 + percent / 100))


def near(value: float, points: float) -> Range:
    """Percentages within some points of the paper's."""
    return Range(f"within {points:g} points", value - points, value + points)


def at_least(value: float, text: str) -> Range:
    """Values of at least `value`; `text` has its unit."""
    return Range(f"at least {text}", low=value)


def at_most(value: float, text: str) -> Range:
    """Values of at most `value`; `text` has its unit."""
    return Range(f"at most {text}", high=value)


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
) -> Row:
    """A row of the lab. A value that is missing or not finite is not measured."""
    measured = _finite(values.lab)
    deviation = 100 * (measured - paper) / abs(paper) if measured is not None and paper else None
    return Row(
        figure,
        quantity,
        unit,
        paper,
        measured,
        None,
        None,
        deviation,
        note,
        _finite(values.simulator),
        expected.text if expected else "",
        expected.holds(measured) if expected and measured is not None else None,
    )


def agreement(
    figure: str, quantity: str, unit: str, pairs: Sequence[tuple[float | None, float | None]], *, points: bool
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
    return row(figure, quantity, unit, Values(None, largest), expected=expected)


def _finite(value: float | None) -> float | None:
    # Values of NumPy are no values of JSON.
    return float(value) if value is not None and math.isfinite(value) else None
