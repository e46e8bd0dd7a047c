"""Files of telemetry, CSV (plain or gzip) and Parquet, as one table of readings that the engine streams.

Cells of CSV are read as texts and turned into numbers here, so that both engines take the same for a number,
and one cell that is none costs one reading and not the file.
"""

import csv
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote

import ibis
import pyarrow
from pyarrow import parquet

from leeward.errors import InputError
from leeward.files import check_once
from leeward.ragged import DELIMITERS, why
from leeward.telemetry.engine import Engine
from leeward.telemetry.layout import Layout, Said, layout
from leeward.telemetry.units import COUNTERS, RATES, TIMES

SEPARATOR = "\x1f"
"""Between the labels of a key: no text has it."""
SUFFIXES = (".csv", ".csv.gz", ".parquet")
"""Of the files of a folder that count."""
_HEAD = 64
"""Rows that are looked at before the engine reads any."""
_LONGEST = 4_000_000
"""Letters of a line."""
_NANOSECONDS = ((1e11, "s"), (1e14, "ms"), (1e17, "us"), (math.inf, "ns"))
"""Below which a number is a time of this century in which unit."""


@dataclass(frozen=True)
class Readings:
    """Readings as they stand in files, in one shape.

    Attributes:
        table: `key` (the texts of its labels), `way` (`in` or `out`, where there are several), `t_ms` (null
            if it is no time), `value` (bits per second, or what a counter counted; null if it is no number),
            `speed` (bits per second that it can carry, or null).
        ways: The ways that are there: `in` and `out`, or `load`.
        labels: The names of the labels of keys.
        counter: Whether values are counters.
        width: Bits of the counters; 0 where it is not known.
        unit: Bits of one of a counter.
        speeds: Whether there is a column of speeds.
        name: What to call them in errors.
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
        """The columns that tell series apart."""
        return ["key", "way"] if len(self.ways) > 1 else ["key"]


def readings(engine: Engine, paths: Sequence[str | PathLike[str]], said: Said | None = None) -> Readings:
    """Files, or folders of them, as one table; no more than their heads is read yet.

    Args:
        engine: What will read them.
        paths: Of files in CSV or Parquet, or of folders: their files that end in one of `SUFFIXES`, those
            of folders below too, but for hidden ones.
        said: What a map says of columns.

    Raises:
        InputError: A file cannot be read, or is of another kind than the others.
    """
    groups: dict[tuple[str, tuple[str, ...], str], list[Path]] = {}
    heads: dict[tuple[str, tuple[str, ...], str], _Head] = {}
    for path in _files(paths):
        head = _head(path)
        group = (head.kind, tuple(head.columns), head.delimiter)
        groups.setdefault(group, []).append(path)
        heads.setdefault(group, head)
    parts: list[Readings] = []
    for group, files in groups.items():
        found = layout(str(files[0]), heads[group].columns, said)
        parts.append(_part(engine, files, heads[group], found))
    first = parts[0]
    for other in parts[1:]:
        same = ("ways", "labels", "counter", "width", "unit")
        if any(getattr(first, one) != getattr(other, one) for one in same):
            raise _wrong(other.name, f"its columns are of another kind than those of {first.name}")
    table = first.table if len(parts) == 1 else ibis.union(*(part.table for part in parts))
    speeds = any(part.speeds for part in parts)
    return replace(first, table=table, speeds=speeds)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turns what an engine says of a file that it cannot read into an error about the input."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError("engine", None, None, None, str(error).splitlines()[0]) from None
    except duckdb.Error as error:
        text = str(error)
        line = re.search(r"CSV Error on Line: (\d+)", text)
        file = re.search(r"^ *file = (.+)$", text, re.MULTILINE)
        found = file[1] if file else name
        told = why(found, int(line[1])) if line else None
        raise told or _wrong(found, text.splitlines()[0][:300]) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        text = str(error)
        file = re.search(r"file:/+(/?[^\n]+?\.csv(?:\.gz)?)\b", text, re.IGNORECASE)
        found = "/" + unquote(file[1]).lstrip("/") if file else name
        told = why(found) if file else None
        raise told or _wrong(name, f"Spark cannot read it: {text.splitlines()[0][:300]}") from None


@dataclass(frozen=True)
class _Head:
    """What the beginning of a file says."""

    kind: str
    columns: list[str]
    delimiter: str
    compressed: bool
    rows: list[list[Any]]
    types: dict[str, Any]


def _files(paths: Sequence[str | PathLike[str]]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [
                one
                for one in sorted(path.rglob("*"))
                if one.name.lower().endswith(SUFFIXES) and one.is_file()
            ]
            inside = [
                one for one in inside if not any(part.startswith(".") for part in one.relative_to(path).parts)
            ]
            if not inside:
                raise _wrong(str(path), f"no file in it ends in {', '.join(SUFFIXES)}")
            files.extend(inside)
        elif path.exists():
            files.append(path)
        else:
            raise _wrong(str(path), "no such file")
    check_once(files, "telemetry")
    return files


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _head(path: Path) -> _Head:
    """Reads the beginning of a file.

    Raises:
        InputError: It is empty, or neither CSV nor Parquet.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if magic == b"PAR1":
            return _parquet_head(path)
        compressed = magic[:2] == b"\x1f\x8b"
        with cast("IO[bytes]", (gzip.open if compressed else open)(path, "rb")) as opened:
            text = opened.read(_LONGEST)
        lines = text.decode("utf-8-sig", errors="strict" if len(text) < _LONGEST else "ignore").splitlines()
    except OSError as error:
        raise _wrong(str(path), error.strerror or str(error)) from None
    except (EOFError, zlib.error):
        raise _wrong(str(path), "the gzip data ends in the middle: is the file cut off?") from None
    except UnicodeDecodeError:
        raise _wrong(str(path), "neither Parquet nor text in UTF-8") from None
    if not lines or not lines[0].strip():
        raise _wrong(str(path), "empty; expected a header with names of columns")
    delimiter = max(DELIMITERS, key=lines[0].count)
    try:
        rows = list(csv.reader(lines[: _HEAD + 1], delimiter=delimiter))
    except csv.Error as error:
        raise _wrong(str(path), f"not readable as CSV: {error}") from None
    columns = rows[0]
    _distinct(path, columns)
    return _Head(
        "csv", columns, delimiter, compressed, [row for row in rows[1:] if len(row) == len(columns)], {}
    )


def _parquet_head(path: Path) -> _Head:
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            batch = next(file.iter_batches(_HEAD), None)
            rows = [] if batch is None else [list(row.values()) for row in batch.slice(0, _HEAD).to_pylist()]
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _wrong(str(path), f"not readable as Parquet: {str(error).splitlines()[0]}") from None
    _distinct(path, schema.names)
    return _Head("parquet", list(schema.names), "", False, rows, {one.name: one.type for one in schema})


def _distinct(path: Path, columns: list[str]) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise InputError(str(path), 1, None, column[:80], "this column is there twice")
        seen.add(column.lower())


def _part(engine: Engine, files: list[Path], head: _Head, found: Layout) -> Readings:
    """Files of the same columns."""
    name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1:,} others"
    with reading(name):
        if head.kind == "parquet":
            table = engine.parquet(files)
        else:
            table = engine.csv(files, head.delimiter, head.columns)
        time = _milliseconds(table, head, found)
        speed = ibis.null("float64")
        if found.speed is not None:
            number = _number(table[found.speed.name], "float64")
            speed = number * ibis.literal(RATES[found.speed.unit], "float64")
        if found.wide:
            unit = next(iter(found.values.values())).unit
            kind = "int64" if found.counter else "float64"
            cells = {link: _number(table[link], kind) for link in found.values}
            long = table.select(t_ms=time, **cells).pivot_longer(
                list(found.values), names_to="key", values_to="value"
            )
            # An empty cell of a wide file says nothing: its link had no reading then.
            long = long.filter(long.value.notnull())
            wide = long.select("key", "t_ms", value=_scaled(long.value, unit), speed=speed)
            return Readings(
                wide, ("load",), ("link",), found.counter, found.width, COUNTERS.get(unit, 1), False, name
            )
        # As it stands, a column is grouped by much faster than what is made of it.
        key = table[found.labels[0]].cast("string")
        for label in found.labels[1:]:
            key = key.fill_null("") + SEPARATOR + table[label].cast("string").fill_null("")
        several = len(found.values) > 1
        ways = [
            table.select(
                key=key,
                **({"way": ibis.literal(way)} if several else {}),
                t_ms=time,
                value=_scaled(
                    _number(table[column.name], "int64" if found.counter else "float64"), column.unit
                ),
                speed=speed,
            )
            for way, column in found.values.items()
        ]
        every = ibis.union(*ways) if several else ways[0]
        of = max(COUNTERS.get(column.unit, 1) for column in found.values.values())
        speeds = found.speed is not None
        return Readings(
            every, tuple(found.values), found.labels, found.counter, found.width, of, speeds, name
        )


def _scaled(value: Any, unit: str) -> Any:
    """Rates in bits per second; counters stay as they are counted."""
    factor = RATES.get(unit, 1.0)
    return value if factor == 1 else value * ibis.literal(factor, "float64")


def _number(column: Any, kind: str) -> Any:
    """A column as numbers; null where a cell is none."""
    of = column.type()
    if of.is_string():
        text = column.strip()
        if kind == "float64":
            return text.try_cast("float64")
        # A counter that is written with a point or an exponent is a number too.
        return text.try_cast("int64").fill_null(whole(text.try_cast("float64")))
    if not of.is_numeric():
        raise ValueError(f"a column of {of}; expected numbers")
    if kind == "float64":
        return column.cast("float64")
    if of.is_integer() and of != ibis.dtype("uint64"):
        return column.cast("int64")
    return whole(column.cast("float64"))


def whole(number: Any) -> Any:
    """Numbers without their fraction; null where they are none, or beyond what a counter may be."""
    within = (number >= -9e18) & (number <= 9e18) & ~number.isnan()
    return within.ifelse(number, ibis.null("float64")).floor().cast("int64")


def _milliseconds(table: ibis.Table, head: _Head, found: Layout) -> Any:
    """The column of times, in milliseconds since 1970."""
    column, unit = table[found.time.name], found.time.unit
    of = column.type()
    if of.is_timestamp() or of.is_date():
        stamp = column.cast("timestamp")
        return stamp.epoch_seconds().cast("int64") * 1000 + stamp.millisecond().cast("int64")
    if not unit:
        unit = _time_unit(head, found.time.name)
    if unit == "iso":
        stamp = column.strip().try_cast("timestamp('UTC')").cast("timestamp")
        return stamp.epoch_seconds().cast("int64") * 1000 + stamp.millisecond().cast("int64")
    if of.is_integer() and unit in ("s", "ms"):
        return column.cast("int64") * (1000 if unit == "s" else 1)
    number = _number(column, "float64") * ibis.literal(TIMES[unit], "float64")
    return whole(number + 0.5)


def _time_unit(head: _Head, column: str) -> str:
    """The unit of times whose column does not say it, by their size; `iso` of dates."""
    at = head.columns.index(column)
    for row in head.rows:
        try:
            value = float(row[at])
        except (TypeError, ValueError):
            if row[at] is None or not str(row[at]).strip():
                continue
            return "iso"
        return next(unit for below, unit in _NANOSECONDS if not abs(value) >= below)
    return "s"


def _wrong(name: str, message: str) -> InputError:
    return InputError(name, None, None, None, message)
