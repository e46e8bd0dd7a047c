"""A table of texts, and how times and shares are written in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from leeward.report.rows import NONE
from leeward.simulation import duration

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


def lasting(ms: float) -> str:
    """A time in words; from two days on in days and hours."""
    hours = round(ms / 3_600_000)
    if hours < 48:
        return f"{ms:g} ms" if ms < 1000 else duration(ms / 1000)
    return f"{hours // 24} d" + (f" {hours % 24} h" if hours % 24 else "")


def rest(count: int, what: str) -> list[str]:
    """A line that says how many more there are, if any."""
    return [f"{count:,} more {what}"] if count > 0 else []


def percent(share: float | None) -> str:
    """A share, with as many digits as small ones need."""
    if share is None:
        return NONE
    percent = 100 * share
    return f"{percent:z.3f} %" if 0 < percent < 0.1 else f"{percent:z.1f} %".replace(".0 %", " %")


def utilization(value: int | None) -> str:
    """A utilization that is given in millionths."""
    return NONE if value is None else percent(value / 1e6)


def number(value: float | None) -> str:
    """A plain number with two decimals; a dash where there is none."""
    return NONE if value is None else f"{value:z.2f}"


def within(found: tuple[float, float, float] | None) -> str:
    """A value and its interval."""
    if found is None:
        return NONE
    value, low, high = (f"{one:z.2f}" for one in found)
    return f"{value} ({low} to {high})"
