"""Checks: measured quantities beside the values that they should have."""

import math
from dataclasses import dataclass


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
    """Values within a share of another one."""
    return Range(f"within {percent:g} %", value * (1 - percent / 100), value * (1 + percent / 100))


def at_least(value: float, text: str) -> Range:
    """Values of at least `value`; `text` has its unit."""
    return Range(f"at least {text}", low=value)


def at_most(value: float, text: str) -> Range:
    """Values of at most `value`; `text` has its unit."""
    return Range(f"at most {text}", high=value)


@dataclass(frozen=True)
class Check:
    """A quantity of the lab on this machine.

    Attributes:
        part: `table 1` (Etalon), `programs` under virtual time, or `switch`.
        quantity: Name of the quantity.
        unit: `us`, `Mb/s` or `Gb/s` of virtual time, `Gb/s of real time`, or `packets`.
        dilation: Dilation under which it was measured.
        expected: Its value in the paper, or in virtual time; None if it has a bound only.
        measured: Its value here; None if it was not measured.
        accepted: Values that are accepted.
        holds: Whether the measured value is accepted; None if it was not measured.
        note: Reason why it was not measured.
    """

    part: str
    quantity: str
    unit: str
    dilation: int
    expected: float | None
    measured: float | None
    accepted: Range
    holds: bool | None
    note: str


def check_of(
    part: str,
    quantity: str,
    unit: str,
    dilation: int,
    measured: float | None,
    accepted: Range,
    *,
    expected: float | None = None,
    note: str = "",
) -> Check:
    """A check. A value that is not finite is not measured."""
    value = measured if measured is not None and math.isfinite(measured) else None
    holds = None if value is None else accepted.holds(value)
    return Check(part, quantity, unit, dilation, expected, value, accepted, holds, note)
