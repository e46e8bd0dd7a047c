"""Packages that only some functions need: extras of the package, and the hint for a missing one."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from leeward.errors import InputError

PACKAGES = {"analysis": ("duckdb", "ibis", "scipy"), "plot": ("matplotlib",)}
"""Packages by extra: analyses of telemetry and intervals of means; pictures."""


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is missing.

    Attributes:
        hint: Command that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        """Takes the names of the package and of the extra."""
        self.hint = f"pip install 'leeward[{extra}]'"
        super().__init__(f"{package} is missing: {self.hint}", name=package)


@contextmanager
def needed() -> Iterator[None]:
    """Names the extra in the error of an import.

    Raises:
        MissingExtraError: A package of an extra is missing.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for extra, packages in PACKAGES.items():
            if package in packages:
                raise MissingExtraError(package, extra) from None
        raise


def missing(extra: str) -> str | None:
    """Sentence about the missing packages of an extra; None if all are there."""
    absent = [package for package in PACKAGES[extra] if find_spec(package) is None]
    if not absent:
        return None
    verb = "is" if len(absent) == 1 else "are"
    return f"{' and '.join(absent)} {verb} missing: pip install 'leeward[{extra}]'"


def require(extra: str, argument: str) -> None:
    """Checks that the packages of an extra are there, before work that would be lost.

    Raises:
        InputError: One is missing; the error names the argument that needs it.
    """
    if (sentence := missing(extra)) is not None:
        raise InputError.about(argument, sentence)
