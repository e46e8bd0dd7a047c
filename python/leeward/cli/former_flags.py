"""Former names of flags: they work for one release, and a line on stderr gives the present name."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from leeward.cli.notes import print_warning
from leeward.errors import InputError

FORMER_FLAGS: dict[str, dict[str, str]] = {
    "agent": {"--device": "--disk"},
    "demo": {"--page": "--report"},
    "device profile": {"--seconds": "--for", "--engine": "--io-engine"},
    "hotspots": {"--keep": "--cache"},
    "impact": {
        "--keep": "--cache",
        "--bucket": "--bucket-width",
        "--buckets": "--show-buckets",
        "--stages": "--query-stages",
        "--sizes": "--size-edges",
        "--ratios": "--ratio-edges",
    },
    "matrix capture": {"--map": "--addresses", "--size": "--count", "--tasks": "--only-tasks"},
    "matrix predict": {"--tasks": "--only-tasks"},
    "matrix score": {"--tasks": "--only-tasks"},
    "plan": {"--keep": "--cache", "--port": "--port-rate", "--threshold": "--hot"},
    "slo curve": {"--plot": "--picture"},
    "slo model": {"--sizes": "--size-model"},
    "slo pack": {"--threads": "--jobs", "--write": "--out"},
    "top": {"--links": "--top"},
}
"""Present name of each former flag, by command."""
IN_SECONDS = ("--seconds",)
"""Former flags whose value was a number of seconds, without a unit."""


def replace_former_flags(arguments: Sequence[str]) -> list[str]:
    """Arguments of the command line with the present names of flags.

    Prints a line to stderr for each former name.

    Args:
        arguments: Arguments after the name of the program.

    Raises:
        InputError: A flag is given by its former and by its present name.
    """
    command, former = _command(arguments)
    flags = takewhile(lambda argument: argument != "--", arguments)
    given = {flag.partition("=")[0] for flag in flags}
    for old, new in former.items():
        if old in given and new in given:
            message = f"is the former name of {new}; expected only one of the two"
            raise InputError.about(f"{command}: {old}", message)
        if old in given:
            print_warning(f"{old} is now {new}; the former name will be removed")
    return list(_replaced(arguments, former))


def _command(arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The command with former flags that the arguments begin with, and these flags."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    for length in (2, 1):
        command = " ".join(words[:length])
        if command in FORMER_FLAGS:
            return command, FORMER_FLAGS[command]
    return "", {}


def _replaced(arguments: Sequence[str], former: dict[str, str]) -> Iterator[str]:
    """The arguments; those behind `--` are no flags."""
    rest = iter(arguments)
    in_seconds = False
    for argument in rest:
        flag, equals, value = argument.partition("=")
        if argument == "--":
            yield from (argument, *rest)
        elif flag in former:
            in_seconds = flag in IN_SECONDS and not equals
            unit = "s" if flag in IN_SECONDS and equals else ""
            yield former[flag] + equals + value + unit
        else:
            yield f"{argument}s" if in_seconds else argument
            in_seconds = False
