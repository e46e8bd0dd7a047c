"""A series of traffic matrices: what each task sent each, interval by interval.

Only pairs that sent anything are kept, since of a thousand tasks most never talk to each other.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from leeward import _npy
from leeward._arrays import Floats, Ints
from leeward.errors import InputError

DAY_S = 86_400
MOST_TASKS = 5_000
"""A matrix of more is too large to write down."""
MOST_VALUES = 10_000_000
"""Of pairs that send anything, times intervals."""
MOST_BYTES = 1e18
"""Of a pair in an interval."""
LEAST_BYTES = 1e-9
"""What is less is nothing: no error could be relative to it. Matrices may be scaled, so it is not a byte."""
_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": DAY_S}


@dataclass(frozen=True)
class Series:
    """What pairs of tasks sent, interval by interval, without a gap."""

    tasks: tuple[str, ...]
    """Their names, in the order of the rows of a matrix."""
    interval_s: int
    """The length of an interval, in seconds; a day is a whole number of them, at least two."""
    pairs: Ints
    """The sender and the receiver of each pair that sent anything, shape (pairs, 2)."""
    bytes: Floats
    """What they sent, shape (intervals, pairs)."""

    @property
    def intervals(self) -> int:
        """How many intervals there are."""
        return len(self.bytes)

    @property
    def day(self) -> int:
        """How many intervals a day has."""
        return DAY_S // self.interval_s

    def square(self, values: Floats) -> Floats:
        """Values of pairs as a matrix, shape (tasks, tasks); 0 where a pair never sent anything."""
        made = numpy.zeros((len(self.tasks), len(self.tasks)))
        made[self.pairs[:, 0], self.pairs[:, 1]] = values
        return made

    @staticmethod
    def of(
        matrices: Any, interval: str = "1h", tasks: Sequence[str] | None = None, name: str = "matrices"
    ) -> "Series":
        """Takes matrices one after the other.

        Args:
            matrices: Bytes from each task to each in each interval, shape (intervals, tasks, tasks).
            interval: The length of an interval, such as `1h` or `5min`.
            tasks: The names of the tasks, in order; by default their numbers from 0.
            name: What errors call the matrices.

        Raises:
            InputError: It is no such array, or has a value that is no number of bytes; or another argument is
                not right.
        """
        length = seconds(interval)
        array = _npy.numbers(numpy.asanyarray(matrices), name)
        if array.ndim != 3 or array.shape[1] != array.shape[2]:
            shape = " x ".join(map(str, array.shape)) or "a single number"
            raise _wrong(name, f"{shape}; expected intervals x tasks x tasks")
        intervals, count, _ = array.shape
        if not intervals or not count:
            raise _wrong(name, f"{intervals} intervals of {count} tasks; expected at least one of each")
        check_tasks(count, name)
        names = tuple(map(str, range(count))) if tasks is None else ordered(tasks)
        if len(names) != count:
            raise _wrong("tasks", f"{len(names)} names, but the matrices are of {count} tasks")
        # What is no number counts as something here, and is found below.
        some = numpy.zeros((count, count), dtype=bool)
        for matrix in array:
            some |= ~(abs(matrix) < LEAST_BYTES)
        pairs = numpy.argwhere(some)
        check_values(intervals, len(pairs), name)
        values = numpy.array(array[:, some], dtype=numpy.float64)
        bad = ~((values >= 0) & (values <= MOST_BYTES))
        if bad.any():
            at, pair = numpy.argwhere(bad)[0]
            row, column = pairs[pair]
            where = f"interval {at}, row {row}, column {column}"
            raise _wrong(name, f"{where}: {values[at, pair]:g}: expected bytes, 0 to {MOST_BYTES:g}")
        values[values < LEAST_BYTES] = 0
        return Series(names, length, pairs, values)


def seconds(interval: str) -> int:
    """The length of an interval in seconds.

    Raises:
        InputError: It is no time, or a day is not a whole number of them, at least two.
    """
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]*)\s*", interval, re.ASCII)
    if not found or found[2] not in _UNITS:
        why = "the unit is missing" if found and not found[2] else "no time with a unit"
        raise _wrong("interval", f"`{interval}`: {why}; expected one such as 1h or 5min")
    length = float(found[1]) * _UNITS[found[2]]
    if not 1 <= length <= DAY_S / 2 or DAY_S % length:
        raise _wrong(
            "interval", f"`{interval}`: expected a whole part of a day, from 1s to 12h, such as 1h or 5min"
        )
    if not length.is_integer():
        raise _wrong("interval", f"`{interval}`: expected whole seconds")
    return round(length)


def ordered(tasks: Sequence[str]) -> tuple[str, ...]:
    """The names of tasks that are given in order.

    Raises:
        InputError: One is empty or there twice.
    """
    names = tuple(tasks)
    if not names or not all(names):
        raise _wrong("tasks", "an empty name; expected the names of all tasks, in order")
    check_tasks(len(names), "tasks")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _wrong("tasks", f"`{twice}` is there twice")
    return names


def check_tasks(count: int, name: str) -> None:
    """Refuses more tasks than a matrix can have."""
    if count > MOST_TASKS:
        raise _wrong(name, f"{count:,} tasks: more than {MOST_TASKS:,}")


def check_values(intervals: int, pairs: int, name: str) -> None:
    """Refuses more values than there is room for."""
    if intervals * max(pairs, 1) > MOST_VALUES:
        message = f"{intervals:,} intervals of {pairs:,} pairs: more than {MOST_VALUES:,} values"
        raise _wrong(name, f"{message}; a longer interval or fewer days make it smaller")


def natural(name: str) -> list[str | int]:
    """By what names are sorted: `map2` comes before `map10`."""
    parts = re.split(r"(\d{1,18})", name, flags=re.ASCII)
    return [int(part) if at % 2 else part for at, part in enumerate(parts)]


def is_bytes(value: float) -> bool:
    """Whether it is a number of bytes that a pair may send in an interval."""
    return math.isfinite(value) and 0 <= value <= MOST_BYTES


def _wrong(name: str, message: str) -> InputError:
    return InputError(name, None, None, None, message)
