"""The traces that Leeward knows, from `registry.toml`."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from leeward.errors import InputError

NO_LICENCE = "none stated"


@dataclass(frozen=True)
class TraceFile:
    """A file of a set."""

    name: str
    """Below the folder of the set."""
    bytes: int
    """Its size; of what is in it if its name ends in .gz."""
    sha256: str
    """Its checksum; of what is in it if its name ends in .gz."""
    repository: str
    commit: str
    path: str | None = None
    """Where it is in the repository; None if it cannot be fetched."""
    by_hand: str | None = None
    """What it is made of, if it cannot be fetched."""

    @property
    def compressed(self) -> bool:
        """Whether it lies on disk as gzip, and upstream as what is in it."""
        return self.name.endswith(".gz")


@dataclass(frozen=True)
class TraceSet:
    """Traces that were published together."""

    name: str
    what: str
    repository: str
    """On GitHub."""
    commit: str
    """At which it was read."""
    licence: str
    """`none stated` if the repository has none for it."""
    cite: str
    files: tuple[TraceFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in self.files)


@cache
def sets() -> tuple[TraceSet, ...]:
    """All sets, by name."""
    text = files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    made = []
    for name, fields in sorted(tomllib.loads(text).items()):
        source = {"repository": fields["repository"], "commit": fields["commit"]}
        of_set = tuple(TraceFile(**(source | file)) for file in fields.pop("files"))
        made.append(TraceSet(name=name, files=of_set, **fields))
    return tuple(made)


def find(name: str) -> TraceSet:
    """A set by its name.

    Raises:
        InputError: There is none.
    """
    for known in sets():
        if known.name == name:
            return known
    names = ", ".join(known.name for known in sets())
    raise InputError(name, None, None, None, f"no such set of traces; there are: {names}")


@contextmanager
def advised() -> Iterator[None]:
    """Adds to an error about a file of a set what to do about it."""
    try:
        yield
    except InputError as error:
        name = error.file.removeprefix("data:").partition("/")[0]
        if error.file.startswith("data:") and any(known.name == name for known in sets()):
            error.add_note(f"leeward data get {name} checks it, and fetches what is missing")
        raise
