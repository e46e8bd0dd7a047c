"""Files of telemetry, CSV (plain or gzip) and Parquet, as one table of readings that the engine streams.

Cells of CSV are read as texts and converted here, so that both engines agree on numbers, and an invalid cell
costs one reading and not the file.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import ibis

from leeward._csv_errors import find_error
from leeward._table_head import Head, files
from leeward._table_head import head as read_head
from leeward.errors import InputError
from leeward.telemetry.cells import milliseconds, number
from leeward.telemetry.engine import Engine
from leeward.telemetry.layout import Layout, MapColumns, layout
from leeward.telemetry.units import COUNTERS, RATES

SEPARATOR = "\x1f"
"""Separator of the labels of a key: no text contains it."""
_NANOSECONDS = ((1e11, "s"), (1e14, "ms"), (1e17, "us"), (math.inf, "ns"))
"""Bounds below which a number is a time of this century, by unit."""
_Shape = tuple[tuple[str, ...], tuple[str, ...], str, bool, str]
"""Columns, their types, delimiter, compression, and the unit of times: files of one shape are read as one."""


@dataclass(frozen=True)
class Readings:
    """Readings of files, in one shape.

    Attributes:
        table: `key` (the texts of its labels), `way` (`in` or `out`, if there are several), `t_ms` (null for
            an invalid time), `value` (bits per second, or the count of a counter; null for an invalid
            number), `speed` (capacity in bits per second, or null).
        ways: Present ways: `in` and `out`, or `load`.
        labels: Names of the labels of keys.
        counter: Whether values are counters.
        width: Bits of the counters; 0 if unknown.
        unit: Bits of one unit of a counter.
        speeds: Whether there is a column of speeds.
        name: Name of the source in errors.
    """

    table: ibis.Table
    ways: tuple[str, ...]
    labels: tuple[str, ...]
    counter: bool
    width: int
    unit: int
    speeds: bool
    name: str

    @property
    def by(self) -> list[str]:
        """Columns that identify series."""
        return ["key", "way"] if len(self.ways) > 1 else ["key"]


def readings(
    engine: Engine, paths: Sequence[str | PathLike[str]], map_columns: MapColumns | None = None
) -> Readings:
    """Files, or folders of them, as one table, of which only the heads are read.

    Args:
        engine: Engine that reads them.
        paths: Files in CSV or Parquet, or folders (`_table_head.files`).
        map_columns: Columns by a map.

    Raises:
        InputError: A file cannot be read, or is of another kind than the others.
    """
    groups: dict[_Shape, tuple[Head, Layout, list[Path]]] = {}
    for path in files(paths, "telemetry"):
        head = read_head(path)
        head.check_names()
        layout_of_file = layout(str(path), head.columns, map_columns)
        _check_types(head, layout_of_file)
        # Each file has its own: in one folder some may be in seconds and others in milliseconds.
        unit = layout_of_file.time.unit or _time_unit(head, layout_of_file.time.name)
        shape = (head.columns, tuple(map(str, head.types.values())), head.delimiter, head.compressed, unit)
        layout_of_file = replace(layout_of_file, time=replace(layout_of_file.time, unit=unit))
        groups.setdefault(shape, (head, layout_of_file, []))[2].append(path)
    parts = [_part(engine, group, head, layout_of_file) for head, layout_of_file, group in groups.values()]
    first = parts[0]
    for other in parts[1:]:
        same = ("ways", "labels", "counter", "width", "unit")
        if any(getattr(first, one) != getattr(other, one) for one in same):
            raise _input_error(other.name, f"its columns are of another kind than those of {first.name}")
    table = first.table if len(parts) == 1 else ibis.union(*(part.table for part in parts))
    speeds = any(part.speeds for part in parts)
    return replace(first, table=table, speeds=speeds)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turns an engine's error about an unreadable file into an error about the input."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError("engine", None, None, None, str(error).splitlines()[0]) from None
    except duckdb.Error as error:
        text = str(error)
        line = re.search(r"CSV Error on Line: (\d+)", text)
        file = re.search(r"^ *file = (.+)$", text, re.MULTILINE)
        file_name = file[1] if file else name
        csv_error = find_error(file_name, int(line[1])) if line else None
        raise csv_error or _input_error(file_name, text.splitlines()[0][:300]) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        text = str(error)
        file = re.search(r"file:/+(/?[^\n]+?\.csv(?:\.gz)?)\b", text, re.IGNORECASE)
        file_name = "/" + unquote(file[1]).lstrip("/") if file else name
        csv_error = find_error(file_name) if file else None
        raise csv_error or _input_error(name, f"Spark cannot read it: {text.splitlines()[0][:300]}") from None


def _check_types(head: Head, result: Layout) -> None:
    """Rejects columns of Parquet of an unexpected type."""
    head.check_type(result.time.name, "numbers", "texts", "times")
    for name in (
        *result.labels,
        *(column.name for column in (*result.values.values(), result.speed) if column),
    ):
        head.check_type(name, "numbers", "texts", "bytes")


def _part(engine: Engine, group: list[Path], head: Head, result: Layout) -> Readings:
    """Files of the same shape."""
    name = str(group[0]) if len(group) == 1 else f"{group[0]} and {len(group) - 1:,} others"
    with reading(name):
        if head.parquet:
            table = engine.parquet(group)
        else:
            table = engine.csv(group, head.delimiter, head.columns, head.compressed)
        time = milliseconds(table[result.time.name], result.time.unit)
        speed = ibis.null("float64")
        if result.speed is not None:
            speeds_read = number(table[result.speed.name], "float64")
            speed = speeds_read * ibis.literal(RATES[result.speed.unit], "float64")
        if result.wide:
            unit = next(iter(result.values.values())).unit
            long = _long(table, time, result)
            wide = long.select("key", "t_ms", value=_scale(long.value, unit), speed=speed)
            return Readings(
                wide, ("load",), ("link",), result.counter, result.width, COUNTERS.get(unit, 1), False, name
            )
        # Grouping by a raw column is much faster than by an expression.
        key = table[result.labels[0]].cast("string")
        for label in result.labels[1:]:
            key = key.fill_null("") + SEPARATOR + table[label].cast("string").fill_null("")
        several = len(result.values) > 1
        ways = [
            table.select(
                key=key,
                **({"way": ibis.literal(way)} if several else {}),
                t_ms=time,
                value=_scale(
                    number(table[column.name], "int64" if result.counter else "float64"), column.unit
                ),
                speed=speed,
            )
            for way, column in result.values.items()
        ]
        every = ibis.union(*ways) if several else ways[0]
        unit_bits = max(COUNTERS.get(column.unit, 1) for column in result.values.values())
        speeds = result.speed is not None
        return Readings(
            every, tuple(result.values), result.labels, result.counter, result.width, unit_bits, speeds, name
        )


def _long(table: ibis.Table, time: Any, result: Layout) -> ibis.Table:
    """A wide table as `t_ms`, `key` and `value`, a row for each cell that is not empty.

    An empty cell means no reading of its link. An invalid one is null.
    """
    types = [table[link].type() for link in result.values]
    kind = "int64" if result.counter else "float64"
    # A conversion that keeps nulls serves as well as texts, and is faster.
    wide = ibis.dtype("uint64")
    plain = all(of.is_integer() and of != wide if result.counter else of.is_numeric() for of in types)
    cells = {link: table[link].cast(kind if plain else "string") for link in result.values}
    long = table.select(t_ms=time, **cells).pivot_longer(
        list(result.values), names_to="key", values_to="value"
    )
    if plain:
        return long.filter(long.value.notnull())
    long = long.filter(long.value.strip() != "")
    return long.mutate(value=number(long.value, kind))


def _scale(value: Any, unit: str) -> Any:
    """Rates in bits per second; counters stay unchanged."""
    factor = RATES.get(unit, 1.0)
    return value if factor == 1 else value * ibis.literal(factor, "float64")


def _time_unit(head: Head, column: str) -> str:
    """Unit of times of a column without one, by their size; `iso` for dates."""
    first = head.first(column)
    if first is None:
        return "s"
    try:
        value = float(first)
    except ValueError:
        return "iso"
    return next(unit for below, unit in _NANOSECONDS if not abs(value) >= below)


def _input_error(name: str, message: str) -> InputError:
    return InputError(name, None, None, None, message)
