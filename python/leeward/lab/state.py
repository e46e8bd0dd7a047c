"""Labs on this machine."""

from dataclasses import dataclass

from leeward import _native


@dataclass(frozen=True)
class Lab:
    """A lab with a state file.

    Attributes:
        name: Name of the lab.
        process: Id of its process.
        up: Whether this process runs. A lab whose process was killed can be removed.
    """

    name: str
    process: int
    up: bool


def labs() -> list[Lab]:
    """Labs on this machine, by name."""
    return [Lab(*lab) for lab in _native.labs()]


def remove(name: str) -> None:
    """Removes the namespaces and files of a lab whose process has ended.

    Raises:
        OSError: No lab of this name, its process runs, or the caller is not root.
    """
    _native.remove_lab(name)
