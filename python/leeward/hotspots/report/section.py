"""A table of texts, and its formats of times and utilizations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from leeward._quantities import NONE, percent_text

Cells = Sequence[str]


@dataclass(frozen=True)
class Section:
    """A table.

    Attributes:
        title: Title.
        headers: Headers of the columns.
        sides: For each column `<` or `>`, its alignment.
        rows: Cells.
        more: Notes below the table.
        words: Meanings of its words.
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


def rest(count: int, nouns: str) -> list[str]:
    """A line with the number of further rows, if any."""
    return [f"more {nouns}: {count:,}"] if count > 0 else []


def utilization(ppm: int | None) -> str:
    """A measured utilization in millionths, as text."""
    return NONE if ppm is None else percent_text(ppm / 1e6)


def threshold(ppm: int) -> str:
    """A threshold of utilization in millionths, as text with all its digits."""
    return percent_text(ppm / 1e6, None)


def number(value: float | None) -> str:
    """A plain number with two decimals; a dash where there is none."""
    return NONE if value is None else f"{value:z.2f}"


def within(estimate: tuple[float, float, float] | None) -> str:
    """A value and its interval."""
    if estimate is None:
        return NONE
    value, low, high = (f"{number:z.2f}" for number in estimate)
    return f"{value} ({low} to {high})"
