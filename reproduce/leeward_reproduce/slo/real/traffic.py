"""Requests of workloads on a bed: drawn by load and C^2 (table 3.1), or as the thesis describes caches.

The server's kernel reads ahead where a read follows another one, or more pages in memory than it has itself,
or begins at 0: up to two and a half times the bytes of a large request, which no workload has asked for. So
no request is at 0, requests are aligned to their sizes, copies skip from place to place, and other requests
keep to another part of the file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from leeward_reproduce.real.scenario_files import write_csv

FILE_BYTES = 32 << 20
"""Size of the file of a server that requests go to. It may be small: none of its pages stays in a cache."""
_BLOCK = 4096
"""Least alignment of requests in the file."""
_PLACE = 65_536
"""Alignment of evenly spaced reads."""
_SKIP = 5
"""Places from a read of a copy, or of evenly spaced reads, to the next one. It has no divisor in common with
their numbers of places, so all places are read, and each long after the one before it in the file."""
_COLUMNS = ("seconds", "kind", "size", "offset")

Times = NDArray[numpy.float64]
Numbers = NDArray[numpy.int64]
Flags = NDArray[numpy.bool_]
Work = Callable[[int], float]
"""Work of a request by its size in bytes."""


@dataclass(frozen=True)
class Requests:
    """Requests in order of time."""

    seconds: Times
    sizes: Numbers
    """Bytes."""
    is_read: Flags
    offsets: Numbers
    """Places in the file."""

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.seconds)

    def write(self, file: Path) -> None:
        """Writes a trace in the dialect `leeward`."""
        kinds = numpy.where(self.is_read, "read", "write")
        columns = zip(self.seconds, kinds, self.sizes, self.offsets, strict=True)
        write_csv(file, _COLUMNS, [(f"{at:.6f}", kind, size, offset) for at, kind, size, offset in columns])

    def beside(self, other: "Requests") -> "Requests":
        """These requests and those of another trace, in order of time."""
        order = numpy.argsort(numpy.concatenate([self.seconds, other.seconds]), kind="stable")

        def both(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
            return numpy.concatenate([mine, theirs])[order]

        return Requests(
            both(self.seconds, other.seconds),
            both(self.sizes, other.sizes),
            both(self.is_read, other.is_read),
            both(self.offsets, other.offsets),
        )

    def where(self, chosen: Flags) -> "Requests":
        """The requests that are chosen."""
        return Requests(self.seconds[chosen], self.sizes[chosen], self.is_read[chosen], self.offsets[chosen])


@dataclass(frozen=True)
class Mix:
    """Sizes and kinds of requests."""

    sizes: Sequence[tuple[int, float]]
    """Bytes, with relative rates."""
    read_share: float = 1.0

    def mean(self, work: Work) -> float:
        """Mean work of a request."""
        total = sum(weight for _, weight in self.sizes)
        return sum(weight * work(size) for size, weight in self.sizes) / total


def draw(
    random: numpy.random.Generator, mix: Mix, rate: float, gap_c2: float, from_s: float, seconds: float
) -> Requests:
    """Draws requests with independent gaps.

    Args:
        random: Source of random numbers.
        mix: Sizes and kinds.
        rate: Requests a second.
        gap_c2: Squared coefficient of variation of the gaps, at least 1.
        from_s: Beginning, in seconds.
        seconds: Length. The number of requests is the mean one, so that their load is the stated one.
    """
    count = max(round(rate * seconds), 2)
    times = numpy.cumsum(_gaps(random, gap_c2, count))
    # The times are stretched so that the mean gap is the stated one.
    times = from_s + times * (seconds * count / (count + 1) / times[-1])
    sizes, weights = zip(*mix.sizes, strict=True)
    drawn = random.choice(sizes, count, p=numpy.array(weights) / sum(weights)).astype(numpy.int64)
    return Requests(times.round(6), drawn, random.random(count) < mix.read_share, _places(random, drawn))


def _gaps(random: numpy.random.Generator, c2: float, count: int) -> Times:
    """Gaps of mean 1: exponential, or of two kinds with balanced means (a hyperexponential distribution)."""
    if c2 <= 1:
        return random.exponential(1.0, count)
    share = (1 + sqrt((c2 - 1) / (c2 + 1))) / 2
    is_short = random.random(count) < share
    return random.exponential(1.0, count) * numpy.where(is_short, 0.5 / share, 0.5 / (1 - share))


def _places(random: numpy.random.Generator, sizes: Numbers) -> Numbers:
    """Random places before the part of copies, aligned to the next power of two of the sizes."""
    steps = numpy.exp2(numpy.ceil(numpy.log2(numpy.maximum(sizes, _BLOCK)))).astype(numpy.int64)
    others = _copied() // steps - 1
    return (1 + (random.random(len(sizes)) * others).astype(numpy.int64)) * steps


def _copied() -> int:
    """Beginning of the part of the file that copies read. Drawn requests are before it."""
    return FILE_BYTES // 2


def steady(gap: float, sizes: Sequence[int], count: int) -> Requests:
    """Evenly spaced reads.

    Args:
        gap: Time between two reads in seconds.
        sizes: Sizes in bytes that reads have in turn, up to `_PLACE`.
        count: Number of reads.
    """
    at = numpy.arange(count, dtype=numpy.int64)
    times = (at * gap).round(6).astype(numpy.float64)
    every = numpy.array(sizes, dtype=numpy.int64)[at % len(sizes)]
    places = 1 + at * _SKIP % (FILE_BYTES // _PLACE - 1)
    return Requests(times, every, numpy.full(count, True), places * _PLACE)


def copy(seconds: float, rate: float, size: int = 1 << 20) -> Requests:
    """Requests of a copy of files: as many as a disk of `rate` bytes per second serves in this time."""
    count = int(seconds * rate / size) + 1
    at = numpy.arange(count, dtype=numpy.int64)
    sizes = numpy.full(count, size, dtype=numpy.int64)
    start = _copied()
    offsets = start + at * _SKIP % (start // size) * size
    return Requests((at * size / rate).round(6), sizes, numpy.full(count, True), offsets)


def cache(random: numpy.random.Generator, rate: float, height: float, seconds: float) -> Requests:
    """Lookups in a cache as the thesis describes them (section 4.3.2), as `crates/experiments` draws them.

    Args:
        random: Source of random numbers.
        rate: Mean number of lookups a second.
        height: Largest rate of a burst, as a multiple of the calm rate.
        seconds: Length.
    """
    ends, areas, is_calm = [0.0], [0.0], True
    while ends[-1] < seconds:
        length = min(random.exponential(20.0 if is_calm else 2.0), seconds - ends[-1])
        pace = 1.0 if is_calm else 1.0 + (height - 1.0) * random.random()
        ends.append(ends[-1] + length)
        areas.append(areas[-1] + length * pace)
        is_calm = not is_calm
    count = max(int(random.poisson(rate * seconds)), 2)
    times = numpy.interp(numpy.sort(random.random(count)) * areas[-1], areas, ends)
    # Log-normal sizes of 28 KB on average, with a C^2 of 2.
    variance = float(numpy.log(3.0))
    drawn = random.lognormal(float(numpy.log(28e3)) - variance / 2, sqrt(variance), count)
    sizes = numpy.clip(drawn, 1, 256 << 10).astype(numpy.int64)
    return Requests(times.round(6), sizes, numpy.full(count, True), _places(random, sizes))


def least_burst(requests: Requests, rate: float, work: Work) -> float:
    """Least burst of a token bucket of this rate that delays no request (algorithm 2.1)."""
    bucket = burst = last = 0.0
    for at, size in zip(requests.seconds, requests.sizes, strict=True):
        bucket = max(bucket - rate * (float(at) - last), 0.0) + work(int(size))
        burst, last = max(burst, bucket), float(at)
    return burst


def halves(requests: Requests, seconds: float) -> tuple[Requests, Requests]:
    """The first and the second half of requests of this length, each from time 0."""
    is_first = requests.seconds < seconds / 2
    second = requests.where(~is_first)
    times = (second.seconds - seconds / 2).round(6)
    return requests.where(is_first), Requests(times, second.sizes, second.is_read, second.offsets)
