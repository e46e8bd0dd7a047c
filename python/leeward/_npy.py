"""NumPy files of numbers."""

from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy

from leeward.errors import InputError

Array = numpy.ndarray[tuple[int, ...], numpy.dtype[Any]]
MAGIC = b"\x93NUMPY"
"""Magic bytes of a NumPy file."""


def read(path: str | PathLike[str]) -> Array:
    """Reads an array of numbers.

    Raises:
        InputError: The file cannot be read, or does not hold an array.
    """
    try:
        with Path(path).open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("the magic bytes are missing")
        # A memory map rejects a header whose array is larger than the file.
        array = cast("Array", numpy.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise InputError.about(path, why) from None
    except (ValueError, EOFError, TypeError, OverflowError, SyntaxError) as error:
        raise InputError.about(path, f"not readable as a NumPy array: {_first_line(error)}") from None
    return check_numbers(array, str(path))


def check_numbers(array: Array, name: str) -> Array:
    """Checks that an array holds real numbers.

    Raises:
        InputError: The array holds anything else; the error calls it `name`.
    """
    if array.dtype.kind not in "iuf":
        raise InputError.about(name, f"an array of {array.dtype}; expected numbers")
    return array


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
