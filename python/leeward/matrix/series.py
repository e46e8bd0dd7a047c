"""A series of traffic matrices: bytes from each task to each other, interval by interval.

Only pairs with traffic are kept, since most pairs of a thousand tasks never exchange bytes.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from leeward import _npy
from leeward._arrays import Floats, Ints
from leeward._quantities import read_seconds
from leeward.errors import InputError

DAY_S = 86_400
MOST_TASKS = 5_000
"""Greatest number of tasks of a matrix."""
MOST_VALUES = 10_000_000
"""Greatest number of pairs with traffic, times intervals."""
MOST_BYTES = 1e18
"""Greatest bytes of a pair in an interval."""
LEAST_BYTES = 1e-9
"""Least number of bytes above 0; scaled matrices may be below a byte. Less would have no relative error."""


@dataclass(frozen=True)
class Series:
    """Bytes of pairs of tasks, interval by interval, without a gap."""

    tasks: tuple[str, ...]
    """Names, in the order of the rows of a matrix."""
    interval_s: int
    """Length of an interval, in seconds; a day is a whole number of them, at least two."""
    pairs: Ints
    """Sender and receiver of each pair with traffic, shape (pairs, 2)."""
    bytes: Floats
    """Bytes, shape (intervals, pairs)."""

    @property
    def intervals(self) -> int:
        """Number of intervals."""
        return len(self.bytes)

    @property
    def within_bytes(self) -> float:
        """Bytes of the diagonals: from tasks to themselves, which cross no link."""
        return float(self.bytes[:, self.pairs[:, 0] == self.pairs[:, 1]].sum())

    @property
    def day(self) -> int:
        """Number of intervals of a day."""
        return DAY_S // self.interval_s

    def square(self, values: Floats) -> Floats:
        """Values of pairs as a matrix, shape (tasks, tasks); 0 for pairs without traffic."""
        matrix = numpy.zeros((len(self.tasks), len(self.tasks)))
        matrix[self.pairs[:, 0], self.pairs[:, 1]] = values
        return matrix

    @staticmethod
    def of(
        matrices: Any, interval: str = "1h", tasks: Sequence[str] | None = None, name: str = "matrices"
    ) -> "Series":
        """A series of consecutive matrices.

        Args:
            matrices: Bytes from each task to each other in each interval, shape (intervals, tasks, tasks).
            interval: Length of an interval, such as `1h` or `5min`.
            tasks: Names of the tasks, in order; by default their numbers from 0.
            name: Name of the matrices in errors.

        Raises:
            InputError: The array is of another shape, or has a value that is not a number of bytes; or an
                argument is invalid.
        """
        length = seconds(interval)
        array = _npy.check_numbers(numpy.asanyarray(matrices), name)
        if array.ndim != 3 or array.shape[1] != array.shape[2]:
            shape = " x ".join(map(str, array.shape)) or "a single number"
            raise InputError.about(name, f"{shape}; expected intervals x tasks x tasks")
        intervals, count, _ = array.shape
        if not intervals or not count:
            raise InputError.about(
                name, f"{intervals} intervals of {count} tasks; expected at least one of each"
            )
        check_tasks(count, name)
        names = tuple(map(str, range(count))) if tasks is None else check_order(tasks)
        if len(names) != count:
            raise InputError.about("tasks", f"{len(names)} names, but the matrices are of {count} tasks")
        # NaN counts as traffic here, and is rejected below.
        active = numpy.zeros((count, count), dtype=bool)
        for matrix in array:
            active |= ~(abs(matrix) < LEAST_BYTES)
        pairs = numpy.argwhere(active)
        check_values(intervals, len(pairs), name)
        values = numpy.array(array[:, active], dtype=numpy.float64)
        bad = ~((values >= 0) & (values <= MOST_BYTES))
        if bad.any():
            number, pair = numpy.argwhere(bad)[0]
            row, column = pairs[pair]
            where = f"interval {number}, row {row}, column {column}"
            raise InputError.about(
                name, f"{where}: {values[number, pair]:g}: expected bytes, 0 to {MOST_BYTES:g}"
            )
        values[values < LEAST_BYTES] = 0
        return Series(names, length, pairs, values)


def seconds(interval: str) -> int:
    """Length of an interval in seconds.

    Raises:
        InputError: The text is not a time, or a day is not a whole number of them, at least two.
    """
    length = read_seconds("interval", interval)
    if not 1 <= length <= DAY_S / 2 or DAY_S % length:
        raise InputError.about(
            "interval",
            f"`{interval}`: expected a time that divides a day, from 1s to 12h, such as 1h or 5min",
        )
    if not length.is_integer():
        raise InputError.about("interval", f"`{interval}`: expected whole seconds")
    return round(length)


def check_order(tasks: Sequence[str]) -> tuple[str, ...]:
    """Checks given names of tasks, in order.

    Raises:
        InputError: A name is empty or repeated.
    """
    names = tuple(tasks)
    if not names or not all(names):
        raise InputError.about("tasks", "an empty name; expected the names of all tasks, in order")
    check_tasks(len(names), "tasks")
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError.about("tasks", f"`{duplicate}` is given twice")
    return names


def check_tasks(count: int, name: str) -> None:
    """Rejects more tasks than a matrix can have."""
    if count > MOST_TASKS:
        raise InputError.about(name, f"{count:,} tasks: more than {MOST_TASKS:,}")


def check_values(intervals: int, pairs: int, name: str) -> None:
    """Rejects more values than fit in memory."""
    if intervals * max(pairs, 1) > MOST_VALUES:
        message = f"{intervals:,} intervals of {pairs:,} pairs: more than {MOST_VALUES:,} values"
        raise InputError.about(name, f"{message}; a longer interval or fewer days make it smaller")


def natural(name: str) -> list[str | int]:
    """Sort key of names: `map2` comes before `map10`."""
    parts = re.split(r"(\d{1,18})", name, flags=re.ASCII)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def is_bytes(value: float) -> bool:
    """True for a valid number of bytes of a pair in an interval."""
    return math.isfinite(value) and 0 <= value <= MOST_BYTES
