"""A table of texts, and how times and shares are written in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from leeward._quantities import NONE, share_text

Cells = Sequence[str]


@dataclass(frozen=True)
class Section:
    """A table.

    Attributes:
        title: What it answers.
        headers: Of its columns.
        sides: For each column `<` or `>`, the side that it keeps to.
        rows: Its cells.
        more: What else there is to say below it, a line each.
        words: What its words mean.
    """

    title: str
    headers: Cells
    sides: str
    rows: Sequence[Cells]
    more: Sequence[str] = ()
    words: Sequence[tuple[str, str]] = field(default=())


def stamp(ms: int | None) -> str:
    """A time, to the minute."""
    if ms is None:
        return NONE
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def rest(count: int, what: str) -> list[str]:
    """A line that says how many more there are, if any."""
    return [f"{count:,} more {what}"] if count > 0 else []


def utilization(value: int | None) -> str:
    """A utilization that is given in millionths."""
    return NONE if value is None else share_text(value / 1e6)


def number(value: float | None) -> str:
    """A plain number with two decimals; a dash where there is none."""
    return NONE if value is None else f"{value:z.2f}"


def within(found: tuple[float, float, float] | None) -> str:
    """A value and its interval."""
    if found is None:
        return NONE
    value, low, high = (f"{one:z.2f}" for one in found)
    return f"{value} ({low} to {high})"
