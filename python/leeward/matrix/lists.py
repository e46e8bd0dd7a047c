"""Reads series of matrices from files: NumPy arrays, and lists of transfers as CSV or Parquet.

The kind of a file follows from its content, not from its name. A list has a line for each transfer, in any
order: lines of one pair in one interval are summed.
"""

import csv
import gzip
import math
import re
import zlib
from array import array
from collections.abc import Collection, Iterator, Sequence
from io import TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy

from leeward import _npy
from leeward._arrays import Floats, Ints
from leeward._table_head import PARQUET
from leeward._table_head import head as read_head
from leeward.errors import InputError
from leeward.matrix.series import (
    LEAST_BYTES,
    MOST_BYTES,
    Series,
    check_order,
    check_tasks,
    check_values,
    is_bytes,
    natural,
    seconds,
)

COLUMNS = ("t_s", "src", "dst", "bytes")
MOST_LINES = 10_000_000
_LONGEST = 65_536
"""Greatest length of a line, in characters."""
_LATEST_S = 1e12
"""Greatest distance of times from 0."""


def read(path: str | PathLike[str], interval: str = "1h", tasks: Sequence[str] | None = None) -> Series:
    """Reads a series of traffic matrices.

    Args:
        path: A NumPy file of the shape (intervals, tasks, tasks), in bytes; or a list in CSV (plain or gzip;
            commas, semicolons or tabs) or Parquet with the columns `t_s` (seconds), `src`, `dst` (names of
            tasks, or their numbers from 0) and `bytes`. Other columns are ignored. Lines may be in any
            order.
        interval: Length of an interval, such as `1h` or `5min`. Lines of a list are summed to intervals that
            begin at whole multiples of this length. An interval without a line, between the first and the
            last, has 0 bytes.
        tasks: Names of all tasks, including those that never send, in the order of matrices and of the app
            file. By default names are sorted (`map2` before `map10`), and numbers are those from 0 to the
            greatest.

    Raises:
        InputError: The file cannot be read, or a line of it or an argument is invalid.
    """
    length = seconds(interval)
    order = None if tasks is None else check_order(tasks)
    name = str(path)
    if not name.strip():
        raise InputError.about("path", "expected a path, not an empty text")
    try:
        with Path(path).open("rb") as file:
            magic = file.read(6)
            file.seek(0)
            if magic == _npy.MAGIC:
                return Series.of(_npy.read(path), interval, order, name)
            if magic.startswith(PARQUET):
                return _parquet_list(path, name, length, order)
            head = read_head(Path(path))
            opened = gzip.GzipFile(fileobj=file) if head.compressed else file
            return _csv_list(cast("BinaryIO", opened), name, length, order, head.delimiter)
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise InputError.about(name, f"not readable as gzip: {error}") from None
        raise InputError.about(
            name, "no such file" if isinstance(error, FileNotFoundError) else _why(error)
        ) from None


class _Tasks:
    """Tasks of a list, numbered in the order of their first transfers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numbers: dict[str, int] = {}
        self.number_of_text: dict[str, int] = {}
        """Numbers by the texts of cells: `07` and `7` are one task."""

    def add(self, line: int, column: str, text: str) -> None:
        """Numbers the task of a new text; rejects an invalid name and too many tasks."""
        task = _task(self.name, line, column, text)
        self.number_of_text[text] = self.numbers.setdefault(task, len(self.numbers))
        check_tasks(len(self.numbers), self.name)


def _csv_list(
    opened: IO[bytes], name: str, length: int, order: tuple[str, ...] | None, delimiter: str
) -> Series:
    """A list of transfers in CSV, summed."""
    known = _Tasks(name)
    starts, sources, targets, sizes = array("q"), array("q"), array("q"), array("d")
    with TextIOWrapper(opened, encoding="utf-8-sig", newline="") as text:
        for line, (time, source, target, size) in _lines(text, name, delimiter):
            starts.append(math.floor(_number(name, line, "t_s", time) / length))
            for column, tasks, task in (("src", sources, source), ("dst", targets, target)):
                # Most lines name tasks of earlier lines.
                if task not in known.number_of_text:
                    known.add(line, column, task)
                tasks.append(known.number_of_text[task])
            sizes.append(_number(name, line, "bytes", size))
    if not sizes:
        raise _no_lines(name)
    ends = numpy.array([sources, targets]).T
    return sum_transfers(
        name, length, tuple(known.numbers), numpy.array(starts), ends, numpy.array(sizes), order
    )


def _parquet_list(path: str | PathLike[str], name: str, length: int, order: tuple[str, ...] | None) -> Series:
    """A list of transfers in Parquet, summed. Rows count from line 2, as in CSV with a header."""
    from leeward._tables import batches

    known = _Tasks(name)
    parts: list[tuple[Ints, Ints, Floats]] = []
    rows = 0
    try:
        header, tables = batches(path, list(COLUMNS), limited=True)
        _columns(header, name)
        for batch in tables:
            parts.append(_batch(batch, rows + 2, known, length))
            rows += batch.num_rows
            if rows > MOST_LINES:
                raise _too_many_lines(name)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError.about(name, "not text in UTF-8") from None
    except ValueError as error:
        raise InputError.about(name, str(error)) from None
    if not rows:
        raise _no_lines(name)
    starts, ends, sizes = (numpy.concatenate(column) for column in zip(*parts, strict=True))
    return sum_transfers(name, length, tuple(known.numbers), starts, ends, sizes, order)


def _batch(batch: Any, line: int, known: _Tasks, length: int) -> tuple[Ints, Ints, Floats]:
    """Interval, ends and bytes of each row of a batch with `COLUMNS`; rejects the first invalid cell.

    Args:
        batch: Record batch.
        line: Line of its first row.
        known: Tasks of earlier rows; takes those of this batch.
        length: Length of an interval, in seconds.
    """
    time, source, target, size = batch.columns
    times, sizes = _cells_as_numbers(time), _cells_as_numbers(size)
    ends = [_distinct(column) for column in (source, target)]
    # Cells are checked row by row, and from left to right.
    invalid = [
        (int(row), column)
        for column, valid in ((0, abs(times) <= _LATEST_S), (3, (sizes >= 0) & (sizes <= MOST_BYTES)))
        for row in numpy.flatnonzero(~valid)[:1]
    ]
    first_invalid = min(invalid, default=(batch.num_rows, 0))
    firsts = sorted(
        (int(row), column, text)
        for column, (texts, _, rows) in enumerate(ends, 1)
        for text, row in zip(texts, rows, strict=True)
        if text not in known.number_of_text
    )
    for row, column, text in firsts:
        if (row, column) < first_invalid and text not in known.number_of_text:
            known.add(line + row, COLUMNS[column], text)
    if invalid:
        row, column = first_invalid
        [text] = _texts(batch.column(column).slice(row, 1))
        _number(known.name, line + row, COLUMNS[column], text)
    numbers = [
        numpy.array([known.number_of_text[text] for text in texts], dtype=numpy.int64)[text_of]
        for texts, text_of, _ in ends
    ]
    return numpy.floor(times / length).astype(numpy.int64), numpy.column_stack(numbers), sizes


def _cells_as_numbers(column: Any) -> Floats:
    """Cells of a column of numbers or texts; those that are no numbers are NaN."""
    if str(column.type) == "string":
        texts, text_of, _ = _distinct(column)
        return numpy.array([_parse(text) for text in texts], dtype=numpy.float64)[text_of]
    numbers: Floats = column.cast("float64", safe=False).fill_null(math.nan).to_numpy()
    return numbers


def _distinct(column: Any) -> tuple[list[str], Ints, Ints]:
    """Distinct texts of a column, the index of each cell's text, and the first row of each text."""
    encoded = column.dictionary_encode(null_encoding="encode")
    text_of = encoded.indices.to_numpy().astype(numpy.int64)
    first = numpy.empty(len(encoded.dictionary), dtype=numpy.int64)
    # Of several values for one place, the last one stays.
    first[text_of[::-1]] = numpy.arange(len(text_of))[::-1]
    return _texts(encoded.dictionary), text_of, first


def _texts(column: Any) -> list[str]:
    """Cells of a column as a list in CSV has them."""
    return ["" if text is None else text.strip() for text in column.cast("string").to_pylist()]


def sum_transfers(
    name: str,
    length: int,
    tasks: Sequence[str],
    starts: Ints,
    ends: Ints,
    sizes: Floats,
    order: Sequence[str] | None = None,
) -> Series:
    """Sums transfers by interval and pair.

    Args:
        name: Name of the list in errors.
        length: Length of an interval, in seconds.
        tasks: Names of tasks.
        starts: Number of each transfer's interval, shape (transfers,), at least one.
        ends: Sender and receiver of each, as indices into `tasks`, shape (transfers, 2).
        sizes: Bytes of each, shape (transfers,).
        order: All tasks in the order of matrices; by default names are sorted.

    Raises:
        InputError: There are too many tasks, or a task is not in `order`.
    """
    names, places = _places(tasks, name, None if order is None else tuple(order))
    first = int(starts.min())
    intervals = int(starts.max()) - first + 1
    ends = places[ends]
    interval_of = starts - first
    counted = sizes >= LEAST_BYTES
    pairs, pair_of = numpy.unique(ends[counted], axis=0, return_inverse=True)
    check_values(intervals, len(pairs), name)
    cells = interval_of[counted] * len(pairs) + pair_of.reshape(-1)
    total = numpy.bincount(cells, sizes[counted], minlength=intervals * len(pairs))
    values = total.astype(numpy.float64).reshape(intervals, len(pairs))
    if (values > MOST_BYTES).any():
        over, pair = numpy.argwhere(values > MOST_BYTES)[0]
        source, target = (names[end] for end in pairs[pair])
        message = f"{source} to {target}, at {(first + int(over)) * length} s: more than {MOST_BYTES:g} bytes"
        raise InputError.about(name, message)
    return Series(names, length, pairs.reshape(-1, 2), values)


def _places(
    tasks: Collection[str], name: str, order: tuple[str, ...] | None
) -> tuple[tuple[str, ...], numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]]:
    """Names of all tasks in order, and the position of each known task in this order."""
    if order is None and all(re.fullmatch(r"\d{1,18}", task, re.ASCII) for task in tasks):
        check_tasks(max(map(int, tasks)) + 1, name)
        order = tuple(str(number) for number in range(max(map(int, tasks)) + 1))
        places = [int(task) for task in tasks]
    else:
        check_tasks(len(tasks), name)
        order = tuple(sorted(tasks, key=lambda task: (natural(task), task))) if order is None else order
        place_of = {task: place for place, task in enumerate(order)}
        for task in tasks:
            if task not in place_of:
                raise InputError.about(name, f"`{task}`: not one of the {len(order)} tasks that were named")
        places = [place_of[task] for task in tasks]
    return order, numpy.array(places, dtype=numpy.int64)


def _lines(text: TextIOWrapper, name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Cells of `COLUMNS` in each line, with its number from 1."""
    rows = csv.reader(_limited_lines(text, name), delimiter=delimiter, strict=True)
    columns: list[int] | None = None
    try:
        for row in rows:
            if not row:
                continue
            if columns is None:
                columns = _columns([cell.strip() for cell in row], name)
                width = len(row)
                continue
            if len(row) != width:
                message = f"{len(row)} columns, but the header has {width}"
                raise InputError(name, rows.line_num, None, None, message)
            yield rows.line_num, [row[column].strip() for column in columns]
    except csv.Error as error:
        raise InputError(name, rows.line_num, None, None, f"not readable as CSV: {error}") from None
    except UnicodeDecodeError:
        # Text is decoded in pieces longer than a line.
        raise InputError.about(name, "not text in UTF-8") from None
    except EOFError:
        raise InputError.about(name, "the gzip data ends early: is the file truncated?") from None
    except zlib.error as error:
        raise InputError.about(name, f"not readable as gzip: {error}") from None
    if columns is None:
        raise InputError.about(name, f"empty; expected a header with the columns {', '.join(COLUMNS)}")


def _limited_lines(text: TextIOWrapper, name: str) -> Iterator[str]:
    """Lines, with limits on their length and number."""
    number = 0
    while line := text.readline(_LONGEST):
        number += 1
        if len(line) == _LONGEST and not line.endswith("\n"):
            raise _too_long(name, number)
        if number > MOST_LINES + 1:
            raise _too_many_lines(name)
        yield line


def _columns(header: list[str], name: str) -> list[int]:
    for column in COLUMNS:
        if header.count(column) != 1:
            problem = "given twice" if column in header else f"missing; there are: {', '.join(header)}"
            raise InputError(name, 1, None, column, f"this column is {problem}"[:300])
    return [header.index(column) for column in COLUMNS]


def _number(name: str, line: int, column: str, text: str) -> float:
    value = _parse(text)
    sizes = column == "bytes"
    if not (is_bytes(value) if sizes else abs(value) <= _LATEST_S):
        expected = f"bytes, 0 to {MOST_BYTES:g}" if sizes else f"seconds, at most {_LATEST_S:g} either way"
        raise InputError(name, line, None, column, f"`{text[:40]}`: expected {expected}")
    return value


def _parse(text: str) -> float:
    """The number that a text holds; NaN if it holds none."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _task(name: str, line: int, column: str, text: str) -> str:
    if not text or not text.isprintable():
        result = f"`{text[:40]!a}`" if text else "empty"
        raise InputError(name, line, None, column, f"{result}; expected the name or number of a task")
    if len(text) >= _LONGEST:
        raise _too_long(name, line)
    # `07` and `7` are one number.
    return str(int(text)) if re.fullmatch(r"\d{1,18}", text, re.ASCII) else text


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _no_lines(name: str) -> InputError:
    return InputError.about(name, "no lines; expected at least one transfer")


def _too_long(name: str, line: int) -> InputError:
    return InputError(name, line, None, None, f"longer than {_LONGEST:,} characters")


def _too_many_lines(name: str) -> InputError:
    return InputError.about(name, f"more than {MOST_LINES:,} lines")
