"""Columns of latency and stage files, a batch of rows at a time, as numbers and texts.

Columns are found by name; a column with a unit has it in its name (`latency_ms`). Invalid numbers are
distinguished from absent ones.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute, csv, parquet

from leeward._csv_errors import find_error
from leeward._table_head import Head, Kind
from leeward.errors import InputError
from leeward.telemetry import Discards

BATCH = 1 << 17
"""Number of rows of a batch."""
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
"""Nanoseconds in each unit of time."""
_MOST_LETTERS = 160
"""Greatest number of characters of an error of Arrow in a message."""
_MICROS = {"s": 1e6, "ms": 1e3, "us": 1.0}
"""Microseconds in each unit of a timestamp."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers.

    Attributes:
        values: Numbers; 0 for a missing or invalid one.
        missing: True for an empty cell.
        invalid: True for a text that is not a finite number.
        texts: The cells.
    """

    values: NDArray[numpy.float64]
    missing: NDArray[numpy.bool_]
    invalid: NDArray[numpy.bool_]
    texts: Any


class Rows:
    """Valid rows of a batch; others are counted with a reason.

    Attributes:
        rows: True for each valid row.
        weights: Number of operations in each row.
    """

    def __init__(self, file: Path, first: int, rows: int, discards: Discards) -> None:
        """Takes the file, the number of the batch's first row, the number of its rows, and the counts."""
        self.rows = numpy.ones(rows, dtype=bool)
        self.weights = numpy.ones(rows, dtype=numpy.int64)
        self._file, self._first, self._discards = file, first, discards

    def drop(self, reason: str, where: NDArray[numpy.bool_], field: str = "", texts: Any = None) -> None:
        """Counts further invalid rows; examples show the cell."""
        invalid_rows = numpy.flatnonzero(where & self.rows)
        self.rows[invalid_rows] = False
        examples = [
            f"{self._file} row {self._first + row}" + (f": {field} `{texts[row].as_py()}`" if field else "")
            for row in invalid_rows[:3].tolist()
        ]
        self._discards.count(reason, int(self.weights[invalid_rows].sum()), *examples)

    def numbers(self, field: str, column: Numbers, reason: str | None) -> None:
        """Counts rows without a number; rows with an empty cell count under `reason`, if given."""
        if reason is not None:
            self.drop(reason, column.missing)
        self.drop("not-a-number", column.invalid, field, column.texts)


def batches(
    head: Head, names: Sequence[str], times: Collection[str] = (), lists: Collection[str] = ()
) -> Iterator[Any]:
    """Rows of a file as record batches of the wanted columns; those of CSV are texts.

    Args:
        head: Head of the file.
        names: Names of columns.
        times: Columns that may be of timestamps or dates.
        lists: Columns that may be of lists.

    Raises:
        InputError: The file cannot be read to its end, or a column is of another type.
    """
    for name in names:
        kinds: list[Kind] = ["numbers", "texts"]
        if name in times:
            kinds.append("times")
        if name in lists:
            kinds.append("lists")
        head.check_type(name, *kinds)
    with _table_errors(head.path):
        if head.parquet:
            with parquet.ParquetFile(head.path) as file:
                yield from file.iter_batches(BATCH, columns=list(names))
            return
        with _open_csv(head, names) as reader:
            for batch in reader:
                yield batch.select(list(names))


def _open_csv(head: Head, texts: Sequence[str]) -> Any:
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(texts, pyarrow.string()), strings_can_be_null=True, null_values=[""]
    )
    stream = pyarrow.input_stream(str(head.path), compression="gzip" if head.compressed else None)
    return csv.open_csv(stream, None, csv.ParseOptions(delimiter=head.delimiter), options)


class _table_errors:  # noqa: N801 (it is used as a function)
    """Adds the name of the file to errors of Arrow."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (pyarrow.ArrowException, OSError, EOFError)):
            if self._path.suffix != ".parquet" and (csv_error := find_error(self._path)):
                raise csv_error from None
            # An error may quote binary data at length.
            text = "".join(letter if letter.isprintable() else "?" for letter in str(error).splitlines()[0])
            text = f"{text[:_MOST_LETTERS]}..." if len(text) > _MOST_LETTERS else text
            raise InputError.about(str(self._path), f"not readable as a table: {text}") from None


def in_unit(path: Path, names: Sequence[str], name: str, needed: bool) -> tuple[str, float] | None:
    """Column of a time span, such as `latency_ms`, and the nanoseconds of its unit.

    Raises:
        InputError: There are several columns, or none and it is required.
    """
    matches = [(f"{name}_{unit}", size) for unit, size in UNITS.items() if f"{name}_{unit}" in names]
    if len(matches) == 1:
        return matches[0]
    if not matches and not needed and name not in names:
        return None
    expected = ", ".join(f"{name}_{unit}" for unit in UNITS)
    if matches:
        raise InputError(
            str(path), None, None, matches[1][0], f"beside `{matches[0][0]}`: expected one of {expected}"
        )
    has = f"; it has {', '.join(names)}" if names else ""
    raise InputError(str(path), None, None, name, f"expected a column with its unit: one of {expected}{has}")


def numbers(column: Any) -> Numbers:
    """A column as numbers."""
    column = plain(column)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    try:
        cast = compute.cast(column, pyarrow.float64())
    except pyarrow.ArrowException:
        # A single invalid text makes the cast of the column fail.
        cast = pyarrow.array([_number(value) for value in column.to_pylist()], pyarrow.float64())
    values = compute.fill_null(cast, float("nan")).to_numpy(zero_copy_only=False).copy()
    invalid = ~numpy.isfinite(values) & ~missing
    values[~numpy.isfinite(values)] = 0.0
    return Numbers(values, missing, invalid, column)


def _number(value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        return float("nan")


def micros(column: Any, unit_ns: float | None) -> Numbers:
    """Points in time as whole microseconds since 1970.

    Args:
        column: Numbers, if a unit is given; else timestamps or texts in ISO 8601; without a zone,
            they are in UTC.
        unit_ns: Nanoseconds of the unit of the numbers.
    """
    if unit_ns is not None:
        in_units = numbers(column)
        # A double has a resolution of a quarter of a microsecond for seconds of this century.
        values = numpy.rint(in_units.values * (unit_ns / 1e3))
        far = numpy.abs(values) >= 2.0**53
        values[far] = 0.0
        return Numbers(values, in_units.missing, in_units.invalid | far, in_units.texts)
    column = plain(column)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    column_type = column.type
    if pyarrow.types.is_timestamp(column_type) or pyarrow.types.is_date(column_type):
        # For one time out of range, Arrow would refuse the whole column, or let this time overflow.
        days = pyarrow.types.is_date32(column_type)
        ticks = compute.cast(column, pyarrow.int32() if days else pyarrow.int64())
        stated = compute.fill_null(ticks, 0).to_numpy(zero_copy_only=False)
        if pyarrow.types.is_timestamp(column_type):
            values = stated // 1000 * 1.0 if column_type.unit == "ns" else stated * _MICROS[column_type.unit]
        else:
            values = stated * (_MICROS["s"] * 86_400 if days else _MICROS["ms"])
        far = numpy.abs(values) >= 2.0**53
        values[far] = 0.0
        return Numbers(values, missing, far, ticks)
    for kind in (pyarrow.timestamp("us", "UTC"), pyarrow.timestamp("us")):
        try:
            whole = compute.cast(compute.cast(column, kind, safe=False), pyarrow.int64())
            break
        except pyarrow.ArrowException:
            continue
    else:
        whole = pyarrow.array([_moment(value) for value in column.to_pylist()], pyarrow.int64())
    invalid = whole.is_null().to_numpy(zero_copy_only=False) & ~missing
    return Numbers(compute.fill_null(whole, 0).to_numpy(zero_copy_only=False) + 0.0, missing, invalid, column)


def _moment(value: object) -> int | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def texts(column: Any) -> Any:
    """A column as texts; an empty cell is null."""
    cells = compute.cast(plain(column), pyarrow.string())
    return compute.if_else(compute.equal(cells, ""), None, cells)


def lists(column: Any) -> Any:
    """A column of lists of names as texts, with spaces between names. A column of texts is unchanged."""
    column = plain(column)
    if pyarrow.types.is_list(column.type) or pyarrow.types.is_large_list(column.type):
        # An absent element of a list is not a name.
        rows = [" ".join(str(name) for name in row or () if name is not None) for row in column.to_pylist()]
        return pyarrow.array(rows, pyarrow.string())
    return texts(column)


def plain(column: Any) -> Any:
    """A dictionary-encoded column as plain values."""
    if pyarrow.types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column
