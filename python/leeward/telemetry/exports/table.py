"""The table of an export: times, texts that name ports or links, and numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

import pyarrow

from leeward.errors import InputError

TIME = "t_ms"
"""Column of the times, in milliseconds since 1970."""


@dataclass(frozen=True)
class Export:
    """An export as a table.

    Attributes:
        table: `TIME`, columns of texts, and columns of numbers; null where there is no reading.
        unit_named: True if the cells or the head of the file have the unit.
    """

    table: pyarrow.Table
    unit_named: bool = False


def joined(rows: Iterable[tuple[int, Mapping[str, str], str, float | int]]) -> pyarrow.Table:
    """One row for each time and set of labels.

    Args:
        rows: Time, labels, name of the reading, and its value.
    """
    places: dict[tuple[int, tuple[tuple[str, str], ...]], dict[str, float | int]] = {}
    labels: dict[str, None] = {}
    names: dict[str, None] = {}
    for time_ms, texts, name, value in rows:
        labels.update(dict.fromkeys(texts))
        names[name] = None
        places.setdefault((time_ms, tuple(sorted(texts.items()))), {})[name] = value
    found = [(time_ms, dict(texts), values) for (time_ms, texts), values in places.items()]
    columns = {TIME: pyarrow.array([time_ms for time_ms, _, _ in found], pyarrow.int64())}
    for label in labels:
        columns[label] = pyarrow.array([texts.get(label, "") for _, texts, _ in found], pyarrow.string())
    for name in names:
        columns[name] = as_numbers([values.get(name) for _, _, values in found])
    return pyarrow.table(columns)


def as_numbers(values: Sequence[float | int | None]) -> pyarrow.Array:
    """Numbers as int64 if all are whole, else as float64."""
    whole = all(
        value is None or (isfinite(value) and value == int(value) and abs(value) < 2**63) for value in values
    )
    if whole:
        return pyarrow.array([None if value is None else int(value) for value in values], pyarrow.int64())
    return pyarrow.array([None if value is None else float(value) for value in values], pyarrow.float64())


def stamp_ms(file: str, line: int, cell: str) -> int:
    """Time of a date with the year first, in milliseconds since 1970; without a zone, it is in UTC.

    Raises:
        InputError: The cell is not such a date: the order of day and month is not known.
    """
    try:
        time = datetime.fromisoformat(cell.strip().replace("/", "-"))
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)
    except (ValueError, OverflowError):
        message = f"`{cell[:40]}`: expected a time with the year first, such as 2026-01-31 12:00:00"
        raise InputError(file, line, None, None, message) from None
