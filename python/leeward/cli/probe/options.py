"""Options that the commands of `leeward probe` share: hosts, trains, the secret."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.notes import print_error
from leeward.cli.options import name_flags, parse_path, split_list, whole_number
from leeward.cli.progress import progress
from leeward.errors import InputError
from leeward.probe import Host, parse_hosts

MOST = 2**32 - 1


class Shape(StrEnum):
    """Shapes of a measured mesh in a cluster file."""

    pipe = "pipe"
    hose = "hose"


HostsOption = Annotated[
    str,
    typer.Option(
        metavar="NAME=ADDRESS,...",
        help="Addresses; NAME=ADDRESS names a host.",
        show_default=False,
    ),
]
SecretOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        help="File with the secret that the hosts share; by default none.",
        show_default=False,
    ),
]
BurstsOption = Annotated[
    int,
    typer.Option(metavar="N", parser=whole_number(1, MOST), help="Number of bursts of a train, 1 to 1,000."),
]
PacketsOption = Annotated[
    int,
    typer.Option(
        metavar="N", parser=whole_number(1, MOST), help="Number of packets of a burst, 2 to 10,000."
    ),
]
PayloadOption = Annotated[
    int,
    typer.Option(metavar="N", parser=whole_number(1, MOST), help="Payload of a packet, 64 to 8,972 bytes."),
]
GapOption = Annotated[str, typer.Option(metavar="DURATION", help="Pause between bursts, at most 1s.")]
TransferOption = Annotated[
    str, typer.Option("--for", metavar="DURATION", help="Length of a transfer, 100ms to 1min.")
]
SourceArgument = Annotated[
    str,
    typer.Argument(metavar="FROM", help="Host that listens, or `here` for this machine.", show_default=False),
]
DestinationArgument = Annotated[
    str,
    typer.Argument(
        metavar="TO", help="Host that listens, by an address that FROM reaches.", show_default=False
    ),
]

FLAGS = {
    "hosts": "--hosts",
    "bursts": "--bursts",
    "packets": "--packets",
    "payload": "--payload",
    "gap": "--gap",
    "duration": "--for",
    "rate": "--rate",
    "path_bps": "--rate",
    "every": "--every",
    "lags": "--lags",
    "name": "--name",
    "own": "--own",
}
"""Flag of each argument."""


def hosts_of(text: str) -> list[Host]:
    """Hosts of a list with commas."""
    with name_flags(**FLAGS):
        return parse_hosts([part for part in split_list(text) or [] if part])


def secret_of(file: Path | None) -> str | None:
    """Secret in the first line of a file.

    Raises:
        InputError: The file is empty, or cannot be read.
    """
    if file is None:
        return None
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise InputError.about(str(file), why) from None
    if not lines or not lines[0].strip():
        raise InputError.about(str(file), "expected a secret in the first line")
    return lines[0].strip()


@contextmanager
def survey_progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Names flags in errors, and shows the progress of a survey; yields the function that reports it."""
    before = 0
    advance: Callable[[int], None] | None = None
    with name_flags(**FLAGS), ExitStack() as stack:

        def on_progress(done: int, total: int) -> None:
            nonlocal before, advance
            # The number of steps is known only with the first completed step.
            if not done:
                return
            if advance is None:
                advance = stack.enter_context(progress(name, max(total, 1)))
            advance(done - before)
            before = done

        yield on_progress


def report_failures(errors: Sequence[str], description: str) -> None:
    """Prints failed measurements after all other output, and ends the command if there are any.

    Raises:
        Exit: With code 1, if there are errors.
    """
    if not errors:
        return
    for error in dict.fromkeys(errors):
        print_error(error)
    print_error(f"{len(errors)} {description}")
    raise typer.Exit(1)


def remarks(path: dict[str, object]) -> str:
    """Remarks on the measurement of a path."""
    flags: Sequence[tuple[object, str]] = (
        (path["error"], str(path["error"])),
        (path["sender_limited"], "limited by the sender: a lower bound"),
        (path["overran"], "overran a queue"),
        (path["overrun"], f"{path['overrun']} packets dropped by the receiver"),
    )
    return "; ".join(text for flag, text in flags if flag)
