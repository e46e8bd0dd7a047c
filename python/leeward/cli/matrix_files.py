"""Output files of a matrix: NumPy files, and squares of numbers as CSV."""

from pathlib import Path
from typing import Any


def write_square(out: Path, matrix: Any) -> None:
    """Writes a matrix as a NumPy file or a square of numbers."""
    from leeward._files import atomic_file

    with atomic_file(out) as temporary:
        WRITERS[out.suffix](temporary, matrix)


def _write_npy(path: Path, result: Any) -> None:
    import numpy

    with path.open("wb") as file:
        numpy.save(file, result, allow_pickle=False)


def _write_csv(path: Path, result: Any) -> None:
    # The shortest text of a double reads back as the same number.
    lines = (",".join(map(repr, row)) for row in result.tolist())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


WRITERS = {".npy": _write_npy, ".csv": _write_csv}
"""Writer of each suffix of a file name."""
