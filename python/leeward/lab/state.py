"""Labs on this machine."""

from dataclasses import dataclass

from leeward import _native
from leeward.errors import InputError


@dataclass(frozen=True)
class Lab:
    """A lab with a state file.

    Attributes:
        name: Name of the lab.
        process: Id of the process that owns it; None if it has none, or its state file cannot be read.
        up: Whether it has no owner, or its owner runs. A lab whose owner was killed can be removed.
        stands: Whether it has circuits for programs. Its process keeps only its switch, and ends with it.
        hosts: Number of its hosts; None if its state file cannot be read.
        since_s: Unix time at which it was up, in seconds.
        problem: Error of its state file; None if the file can be read.
    """

    name: str
    process: int | None
    up: bool
    stands: bool
    hosts: int | None
    since_s: float
    problem: str | None


@dataclass(frozen=True)
class Failure:
    """Error that ended the last lab of a name. The next lab of the name, or its removal, forgets it.

    Attributes:
        name: Name of the lab.
        at_s: Unix time of the error, in seconds.
        text: Text of the error.
    """

    name: str
    at_s: float
    text: str


def text_of(error: BaseException) -> str:
    """Text of an error for users; that of an unexpected one begins with its type."""
    return str(error) if isinstance(error, (InputError, OSError)) else f"{type(error).__name__}: {error}"


def failures() -> list[Failure]:
    """Errors that ended labs on this machine, by name."""
    return [Failure(**failure) for failure in _native.lab_failures()]


def labs() -> list[Lab]:
    """Labs on this machine, by name."""
    return [Lab(**lab) for lab in _native.labs()]


def remove(name: str) -> None:
    """Removes everything that a lab made, and the error that ended it.

    If the lab has no state file, as after a reboot, or a broken one, removes everything that has its name.

    Raises:
        OSError: No lab of this name is up, the process that owns it runs, a part cannot be removed, or the
            caller is not root.
    """
    _native.remove_lab(name)
