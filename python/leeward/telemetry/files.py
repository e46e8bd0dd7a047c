"""Readings of telemetry files as one table, which the engine streams. Files are CSV, gzip CSV or Parquet.

Both engines, DuckDB and Spark, read cells of CSV as text, and expressions of `cells` convert them. So both
agree on numbers, and an invalid cell invalidates one reading and not the file.
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
import pyarrow

from leeward._arrow import Table
from leeward._csv_errors import find_error
from leeward._inputs import is_table
from leeward._table_head import Head, files, head_of_table
from leeward._table_head import head as read_head
from leeward._tables import table_of
from leeward.errors import InputError
from leeward.telemetry.cells import milliseconds, number
from leeward.telemetry.engine import Engine
from leeward.telemetry.exports import export
from leeward.telemetry.exports.table import Export
from leeward.telemetry.layout import Layout, MapColumns, layout
from leeward.telemetry.units import COUNTERS, RATES

SEPARATOR = "\x1f"
"""Separator of the labels of a key. Labels do not contain it."""
_TIME_BOUNDS = ((1e11, "s"), (1e14, "ms"), (1e17, "us"), (math.inf, "ns"))
"""Units of time with their bounds: a number below 1e11 is in seconds, and one below 1e14 in milliseconds."""
_Shape = tuple[tuple[str, ...], tuple[str, ...], str, bool, str]
"""Columns, their types, delimiter, compression, and unit of times. Files of one shape are read together."""


@dataclass(frozen=True)
class Readings:
    """Readings of files as one table.

    Attributes:
        table: `key` (its labels, joined by `SEPARATOR`), `way` (`in` or `out`; only if files have both),
            `t_ms` (null for an invalid time), `value` (bits per second, or the count of a counter; null for
            an invalid number), `speed` (capacity in bits per second, or null).
        ways: Directions in the table: `in`, `out`, or both; or `load`.
        labels: Names of the labels of keys.
        counter: True if values are counters.
        width: Width of the counters in bits, 32 or 64; 0 if unknown.
        unit: Bits of traffic per unit of a counter.
        speeds: True if a file has a column of speeds.
        name: Name of the source in errors.
        unit_named: True if a name or a map says whether values count bits or bytes.
    """

    table: ibis.Table
    ways: tuple[str, ...]
    labels: tuple[str, ...]
    counter: bool
    width: int
    unit: int
    speeds: bool
    name: str
    unit_named: bool = True

    @property
    def by(self) -> list[str]:
        """Columns that identify a series."""
        return ["key", "way"] if len(self.ways) > 1 else ["key"]


def readings(
    engine: Engine, sources: Sequence[str | PathLike[str] | Table], map_columns: MapColumns | None = None
) -> Readings:
    """Files, or folders of files, as one table. This call reads only the head of each file.

    Args:
        engine: Engine that reads the files.
        sources: Files in CSV or Parquet, or folders (`_table_head.files`); or tables in memory.
        map_columns: Columns that a map names; by default, names of columns decide which column is which.

    Raises:
        InputError: A file cannot be read, or its columns are of other kinds than those of the
            other files.
    """
    groups: dict[_Shape, tuple[Head, Layout, list[Path]]] = {}
    given = [(at, source) for at, source in enumerate(sources) if is_table(source)]
    parts = [_given(engine, source, f"table {at}", map_columns) for at, source in given]
    paths = [source for source in sources if isinstance(source, str | PathLike)]
    for path in files(paths, "telemetry"):
        exported = export(path)
        if exported is not None:
            parts.append(_exported(engine, path, exported, map_columns))
            continue
        head = read_head(path)
        head.check_names()
        file_layout = layout(str(path), head.columns, map_columns)
        _check_types(head, file_layout)
        # Each file has its own unit: in one folder some may be in seconds and others in milliseconds.
        unit = file_layout.time.unit or _time_unit(head, file_layout.time.name)
        shape = (head.columns, tuple(map(str, head.types.values())), head.delimiter, head.compressed, unit)
        file_layout = replace(file_layout, time=replace(file_layout.time, unit=unit))
        groups.setdefault(shape, (head, file_layout, []))[2].append(path)
    parts += [_part(engine, group, head, file_layout) for head, file_layout, group in groups.values()]
    first = parts[0]
    for other in parts[1:]:
        names = ("ways", "labels", "counter", "width", "unit")
        if any(getattr(first, name) != getattr(other, name) for name in names):
            raise InputError.about(other.name, f"its columns are of another kind than those of {first.name}")
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
        raise InputError.about("engine", str(error).splitlines()[0]) from None
    except duckdb.Error as error:
        text = str(error)
        line = re.search(r"CSV Error on Line: (\d+)", text)
        file = re.search(r"^ *file = (.+)$", text, re.MULTILINE)
        file_name = file[1] if file else name
        csv_error = find_error(file_name, int(line[1]) if line else None) if "CSV" in text else None
        raise csv_error or InputError.about(file_name, text.splitlines()[0][:300]) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        text = str(error)
        file = re.search(r"file:/+(/?[^\n]+?\.csv(?:\.gz)?)\b", text, re.IGNORECASE)
        file_name = "/" + unquote(file[1]).lstrip("/") if file else name
        csv_error = find_error(file_name) if file else None
        raise csv_error or InputError.about(
            name, f"Spark cannot read it: {text.splitlines()[0][:300]}"
        ) from None


def _check_types(head: Head, file_layout: Layout) -> None:
    """Rejects Parquet columns of an unexpected type."""
    head.check_type(file_layout.time.name, "numbers", "texts", "times")
    for name in (
        *file_layout.labels,
        *(column.name for column in (*file_layout.values.values(), file_layout.speed) if column),
    ):
        head.check_type(name, "numbers", "texts", "bytes")


def _given(engine: Engine, source: Any, name: str, map_columns: MapColumns | None) -> Readings:
    """Readings of a table in memory."""
    try:
        content = table_of(source)
    except ValueError as error:
        raise InputError.about(name, str(error)) from None
    head = head_of_table(content, name)
    head.check_names()
    file_layout = layout(name, head.columns, map_columns)
    _check_types(head, file_layout)
    unit = file_layout.time.unit or _time_unit(head, file_layout.time.name)
    file_layout = replace(file_layout, time=replace(file_layout.time, unit=unit))
    return _part(engine, [head.path], head, file_layout, content)


def _exported(engine: Engine, path: Path, exported: Export, map_columns: MapColumns | None) -> Readings:
    """Readings of a file of another program."""
    types = dict(zip(exported.table.column_names, exported.table.schema.types, strict=True))
    head = Head(path, tuple(types), types, "", False, ())
    head.check_names()
    file_layout = layout(str(path), head.columns, map_columns)
    _check_types(head, file_layout)
    part = _part(engine, [path], head, file_layout, exported.table)
    # A cell without a reading is not an invalid number.
    table = part.table.filter(part.table.value.notnull())
    return replace(part, table=table, unit_named=part.unit_named or exported.unit_named)


def _part(
    engine: Engine, group: list[Path], head: Head, file_layout: Layout, content: pyarrow.Table | None = None
) -> Readings:
    """Readings of files of the same shape, or of their content if it is in memory."""
    name = str(group[0]) if len(group) == 1 else f"{group[0]} and {len(group) - 1:,} others"
    with reading(name):
        if content is not None:
            table = engine.table(content)
        elif head.parquet:
            table = engine.parquet(group)
        else:
            table = engine.csv(group, head.delimiter, head.columns, head.compressed)
        time = milliseconds(table[file_layout.time.name], file_layout.time.unit)
        speed = ibis.null("float64")
        if file_layout.speed is not None:
            speeds_read = number(table[file_layout.speed.name], "float64")
            speed = speeds_read * ibis.literal(RATES[file_layout.speed.unit], "float64")
        if file_layout.wide:
            unit = next(iter(file_layout.values.values())).unit
            long = _long(table, time, file_layout)
            readings_table = long.select("key", "t_ms", value=_scale(long.value, unit), speed=speed)
            return Readings(
                readings_table,
                ("load",),
                ("link",),
                file_layout.counter,
                file_layout.width,
                COUNTERS.get(unit, 1),
                False,
                name,
                file_layout.unit_named,
            )
        # A key of one label stays a plain column: grouping by it is much faster than by an expression.
        key = table[file_layout.labels[0]].cast("string")
        for label in file_layout.labels[1:]:
            key = key.fill_null("") + SEPARATOR + table[label].cast("string").fill_null("")
        several = len(file_layout.values) > 1
        ways = [
            table.select(
                key=key,
                **({"way": ibis.literal(way)} if several else {}),
                t_ms=time,
                value=_scale(
                    number(table[column.name], "int64" if file_layout.counter else "float64"), column.unit
                ),
                speed=speed,
            )
            for way, column in file_layout.values.items()
        ]
        all_ways = ibis.union(*ways) if several else ways[0]
        unit_bits = max(COUNTERS.get(column.unit, 1) for column in file_layout.values.values())
        speeds = file_layout.speed is not None
        return Readings(
            all_ways,
            tuple(file_layout.values),
            file_layout.labels,
            file_layout.counter,
            file_layout.width,
            unit_bits,
            speeds,
            name,
            file_layout.unit_named,
        )


def _long(table: ibis.Table, time: Any, file_layout: Layout) -> ibis.Table:
    """A wide table as `t_ms`, `key` and `value`, with a row for each cell that is not empty.

    An empty cell means that its link has no reading. An invalid cell becomes null.
    """
    types = [table[link].type() for link in file_layout.values]
    kind = "int64" if file_layout.counter else "float64"
    # A direct cast of numbers is faster than the conversion of text. Counters of uint64 need the conversion.
    uint64 = ibis.dtype("uint64")
    if file_layout.counter:
        direct = all(column_type.is_integer() and column_type != uint64 for column_type in types)
    else:
        direct = all(column_type.is_numeric() for column_type in types)
    cells = {link: table[link].cast(kind if direct else "string") for link in file_layout.values}
    long = table.select(t_ms=time, **cells).pivot_longer(
        list(file_layout.values), names_to="key", values_to="value"
    )
    if direct:
        return long.filter(long.value.notnull())
    long = long.filter(long.value.strip() != "")
    return long.mutate(value=number(long.value, kind))


def _scale(value: Any, unit: str) -> Any:
    """Rates in bits per second; counters stay unchanged."""
    factor = RATES.get(unit, 1.0)
    return value if factor == 1 else value * ibis.literal(factor, "float64")


def _time_unit(head: Head, column: str) -> str:
    """Unit of a time column whose name has none, by the size of its first value; `iso` for dates."""
    first = head.first(column)
    if first is None:
        return "s"
    try:
        value = float(first)
    except ValueError:
        return "iso"
    return next(unit for below, unit in _TIME_BOUNDS if not abs(value) >= below)
