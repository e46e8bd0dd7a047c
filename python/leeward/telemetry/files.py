"""Files of telemetry, CSV (plain or gzip) and Parquet, as one table of readings that the engine streams.

Cells of CSV are read as texts and turned into numbers here, so that both engines take the same for a number,
and one cell that is none costs one reading and not the file.
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

from leeward._heads import Head, files
from leeward._heads import head as read_head
from leeward._ragged import why
from leeward.errors import InputError
from leeward.telemetry.cells import milliseconds, number
from leeward.telemetry.engine import Engine
from leeward.telemetry.layout import Layout, Said, layout
from leeward.telemetry.units import COUNTERS, RATES

SEPARATOR = "\x1f"
"""Between the labels of a key: no text has it."""
_NANOSECONDS = ((1e11, "s"), (1e14, "ms"), (1e17, "us"), (math.inf, "ns"))
"""Below which a number is a time of this century in which unit."""
_Shape = tuple[tuple[str, ...], tuple[str, ...], str, bool, str]
"""Columns, their types, delimiter, compression, and the unit of times: files of one shape are read as one."""


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
        paths: Of files in CSV or Parquet, or of folders (`heads.files`).
        said: What a map says of columns.

    Raises:
        InputError: A file cannot be read, or is of another kind than the others.
    """
    groups: dict[_Shape, tuple[Head, Layout, list[Path]]] = {}
    for path in files(paths, "telemetry"):
        head = read_head(path)
        head.check_names()
        found = layout(str(path), head.columns, said)
        _check_types(head, found)
        # Each file's own: in one folder some may be in seconds and others in milliseconds.
        unit = found.time.unit or _time_unit(head, found.time.name)
        shape = (head.columns, tuple(map(str, head.types.values())), head.delimiter, head.compressed, unit)
        found = replace(found, time=replace(found.time, unit=unit))
        groups.setdefault(shape, (head, found, []))[2].append(path)
    parts = [_part(engine, group, head, found) for head, found, group in groups.values()]
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


def _check_types(head: Head, found: Layout) -> None:
    """Refuses columns of Parquet that hold neither what is looked for nor texts of it."""
    head.check_type(found.time.name, "numbers", "texts", "times")
    for name in (*found.labels, *(column.name for column in (*found.values.values(), found.speed) if column)):
        head.check_type(name, "numbers", "texts", "bytes")


def _part(engine: Engine, group: list[Path], head: Head, found: Layout) -> Readings:
    """Files of the same shape."""
    name = str(group[0]) if len(group) == 1 else f"{group[0]} and {len(group) - 1:,} others"
    with reading(name):
        if head.parquet:
            table = engine.parquet(group)
        else:
            table = engine.csv(group, head.delimiter, head.columns, head.compressed)
        time = milliseconds(table[found.time.name], found.time.unit)
        speed = ibis.null("float64")
        if found.speed is not None:
            stated = number(table[found.speed.name], "float64")
            speed = stated * ibis.literal(RATES[found.speed.unit], "float64")
        if found.wide:
            unit = next(iter(found.values.values())).unit
            long = _long(table, time, found)
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
                    number(table[column.name], "int64" if found.counter else "float64"), column.unit
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


def _long(table: ibis.Table, time: Any, found: Layout) -> ibis.Table:
    """A wide table as `t_ms`, `key` and `value`, a row for each cell that is not empty.

    An empty one says nothing: its link had no reading then. What stands there and is no number is null.
    """
    types = [table[link].type() for link in found.values]
    kind = "int64" if found.counter else "float64"
    # What makes no null of what is none is as good as texts, and quicker.
    wide = ibis.dtype("uint64")
    plain = all(of.is_integer() and of != wide if found.counter else of.is_numeric() for of in types)
    cells = {link: table[link].cast(kind if plain else "string") for link in found.values}
    long = table.select(t_ms=time, **cells).pivot_longer(
        list(found.values), names_to="key", values_to="value"
    )
    if plain:
        return long.filter(long.value.notnull())
    long = long.filter(long.value.strip() != "")
    return long.mutate(value=number(long.value, kind))


def _scaled(value: Any, unit: str) -> Any:
    """Rates in bits per second; counters stay as they are counted."""
    factor = RATES.get(unit, 1.0)
    return value if factor == 1 else value * ibis.literal(factor, "float64")


def _time_unit(head: Head, column: str) -> str:
    """The unit of times whose column does not say it, by their size; `iso` of dates."""
    stated = head.first(column)
    if stated is None:
        return "s"
    try:
        value = float(stated)
    except ValueError:
        return "iso"
    return next(unit for below, unit in _NANOSECONDS if not abs(value) >= below)


def _wrong(name: str, message: str) -> InputError:
    return InputError(name, None, None, None, message)
