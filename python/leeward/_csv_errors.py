"""Finds the line of a CSV file that a fast reader rejected, and the expected content.

The errors of fast readers hardly describe an invalid line. This module searches the file for the line.
"""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, cast

from leeward._table_head import DELIMITERS, GZIP
from leeward.errors import InputError

MOST_LINE = 2_000_000
"""Limit on the length of a line."""
_MOST_LETTERS = 60
"""Limit on the characters of a line in an error."""
_MOST_NAMES = 8
"""Limit on the columns that an error names."""


def find_error(path: str | PathLike[str], line: int | None = None) -> InputError | None:
    """Describes the error in a CSV file, plain or gzip; None if none is found.

    Args:
        path: Path of the file.
        line: Number of the wrong line, from 1, if known; by default the first wrong line.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            opener = gzip.open if file.read(2) == GZIP else open
        with cast("IO[bytes]", opener(path, "rb")) as opened:
            header = _text(opened.readline()).removeprefix("\ufeff")
            delimiter = max(DELIMITERS, key=header.count)
            columns = next(csv.reader([header], delimiter=delimiter), [])
            before = 1 if line is None else max(line - 1, 1)
            error = _first_invalid_row(
                name, columns, delimiter, islice(opened, before - 1, None), before, line
            )
            opened.seek(0)
            return error or _mixed_line_ends(name, opened)
    except (EOFError, zlib.error):
        return InputError.about(name, "the gzip data ends early: is the file truncated?")
    except (OSError, csv.Error):
        return None


def _first_invalid_row(
    name: str, columns: Sequence[str], delimiter: str, lines: Iterator[bytes], before: int, line: int | None
) -> InputError | None:
    """Describes the first invalid row.

    Args:
        name: Name of the file.
        columns: Columns of its header.
        delimiter: Character between cells.
        lines: Remaining lines of the file.
        before: Number of lines of the file that precede `lines`.
        line: Number of the only line to examine, if given.
    """
    raw_lines: list[bytes] = []

    def texts() -> Iterator[str]:
        for line_read in lines:
            raw_lines.append(line_read)
            yield _text(line_read)

    rows = csv.reader(texts(), delimiter=delimiter, strict=True)
    while True:
        number, first = before + rows.line_num + 1, len(raw_lines)
        if line is not None and number > line:
            return None
        try:
            row = next(rows)
        except StopIteration:
            return None
        except csv.Error as error:
            raw = raw_lines[first] if len(raw_lines) > first else b""
            problem = _reader_error(str(error), raw)
            return InputError(name, number, None, None, f"{_quote_line(raw)}: {problem}") if problem else None
        raw = raw_lines[first]
        if not row:
            del raw_lines[:]
            continue
        if len(row) != len(columns):
            message = f"{len(row):,} columns; expected {_header_text(columns)}"
            return InputError(name, number, None, None, f"{_quote_line(raw)}: {message}")
        if any("\udc80" <= letter <= "\udcff" for cell in row for letter in cell):
            return InputError(name, number, None, None, f"{_quote_line(raw)}: not text in UTF-8")
        del raw_lines[:]


def _mixed_line_ends(name: str, lines: Iterable[bytes]) -> InputError | None:
    """Describes the first line that ends in another way than the lines before it."""
    expected = None
    for number, line in enumerate(lines, 1):
        end = "CR LF" if line.endswith(b"\r\n") else "LF" if line.endswith(b"\n") else None
        expected = expected or end
        if end and end != expected:
            message = f"this line ends in {end}, and the lines before it in {expected}; expected one of them"
            return InputError(name, number, None, None, message)
    return None


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="surrogateescape")


def _reader_error(error: str, line: bytes) -> str | None:
    """Error of Python's reader about the row that begins at a line; None if other readers accept the row."""
    long = "field larger" in error
    if len(line) > MOST_LINE:
        return f"a line of {len(line):,} bytes; expected {MOST_LINE:,} at most"
    if "unexpected end of data" in error or (long and len(line) <= csv.field_size_limit()):
        return "a quoted cell begins here and does not end; expected a closing quote"
    return None if long else "a quote within a cell; expected a doubled quote, in a quoted cell"


def _header_text(columns: Sequence[str]) -> str:
    names = ", ".join(name.strip()[:_MOST_LETTERS] for name in columns[:_MOST_NAMES])
    more = f" and {len(columns) - _MOST_NAMES:,} more" if len(columns) > _MOST_NAMES else ""
    return f"{len(columns):,} as in the header: {names}{more}"


def _quote_line(line: bytes) -> str:
    text = "".join(
        letter if letter.isprintable() else "?" for letter in _text(line.rstrip(b"\r\n")).replace("\t", " ")
    )
    return f"`{text[:_MOST_LETTERS]}...`" if len(text) > _MOST_LETTERS else f"`{text}`"
