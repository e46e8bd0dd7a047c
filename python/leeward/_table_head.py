"""Head of a table file, for all readers of tables: kind, columns, delimiter, compression.

The kind follows from the content of the file, not from its name: Parquet, or text in UTF-8 with a header,
plain or gzip, with commas, semicolons or tabs between cells.
"""

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal, cast

import pyarrow
from pyarrow import parquet, types

from leeward._files import check_once
from leeward.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".parquet")
"""Suffixes of the files that are read from a folder."""
DELIMITERS = ",;\t"
GZIP = b"\x1f\x8b"
"""Magic bytes of gzip."""
PARQUET = b"PAR1"
"""Magic bytes of Parquet."""
_ROWS = 64
"""Number of rows that are examined."""
_LONGEST = 4_000_000
"""Number of bytes that are read; a header cannot be longer."""

Kind = Literal["numbers", "texts", "bytes", "times", "lists"]
"""Kind of a Parquet column; the entries of lists are numbers or texts."""
_TESTS: dict[Kind, Sequence[Any]] = {
    "numbers": (types.is_integer, types.is_floating, types.is_decimal),
    "texts": (types.is_string, types.is_large_string),
    "bytes": (types.is_binary, types.is_large_binary),
    "times": (types.is_timestamp, types.is_date),
    "lists": (types.is_list, types.is_large_list),
}


@dataclass(frozen=True)
class Head:
    """Head of a file.

    Attributes:
        path: Path of the file.
        columns: Names of the columns, as written.
        types: Arrow types by column, for Parquet; empty for CSV.
        delimiter: Character between cells of CSV; empty for Parquet.
        compressed: True for CSV in gzip.
        rows: First rows of CSV with as many cells as the header; empty for Parquet.
        content: The table, if it is in memory; then the path is its name.
    """

    path: Path
    columns: tuple[str, ...]
    types: dict[str, pyarrow.DataType]
    delimiter: str
    compressed: bool
    rows: tuple[tuple[str, ...], ...]
    content: pyarrow.Table | None = None

    @property
    def parquet(self) -> bool:
        """True for Parquet, false for CSV."""
        return not self.delimiter

    def check_names(self) -> None:
        """Checks that no two columns have the same name, ignoring case.

        Raises:
            InputError: A name occurs twice.
        """
        seen: set[str] = set()
        for column in self.columns:
            if column.lower() in seen:
                raise InputError(str(self.path), 1, None, column[:80], "this column is given twice")
            seen.add(column.lower())

    def check_type(self, column: str, *kinds: Kind) -> None:
        """Checks that a column has an expected type; all columns of CSV are texts.

        Raises:
            InputError: The column is of another type.
        """
        column_type = self.types.get(column)
        if column_type is not None and not _has_kind(column_type, kinds):
            *others, last = kinds
            message = f"a column of `{column_type}`; expected {', '.join(others)} or {last}"
            raise InputError(str(self.path), None, None, column[:80], message)

    def first(self, column: str) -> str | None:
        """First value of a column as text; None if the examined rows have none.

        Raises:
            InputError: The file is not readable.
        """
        if not self.parquet:
            index = self.columns.index(column)
            return next((row[index] for row in self.rows if row[index].strip()), None)
        if not _has_kind(self.types[column], ("numbers", "texts")):
            return None
        if self.content is not None:
            cells = self.content[column].slice(0, _ROWS).to_pylist()
        else:
            with _parquet_errors(self.path), parquet.ParquetFile(self.path) as file:
                batch = next(file.iter_batches(_ROWS, columns=[column]), None)
                cells = [] if batch is None else batch.column(0).to_pylist()
        return next(
            (text for text in map(str, (cell for cell in cells if cell is not None)) if text.strip()), None
        )


def _has_kind(column_type: pyarrow.DataType, kinds: Sequence[Kind]) -> bool:
    """True for a type of one of these kinds; a dictionary type is of the kind of its values."""
    if types.is_dictionary(column_type):
        column_type = column_type.value_type
    if types.is_null(column_type):
        return True
    for kind in kinds:
        if any(test(column_type) for test in _TESTS[kind]):
            return kind != "lists" or _has_kind(column_type.value_type, ("numbers", "texts"))
    return False


def files(
    paths: Sequence[str | PathLike[str]], argument: str, suffixes: tuple[str, ...] = SUFFIXES
) -> list[Path]:
    """Files as given, and the files of given folders.

    Args:
        paths: Files and folders. A folder stands for its files that end in one of the suffixes, including
            subfolders, sorted by name; hidden files are left out.
        argument: Name of the argument with the paths.
        suffixes: Suffixes of the files of a folder.

    Raises:
        InputError: A path is missing, a folder has no such file, or a file is given twice.
    """
    result: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [
                one
                for one in sorted(path.rglob("*"))
                if one.name.lower().endswith(suffixes)
                and not any(part.startswith(".") for part in one.relative_to(path).parts)
                and one.is_file()
            ]
            if not inside:
                raise InputError.about(path, f"no file in it ends in {', '.join(suffixes)}")
            result.extend(inside)
        elif path.exists():
            result.append(path)
        else:
            raise InputError.about(path, "no such file or folder")
    check_once(result, argument)
    return result


def head_of_table(table: pyarrow.Table, name: str) -> Head:
    """Head of a table in memory, by its name in errors."""
    types_by_name = dict(zip(table.column_names, table.schema.types, strict=True))
    return Head(Path(name), tuple(table.column_names), types_by_name, "", False, (), table)


def head(path: Path) -> Head:
    """Reads the beginning of a file.

    Raises:
        InputError: The file is empty, or neither CSV nor Parquet.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(PARQUET))
        if magic == PARQUET:
            return _parquet_head(path)
        compressed = magic.startswith(GZIP)
        with cast("IO[bytes]", (gzip.open if compressed else open)(path, "rb")) as opened:
            content = opened.read(_LONGEST)
        lines = content.decode(
            "utf-8-sig", errors="strict" if len(content) < _LONGEST else "ignore"
        ).splitlines()
    except gzip.BadGzipFile as error:
        raise InputError.about(path, f"not readable as gzip: {error}") from None
    except OSError as error:
        raise InputError.about(path, error.strerror or str(error)) from None
    except EOFError:
        raise InputError.about(path, "the gzip data ends early: is the file truncated?") from None
    except zlib.error as error:
        raise InputError.about(path, f"not readable as gzip: {error}") from None
    except UnicodeDecodeError:
        raise InputError.about(path, "neither Parquet nor text in UTF-8") from None
    if not lines or not lines[0].strip():
        raise InputError.about(path, "empty; expected a header with names of columns")
    delimiter = max(DELIMITERS, key=lines[0].count)
    try:
        names, *rows = csv.reader(lines[: _ROWS + 1], delimiter=delimiter)
    except csv.Error as error:
        raise InputError.about(path, f"not readable as CSV: {error}") from None
    whole = tuple(tuple(row) for row in rows if len(row) == len(names))
    return Head(path, tuple(names), {}, delimiter, compressed, whole)


def _parquet_head(path: Path) -> Head:
    with _parquet_errors(path):
        schema = parquet.read_schema(path)
    return Head(path, tuple(schema.names), {field.name: field.type for field in schema}, "", False, ())


class _parquet_errors:  # noqa: N801 (it is used as a function)
    """Adds the name of the file to errors of Arrow."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (pyarrow.ArrowException, OSError, ValueError)):
            raise InputError.about(
                self._path, f"not readable as Parquet: {str(error).splitlines()[0]}"
            ) from None
