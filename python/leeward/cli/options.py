"""What options of several commands share: bounds of whole numbers, lists with commas, names of flags."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from leeward.errors import MOST_SEED, InputError


def whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers within bounds, for `parser=`."""

    def number(text: str) -> int:
        # A default comes as the number that it is.
        digits = str(text).strip()
        try:
            value = int(digits) if digits.isascii() and len(digits) < 40 else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise typer.BadParameter(f"`{digits}`: expected a whole number from {least} to {most}")
        return value

    return number


seed = whole(0, MOST_SEED)


def listed(text: str | None) -> list[str] | None:
    """The parts of a list with commas, except those within brackets: `uniform,rehdfs:offsets=[1,2]`."""
    if text is None:
        return None
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


@contextmanager
def given_by(**flags: str) -> Iterator[None]:
    """Lets an error about an argument name the flag that gave it.

    Args:
        flags: For the names of arguments, those of the flags.
    """
    try:
        yield
    except InputError as error:
        if error.line is not None or error.file not in flags:
            raise
        raise InputError(flags[error.file], None, None, error.field, error.message) from error
