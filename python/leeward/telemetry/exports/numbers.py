"""Cells with numbers as people write them: decimal commas, separated thousands, units."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from leeward.errors import InputError
from leeward.telemetry.units import RATES

NONE = frozenset({"", "-", "nan", "-nan", "null", "none", "n/a", "u", "undefined", "no data", "unknown"})
"""Cells without a reading, in lower case."""
UNITS = {
    **RATES,
    **{
        f"{prefix}{bit}": factor
        for prefix, factor in (("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
        for bit in ("b/s", "bit/s", "bits/s", "bps")
    },
    **{
        f"{prefix}{bit}": float(2**power)
        for prefix, power in (("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40))
        for bit in ("b/s", "bit/s")
    },
    **{
        f"{prefix}Bps": 8 * factor
        for prefix, factor in (("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9))
    },
    "KB/s": 8e3,
    "TB/s": 8e12,
    "TiB/s": 8.0 * 2**40,
}
"""Bits per second of each unit of a cell."""
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CELL = re.compile(r"([+-]?\d[\d.,' \u00a0\u202f]*\d|[+-]?\d)((?:[eE][+-]?\d+)?)\s*([^\d\s].*)?")
_NUMBER = re.compile(
    r"[+-]?(\d{1,3}([.,' \u00a0\u202f])\d{3}(\2\d{3})*([.,]\d+)?|\d+[.,]?\d*)([eE][+-]?\d+)?\s*([^\d\s].*)?"
)
"""A number whose thousands are separated by one sign, or not at all, and a unit."""
_SPACES = re.compile(r"['\s\u00a0\u202f]")


class Style(NamedTuple):
    """How numbers are written.

    Attributes:
        decimal: Sign before decimals: a point or a comma.
        thousands: Sign between thousands; empty without one.
    """

    decimal: str
    thousands: str


class Cell(NamedTuple):
    """A cell and its place: line and name of the column."""

    line: int
    column: str
    text: str


def is_plain(text: str) -> bool:
    """True for a number with a decimal point and no unit, or a cell without a reading."""
    return _PLAIN.fullmatch(text.strip()) is not None or text.strip().lower() in NONE


def is_written(text: str) -> bool:
    """True for a number with decimal comma, thousands or a unit of rates."""
    match = _NUMBER.fullmatch(text.strip())
    return not is_plain(text) and match is not None and (match[6] is None or match[6].strip() in UNITS)


def plain_number(file: str, line: int, column: str, text: str) -> float:
    """A number with a decimal point.

    Raises:
        InputError: The text is none.
    """
    if not _PLAIN.fullmatch(text.strip()):
        raise InputError(file, line, None, column, f"`{text[:40]}`: expected a number")
    return float(text)


def style(file: str, cells: Iterable[Cell], semicolons: bool) -> Style:
    """How the numbers of a file are written, if they can be read in one way only.

    Args:
        file: Name of the file, for errors.
        cells: Its cells.
        semicolons: True if semicolons separate cells, as spreadsheets write where a comma precedes decimals.

    Raises:
        InputError: Two cells contradict each other, or all can be read in two ways.
    """
    decided: tuple[Style, Cell] | None = None
    doubtful: Cell | None = None
    for cell in cells:
        match = _CELL.fullmatch(cell.text.strip())
        number = _SPACES.sub("", match[1]) if match else ""
        commas, points = number.count(","), number.count(".")
        if commas and points:
            found = Style(",", ".") if number.rindex(",") > number.rindex(".") else Style(".", ",")
        elif commas > 1:
            found = Style(".", ",")
        elif points > 1 or (commas and not re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", number)):
            found = Style(",", ".")
        elif points and not re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", number):
            found = Style(".", ",")
        else:
            if commas:
                doubtful = doubtful or cell
            continue
        if decided is not None and decided[0] != found:
            other = f"`{decided[1].text[:40]}` in line {decided[1].line}"
            message = f"`{cell.text[:40]}` contradicts {other}: which sign precedes decimals?"
            raise InputError(file, cell.line, None, cell.column, message)
        decided = decided or (found, cell)
    if decided is not None:
        return decided[0]
    if doubtful is not None and not semicolons:
        number = doubtful.text.strip()
        message = f"`{number[:40]}`: thousands or decimals? No cell decides it; expected a decimal point"
        raise InputError(file, doubtful.line, None, doubtful.column, message)
    return Style(",", ".") if semicolons and doubtful is not None else Style(".", ",")


def written_number(file: str, cell: Cell, style: Style) -> tuple[float, str]:
    """A number and its unit, which is empty without one.

    Raises:
        InputError: The cell is not a number of this style, or has an unknown unit.
    """
    match = _CELL.fullmatch(cell.text.strip())
    number = _SPACES.sub("", match[1]) if match else ""
    whole, _, decimals = number.partition(style.decimal)
    groups = whole.split(style.thousands)
    good = re.fullmatch(r"\d*", decimals) and (
        all(re.fullmatch(r"\d{3}", group) for group in groups[1:]) and re.fullmatch(r"[+-]?\d+", groups[0])
    )
    if match is None or not good:
        raise InputError(
            file,
            cell.line,
            None,
            cell.column,
            f"`{cell.text[:40]}`: expected a number, or a rate such as 1.5 Gb/s",
        )
    unit = (match[3] or "").strip()
    if unit and unit not in UNITS:
        expected = "b/s, kb/s, Mb/s, Gb/s, B/s, kB/s, ..."
        message = f"`{cell.text[:40]}`: `{unit[:20]}` is no unit of a rate; expected {expected}"
        raise InputError(file, cell.line, None, cell.column, message)
    return float(f"{''.join(groups)}.{decimals or 0}{match[2]}"), unit
