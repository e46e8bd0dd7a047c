"""Registry of known traces, from `registry.toml`."""

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
    """Path below the folder of the set."""
    bytes: int
    """Size; of the content, if the name ends in .gz."""
    sha256: str
    """Checksum; of the content, if the name ends in .gz."""
    repository: str
    commit: str
    path: str | None = None
    """Path in the repository; None for a file that cannot be fetched."""
    by_hand: str | None = None
    """Steps that make a file that cannot be fetched."""

    @property
    def compressed(self) -> bool:
        """True for a file that is stored as gzip, although the upstream file is not compressed."""
        return self.name.endswith(".gz")


@dataclass(frozen=True)
class TraceSet:
    """Traces that were published together."""

    name: str
    what: str
    repository: str
    """Repository on GitHub."""
    commit: str
    """Commit of the repository."""
    licence: str
    """Licence; `none stated` if the repository does not state one."""
    cite: str
    files: tuple[TraceFile, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


@cache
def sets() -> tuple[TraceSet, ...]:
    """All sets, by name."""
    text = files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    result = []
    for name, fields in sorted(tomllib.loads(text).items()):
        source = {"repository": fields["repository"], "commit": fields["commit"]}
        set_files = tuple(TraceFile(**(source | file)) for file in fields.pop("files"))
        result.append(TraceSet(name=name, files=set_files, **fields))
    return tuple(result)


def find(name: str) -> TraceSet:
    """A set by its name.

    Raises:
        InputError: The set is unknown.
    """
    for trace_set in sets():
        if trace_set.name == name:
            return trace_set
    names = ", ".join(trace_set.name for trace_set in sets())
    raise InputError.about(name, f"no such set of traces; there are: {names}")


@contextmanager
def hint_fetch() -> Iterator[None]:
    """Adds a hint to errors about a file of a set: the command that fetches the file."""
    try:
        yield
    except InputError as error:
        name = error.file.removeprefix("data:").partition("/")[0]
        if error.file.startswith("data:") and any(trace_set.name == name for trace_set in sets()):
            error.add_note(f"leeward data get {name} checks the set and fetches missing files")
        raise
