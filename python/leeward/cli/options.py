"""Options and parsers of option values that several commands share, and names of flags in errors."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from leeward._texts import split_at_commas
from leeward.errors import MOST_SEED, InputError

Kind = TypeVar("Kind", bound=StrEnum)

LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,...",
        help="Labels that hosts must have; several values of one key are alternatives.",
    ),
]
"""Option `--label`."""


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Parser of whole numbers within bounds, for `parser=`."""

    def number(text: str) -> int:
        # The default reaches the parser as a number.
        digits = str(text).strip()
        try:
            value = int(digits) if digits.isascii() and len(digits) < 40 else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise typer.BadParameter(f"`{digits}`: expected a whole number from {least} to {most}")
        return value

    return number


parse_seed = whole_number(0, MOST_SEED)


def split_list(text: str | None) -> list[str] | None:
    """Parts of a list with commas: `uniform,rehdfs:offsets=[1,2]` has two."""
    return None if text is None else [part.strip() for part in split_at_commas(text)]


def read_labels(labels: Iterable[str] | None) -> dict[str, list[str]]:
    """Labels of `--label KEY=VALUE`: the accepted values by key."""
    values: dict[str, list[str]] = {}
    for label in labels or ():
        key, equals, value = label.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"`{label}`: expected KEY=VALUE", param_hint="--label")
        values.setdefault(key, []).append(value)
    return values


def parse_path(text: str) -> Path:
    """Parses the path of a file or folder, for `parser=`."""
    if not str(text).strip():
        raise typer.BadParameter("expected a path, not an empty text")
    return Path(text)


def choice(kind: type[Kind]) -> Callable[[str], Kind]:
    """Parser of the values of an enum, for `parser=`."""

    def word(text: str) -> Kind:
        try:
            return kind(str(text))
        except ValueError:
            message = f"`{text}`: expected one of {', '.join(kind)}"
            raise typer.BadParameter(message) from None

    return word


def words(values: Iterable[str]) -> Callable[[str], list[str]]:
    """Values that a shell offers for completion, for `autocompletion=`."""

    def matching(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return matching


def choice_option(kind: type[Kind], *names: str, description: str) -> Any:
    """An option with one of the values of an enum.

    Args:
        kind: The enum.
        names: Names of the option; by default the name of the parameter.
        description: Help text.
    """
    return typer.Option(
        *names, metavar="|".join(kind), parser=choice(kind), autocompletion=words(kind), help=description
    )


@contextmanager
def name_flags(**flags: str) -> Iterator[None]:
    """Replaces the name of an argument in an error by its flag.

    Args:
        flags: Flag of each argument.
    """
    try:
        yield
    except InputError as error:
        # If an argument has several values, the invalid one follows: `settings telemetry.delay=2`.
        argument, _, value = error.file.partition(" ")
        if error.line is not None or argument not in flags:
            raise
        flag = " ".join(part for part in (flags[argument], value) if part)
        flag_error = InputError(flag, None, None, error.field, error.message)
        for note in getattr(error, "__notes__", []):
            flag_error.add_note(note)
        raise flag_error from error


_CLUSTER_FIELDS = ("hosts_per_rack", "nic", "racks", "rack_link", "oversubscription", "pods", "devices")
"""Fields of cluster files that scenarios do not have."""


@contextmanager
def hint_schema(kind: str, file: str | None = None) -> Iterator[None]:
    """Adds a hint to errors about a line or field of a file: the command that lists its fields.

    Args:
        kind: Kind of the file, as `leeward schema` calls it.
        file: File whose errors get the hint; by default any.
    """
    try:
        yield
    except InputError as error:
        position = error.line or error.field
        # A name that another file lacks is no fault of a field.
        if position and file in (None, error.file) and "no such" not in str(error):
            if not getattr(error, "__notes__", None):
                noun = f"an {kind.upper()}" if kind == "slo" else f"a {kind}"
                error.add_note(f"leeward schema {kind} lists every field of {noun} file")
            if kind == "scenario" and error.field in _CLUSTER_FIELDS:
                error.add_note("this is a cluster file; a scenario names it in its field `cluster`")
        raise
