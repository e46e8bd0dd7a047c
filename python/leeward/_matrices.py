"""Traffic matrices as arguments of decisions: arrays, and files in CSV or of NumPy."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from leeward.errors import InputError

MOST_BYTES = 2.0**62
"""Most bytes of a transfer."""
_CELLS = re.compile(r"\s*[,;\s]\s*")


def read_remaining(matrix: str, tasks: Sequence[str], phase: int = 0) -> list[dict[str, str | int]]:
    """Transfers of a traffic matrix in a file: `from`, `to` (names of tasks), `bytes` and `phase`.

    Args:
        matrix: Path of a CSV or NumPy file.
        tasks: Names of the tasks, in the order of the rows.
        phase: Phase of the transfers, of those that are left.

    Raises:
        InputError: The file is invalid, or has another number of rows.
    """
    rows = rows_of_file(matrix)
    if any(len(row) != len(tasks) for row in rows) or len(rows) != len(tasks):
        message = f"{len(rows)} rows, but there are {len(tasks)} tasks: expected a square"
        raise InputError.about(matrix, message)
    if not all(0 <= value <= MOST_BYTES for row in rows for value in row):
        raise InputError.about(matrix, "expected numbers of bytes, not negative")
    return [
        {"from": start, "to": end, "bytes": f"{value:.0f}B", "phase": phase}
        for start, row in zip(tasks, rows, strict=True)
        for end, value in zip(tasks, row, strict=True)
        if start != end and value >= 0.5
    ]


def rows_of_file(matrix: str | PathLike[str]) -> list[list[float]]:
    """Rows of a traffic matrix in a CSV or NumPy file."""
    if csv_path(matrix) is None:
        return rows_of(matrix)
    try:
        lines = Path(matrix).read_text(encoding="utf-8").splitlines()
        return [[float(cell) for cell in _CELLS.split(line.strip())] for line in lines if line.strip()]
    except OSError as error:
        raise InputError.about(matrix, error.strerror or str(error)) from None
    except ValueError:
        raise InputError.about(matrix, "expected a square of numbers") from None


def csv_path(matrix: Any) -> str | None:
    """Path of a traffic matrix in a CSV file; None for any other matrix."""
    square = os.fspath(matrix) if isinstance(matrix, str | PathLike) else None
    return None if square is None or square.endswith(".npy") else square


def phases(matrix: Any) -> list[list[list[float]]]:
    """Traffic matrices of phases as rows of numbers; one matrix is one phase."""
    if isinstance(matrix, str | PathLike):
        return [rows_of(matrix)]
    if isinstance(matrix, list) and all(isinstance(phase, str | PathLike) for phase in matrix):
        return [rows_of_file(phase) for phase in matrix]
    import numpy

    try:
        dimensions = numpy.ndim(matrix)
    except ValueError:
        dimensions = 0
    return [rows_of(phase) for phase in matrix] if dimensions == 3 else [rows_of(matrix)]


def rows_of(matrix: Any) -> list[list[float]]:
    """A traffic matrix as rows of numbers."""
    import numpy

    from leeward import _npy
    from leeward.matrix.series import check_tasks

    name = str(matrix) if isinstance(matrix, str | PathLike) else "matrix"
    if isinstance(matrix, str | PathLike):
        array = _npy.read(matrix)
    else:
        try:
            array = numpy.asarray(matrix)
        except ValueError:
            array = numpy.zeros(0)
    if array.ndim != 2:
        raise InputError.about(name, "expected a square of numbers")
    _npy.check_numbers(array, name)
    check_tasks(max(array.shape), name)
    return array.astype(numpy.float64).tolist()  # type: ignore[no-any-return]


@contextmanager
def errors_name_file(matrix: Any) -> Iterator[None]:
    """Adds the name of the file to errors about a matrix in a file."""
    try:
        yield
    except InputError as error:
        if error.file != "matrix" or not isinstance(matrix, str | PathLike):
            raise
        raise InputError(str(matrix), None, None, error.field, error.message) from None
