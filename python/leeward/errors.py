"""The error for invalid input."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import index
from os import PathLike
from typing import Self

MOST_SEED = 2**64 - 1
"""Greatest seed."""


class InputError(ValueError):
    """Invalid input: a file, a text, a table or an argument. Has the place and the expected value.

    Printed as one line: `cluster.yaml:7:12: racks[3].link: ...`, `writer: ...`.

    Attributes:
        file: The file as the user named it, or a stand-in: `<text>`, `flows`, the name of an argument, or of
            an option on the command line.
        line: Line from 1, where known.
        column: Column of that line from 1, where known.
        field: The field, as a path (`racks[3].link`) or the name of a table's column, where known.
        message: Problem and expected value. For a table it begins with the row, counted from 0.
    """

    def __init__(
        self, file: str, line: int | None, column: int | None, field: str | None, message: str
    ) -> None:
        """Takes the attributes, in order."""
        # The number of a system error does not help the user.
        message = re.sub(r" \(os error \d+\)", "", message)
        super().__init__(file, line, column, field, message)
        self.file = file
        self.line = line
        self.column = column
        self.field = field
        self.message = message

    @classmethod
    def about(cls, file: str | PathLike[str], message: str) -> Self:
        """Error about a whole file or argument, without a line or field."""
        return cls(str(file), None, None, None, message)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.field, self.message) if part is not None)


def whole_number(argument: str, value: int, least: int, most: int | None = None) -> int:
    """A whole number within bounds.

    Raises:
        InputError: The number is out of bounds.
        TypeError: The value is not a whole number.
    """
    if index(value) < least or (most is not None and index(value) > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError.about(argument, f"`{value}`: expected a whole number {bounds}")
    return index(value)


def label_values(labels: Mapping[str, str | Iterable[str]] | None) -> dict[str, list[str]]:
    """Accepted values of labels by key; a single text is one value."""
    return {key: names(values) for key, values in (labels or {}).items()}


def names(value: str | Iterable[str]) -> list[str]:
    """A list of names; a single text is one name."""
    return [value] if isinstance(value, str) else list(value)


@contextmanager
def name_arguments() -> Iterator[None]:
    """Replaces a field of a request in errors by the argument of the same name."""
    try:
        yield
    except InputError as error:
        if error.file != "request" or error.field is None or error.line is not None:
            raise
        raise InputError.about(error.field, error.message) from None
