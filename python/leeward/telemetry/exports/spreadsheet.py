"""CSV of spreadsheets and of Grafana: `sep=`, decimal commas, separated thousands, cells with units."""

import csv
import re
from collections.abc import Iterable
from itertools import chain

import pyarrow

from leeward._table_head import DELIMITERS
from leeward.errors import InputError
from leeward.telemetry.exports.numbers import (
    NONE,
    UNITS,
    Cell,
    Style,
    is_plain,
    is_written,
    style,
    written_number,
)
from leeward.telemetry.exports.table import TIME, Export, as_numbers, stamp_ms

_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_TIME = re.compile(r"(?i)_?time|timestamp|date|datetime|ts")
_PERCENT = re.compile(r"\d\s*%")


def recognizes(head: list[str]) -> bool:
    """True for a line `sep=`, or for cells that are numbers but not plain ones."""
    if _SEPARATOR.fullmatch(head[0].strip()):
        return True
    rows = list(csv.reader([line for line in head if line.strip()], delimiter=_delimiter(head[0])))
    if len(rows) < 2 or not any(_TIME.fullmatch(name.strip()) for name in rows[0]):
        return False
    cells = [
        cell
        for row in rows[1:]
        for name, cell in zip(rows[0], row, strict=False)
        if not _TIME.fullmatch(name.strip())
    ]
    return any(is_written(cell) or _PERCENT.fullmatch(cell.strip()[-4:]) for cell in cells)


def _delimiter(header: str) -> str:
    return max(DELIMITERS, key=header.count)


def read(file: str, lines: list[str]) -> Export:
    """The table of a file. Cells with units become bits per second.

    Raises:
        InputError: A cell can be read in two ways, is not a number, or has no unit while others have one.
    """
    skipped = 0
    separator = _SEPARATOR.fullmatch(lines[0].strip())
    if separator:
        skipped, lines = 1, lines[1:]
    delimiter = separator[1] if separator else _delimiter(next(iter(lines), ""))
    reader = csv.reader(lines, delimiter=delimiter)
    header = [name.strip() for name in next(reader, [])]
    rows: list[tuple[int, list[str]]] = []
    for row in reader:
        if any(cell.strip() for cell in row):
            line = reader.line_num + skipped
            if len(row) != len(header):
                raise InputError(
                    file, line, None, None, f"{len(row)} cells; expected {len(header)} as in the header"
                )
            rows.append((line, row))
    time = next((place for place, name in enumerate(header) if _TIME.fullmatch(name)), None)
    if time is None:
        raise InputError(
            file, 1 + skipped, None, None, f"no column of times, such as Time; there are: {', '.join(header)}"
        )
    columns: dict[str, pyarrow.Array] = {}
    columns[TIME] = pyarrow.array([_time(file, line, row[time]) for line, row in rows], pyarrow.int64())
    numbers = [
        place
        for place in range(len(header))
        if place != time
        and any(is_plain(row[place]) or is_written(row[place]) for _, row in rows)
        and not _texts(row[place] for _, row in rows)
    ]
    cells = {place: [Cell(line, header[place], row[place]) for line, row in rows] for place in numbers}
    how = style(file, chain(*cells.values()), delimiter == ";")
    with_units = False
    for place, name in enumerate(header):
        if place in cells:
            values, units = _column(file, cells[place], how)
            with_units = with_units or units
            columns[name] = as_numbers(values)
        elif place != time:
            columns[name] = pyarrow.array([row[place] for _, row in rows], pyarrow.string())
    return Export(pyarrow.table(columns), with_units)


def _texts(cells: Iterable[str]) -> bool:
    """True if most cells are texts, such as names of links."""
    kinds = [any(letter.isdigit() for letter in cell[:2]) or cell.strip().lower() in NONE for cell in cells]
    return sum(kinds) * 2 < len(kinds)


def _column(file: str, cells: list[Cell], how: Style) -> tuple[list[float | None], bool]:
    """Numbers of a column, in bits per second if it has units."""
    first: Cell | None = None
    bare: Cell | None = None
    values: list[float | None] = []
    for cell in cells:
        if cell.text.strip().lower() in NONE:
            values.append(None)
            continue
        number, unit = written_number(file, cell, how)
        if unit:
            first = first or cell
        elif number:
            bare = bare or cell
        values.append(number * UNITS.get(unit, 1.0))
    if first is not None and bare is not None:
        message = f"`{bare.text[:40]}`: expected a unit, as `{first.text[:40]}` in line {first.line}"
        raise InputError(file, bare.line, None, bare.column, message)
    return values, first is not None


def _time(file: str, line: int, cell: str) -> int:
    text = cell.strip()
    if re.fullmatch(r"\d{9,10}", text):
        return 1000 * int(text)
    return int(text) if re.fullmatch(r"\d{12,13}", text) else stamp_ms(file, line, text)
