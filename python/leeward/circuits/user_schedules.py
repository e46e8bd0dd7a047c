"""Schedules of the user: functions that return days, and files of days."""

import operator
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

import numpy

from leeward import _native
from leeward._arrays import Ints
from leeward.circuits.network import Network
from leeward.errors import InputError

Days = Iterable[tuple[str | float, Iterable[tuple[int, int]]]]
"""Days of the user: length (a text with its unit, or seconds), and circuits, (source, destination)."""
UserScheduler = Callable[[Ints, Network], Days]
"""A scheduler of the user. Its demand is in bytes; rows are sources."""
NsDays = list[tuple[int, list[tuple[int, int]]]]
"""Days with lengths in whole nanoseconds."""
_EXPECTED = "expected a length such as 180us and circuits as (source, destination)"


def read_days(path: str | PathLike[str]) -> list[tuple[float, list[tuple[int, int]]]]:
    """Reads days of a file (YAML or JSON) with `days`, each of a `length` and `circuits`.

    Returns:
        Days as a scheduler of the user returns them, with lengths in seconds.

    Raises:
        InputError: The file cannot be read, or has no days.
    """
    return [(1e-9 * ns, circuits) for ns, circuits in _native.read_days(str(path))]


def scheduler_name(scheduler: Any) -> str:
    """Name of a function."""
    return str(getattr(scheduler, "__name__", "a function"))


def run_scheduler(scheduler: Any, demand: Any, network: Network) -> NsDays:
    """Calls a scheduler of the user and checks its days.

    Raises:
        InputError: The function returns something else; the error names `days` and the day.
    """
    result = scheduler(numpy.array(demand, dtype=numpy.int64), network)
    if not isinstance(result, Iterable) or isinstance(result, str | bytes):
        message = f"`{scheduler_name(scheduler)}` returned {type(result).__name__}: expected a list of days"
        raise InputError.about("days", message)
    return [_day(number, day) for number, day in enumerate(result)]


def _day(number: int, day: Any) -> tuple[int, list[tuple[int, int]]]:
    """Checks a day of the user; returns its length in nanoseconds and its circuits.

    Raises:
        InputError: The value is not a day; the error names `days`.
    """
    try:
        length, circuits = day
        seconds = _native.seconds(length) if isinstance(length, str) else float(length)
        ns = round(1e9 * seconds)
        # Racks are whole numbers; truncation would select another rack.
        pairs = [(operator.index(source), operator.index(destination)) for source, destination in circuits]
    except (InputError, TypeError, ValueError, OverflowError):
        raise InputError.about("days", f"day {number}: {_EXPECTED}") from None
    if not 0 <= ns < 2**63 or any(not 0 <= rack < 2**32 for pair in pairs for rack in pair):
        message = f"day {number}: expected a length from 0 and racks numbered from 0"
        raise InputError.about("days", message)
    return ns, pairs
