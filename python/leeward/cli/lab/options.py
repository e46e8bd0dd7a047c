"""Options that the commands of the lab share."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from leeward.cli.notes import print_warning
from leeward.cli.options import whole_number
from leeward.errors import InputError

DilationOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_number(1, 100_000),
        help="Real seconds for each virtual second. [default: 30 for each rack, at least 60]",
        show_default=False,
    ),
]
BoundOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Largest lateness of 99 % of the packets, in virtual time; a later run does not count."
        " [default: 5us]",
        show_default=False,
    ),
]
DEFAULT_NAME = "lab"
"""Name of a lab without a name."""
NewNameOption = Annotated[
    str,
    typer.Option("--name", metavar="NAME", help="Name of the lab: lowercase letters, digits and hyphens."),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the lab. [default: the only one that is up]",
        show_default=False,
    ),
]


def print_failures(name: str | None = None) -> None:
    """Prints the errors that ended labs: that of a name, or all."""
    from leeward import lab

    for failure in lab.failures():
        if name in {None, failure.name}:
            at = time_of_day(failure.at_s)
            print_warning(f"lab {failure.name} ended with an error at {at}: {failure.text}")


def time_of_day(seconds: float) -> str:
    """A Unix time as text."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S UTC")


def name_of_lab(name: str | None) -> str:
    """Name of a lab, or of the only lab that is up.

    Raises:
        InputError: No name, and several labs are up.
        OSError: No name, and no lab is up.
    """
    from leeward import lab

    if name is not None:
        return name
    names = [each.name for each in lab.labs() if each.up]
    if not names:
        print_failures()
        raise OSError("no lab is up: bring one up with `leeward lab up`")
    if len(names) > 1:
        raise InputError.about("name", f"labs {', '.join(names)} are up: name one")
    return names[0]
