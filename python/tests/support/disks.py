"""A simulated disk: the model of device files run forward, in place of fio."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from random import Random

from leeward._disk import Read

Rows = Sequence[tuple[int, float]]


def interpolate(rows: Rows, distance: int) -> float:
    """Seconds at a distance, as in `crates/traces/src/device/table.rs`."""
    at = bisect_left([row[0] for row in rows], distance)
    if at in (0, len(rows)):
        return rows[min(at, len(rows) - 1)][1]
    (low, first), (high, last) = rows[at - 1], rows[at]
    return first + (last - first) * (distance - low) / (high - low)


class SimulatedDisk:
    """A disk as in `crates/traces/src/device/disk.rs`, whose reads take time on a clock of its own.

    Attributes:
        now: Time of the clock, in seconds.
        reads: All reads so far.
    """

    def __init__(
        self, seek: Rows, rate: float, history: int, *, rotation: float = 0.0, seed: int = 0
    ) -> None:
        """A disk.

        Args:
            seek: Seconds by distance, the mean rotation included.
            rate: Bytes per second.
            history: Number of streams that are continued without a seek.
            rotation: Seconds of a rotation; a seek is longer or shorter by up to half of it.
            seed: Seed of rotations.
        """
        self.now = 0.0
        self.reads: list[Read] = []
        self._seek, self._rate, self._history, self._rotation = seek, rate, history, rotation
        self._last: int | None = None
        self._ends: deque[int] = deque()
        self._random = Random(seed)

    def clock(self) -> float:
        return self.now

    def replay(self, reads: Sequence[Read], limit: float) -> list[float]:
        """Seconds of each read, or of those that end within the limit."""
        end, result = self.now + limit, []
        for read in reads:
            seconds = self._seconds(read)
            if self.now + seconds > end:
                break
            self.now += seconds
            self.reads.append(read)
            result.append(seconds)
        return result

    def _seconds(self, read: Read) -> float:
        if read.offset in self._ends:
            seek = 0.0
        elif self._last is None:
            seek = self._seek[-1][1]
        else:
            seek = interpolate(self._seek, abs(read.offset - self._last))
            seek += self._rotation * self._random.uniform(-0.5, 0.5)
        self._last = read.offset
        if read.offset in self._ends:
            self._ends.remove(read.offset)
        elif len(self._ends) >= self._history and self._ends:
            self._ends.popleft()
        if self._history:
            self._ends.append(read.offset + read.size)
        return seek + read.size / self._rate
