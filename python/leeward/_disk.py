"""Measures a disk by reads, one at a time: seek times by distance, the rate of transfers, and the history.

    size -> pairs of reads -> seek times -> rate -> streams side by side -> `disk` of a device file

The model is that of SLO section 2.3.2. A request that continues one of the last few streams is a transfer.
Any other request has a seek too, by the distance between its offset and the offset of the request before, and
the seek includes the rotation. So a pair is two reads at a given distance, at a random position. The seek
time is the median of the pairs of a distance, less the transfer. The median forward and the median backward
count half each: a disk often has the block a little ahead of the head in its buffer, and reads the block
behind it a rotation later.

A device whose reads take as long at all distances, or less time than half a rotation, has no seek times, and
the measurement says so.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any

from leeward._quantities import bytes_text, duration_text, time_text
from leeward.errors import InputError

BLOCK = 4096
"""Size of a read whose seek is measured, in bytes. Offsets are multiples of it, as direct I/O requires."""
CHUNK = 1 << 20
"""Size of a sequential read, in bytes."""
LEAST_BYTES = 1 << 30
"""Least size of a disk or file, in bytes. On less, seeks hardly differ."""
NEAREST = 1 << 16
"""Least distance in bytes. Each following one is eight times as far, up to a quarter of the size."""
FAR = (0.25, 0.5, 0.75, 0.95)
"""Longest distances, as shares of the size."""
PAIRS = 4
"""Pairs of a round, at each distance and in each direction."""
FIRST_ROUNDS = 5
"""Rounds after which the device has seek times or has none."""
ROUNDS = 25
LEAST_PAIRS = 10
"""Least number of pairs, at each distance and in each direction, for a seek time."""
ZONES = 8
"""Places from the first to the last byte where the rate is measured: outer tracks are faster."""
ZONE_CHUNKS = 33
"""Sequential reads at a place; the first has a seek, and does not count."""
MOST_STREAMS = 256
"""Largest history that is measured. Device files may have up to 1024."""
SETTLING, TURNS = 2, 6
"""Reads of each stream in which the disk finds the streams, and least number of further ones, which count."""
LEAST_CONTINUED = 48
"""Least number of counted reads of all streams together."""
NEAR = (1e-5, 1e-2)
"""Distances of a near pair, as shares of the size, for the decision whether a device has seek times."""
LEAST_NEAR = 1 << 21
"""Least distance of a near pair in bytes: a nearer block may be read ahead, on any device."""
LONGER, RATIO = 0.75, 1.15
"""A device has seek times if a far pair takes longer than a near one with at least this probability, and if
the medians have at least this ratio. Without seek times the probability is 0.5, with a deviation of 0.05."""
LEAST_FAR_S = 0.002
"""Least median of far pairs: half a rotation at 15,000 revolutions a minute, the fastest of disks. Some SSDs
take longer for far reads too, because their map of blocks is not in their memory as a whole."""
FIRST_SHARE, RATE_SHARE, HISTORY_SHARE = 0.5, 0.2, 0.25
"""Largest shares of the time for the first rounds, the rate and the history."""
STEPS = 100
"""Steps of progress: three for each round, and the rest for the rate and the history."""
ROUND_STEPS, RATE_STEPS = 3, 10


@dataclass(frozen=True)
class Read:
    """A read of `size` bytes at an offset in bytes."""

    offset: int
    size: int


Replay = Callable[[Sequence[Read], float], list[float]]
"""Performs reads one after the other, for at most a number of seconds, and returns the seconds of each. If
the time is too short for all, the result has the first few."""


@dataclass(frozen=True)
class SeekTime:
    """Seek time at a distance, without the transfer.

    Attributes:
        distance: Distance in bytes.
        seconds: Mean of the medians in both directions.
        forward: Median of the pairs with rising offsets.
        backward: Median of the pairs with falling offsets.
        low: Tenth percentile of all pairs.
        high: Ninetieth percentile of all pairs.
        pairs: Number of pairs.
    """

    distance: int
    seconds: float
    forward: float
    backward: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class Zone:
    """Rate of sequential reads at a place, in bytes per second."""

    offset: int
    rate: float


@dataclass(frozen=True)
class DiskProfile:
    """Measured disk.

    Attributes:
        seeks: Seek times by rising distance.
        zones: Rates by rising offset.
        rate: Bytes per second over all places.
        history: Number of streams that the disk continues without a seek.
        notes: Doubts about the measurement.
    """

    seeks: list[SeekTime]
    zones: list[Zone]
    rate: float
    history: int
    notes: list[str]

    def disk(self) -> dict[str, Any]:
        """The field `disk` of a device file. Writes have the rate of reads, because none was measured."""
        return {
            "seek": [
                {"distance_bytes": seek.distance, "seconds": round(seek.seconds, 9)} for seek in self.seeks
            ],
            "read_bytes_per_second": round(self.rate),
            "write_bytes_per_second": round(self.rate),
            "history": self.history,
        }


_Samples = dict[tuple[int, int], list[float]]
"""Seconds of the second reads of pairs, by distance in bytes and direction (1 forward, -1 backward)."""


def measure_disk(
    size: int,
    seconds: float,
    seed: int,
    replay: Replay,
    advance: Callable[[int], object] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> DiskProfile:
    """Measures a disk.

    Args:
        size: Size of the disk in bytes, at least `LEAST_BYTES`.
        seconds: Time of the measurement. It ends earlier when it has enough pairs.
        seed: Seed of positions and of the order of distances.
        replay: Reads from the disk.
        advance: Called with a number of completed steps, of `STEPS` in all.
        clock: Monotonic clock, in seconds.

    Raises:
        InputError: The device is too slow for the time, or has no seek times. The error names `--disk` or
            `--duration`.
    """
    random = Random(seed)
    end = clock() + seconds
    samples: _Samples = {(distance, way): [] for distance in distances(size) for way in (1, -1)}
    for _ in range(FIRST_ROUNDS):
        _add_round(samples, size, random, replay, end - (1 - FIRST_SHARE) * seconds - clock())
        advance(ROUND_STEPS)
    _check_pairs(samples, seconds)
    _check_seeks(samples, size)
    zones, rate = _rates(size, random, replay, min(RATE_SHARE * seconds, end - clock()))
    advance(RATE_STEPS)
    notes = []
    limit = clock() + min(HISTORY_SHARE * seconds, end - clock())
    streams = _Streams(size, seek_times(samples, rate), rate, random, replay, lambda: limit - clock())
    history = streams.count()
    if streams.late:
        notes.append(f"the history is at least {history}: the time ended before more streams were read")
    elif history == MOST_STREAMS:
        notes.append(f"the history is at least {history}: more streams are not measured")
    elif not history:
        notes.append("the disk continues no stream: the rate has the seeks between sequential reads too")
    advance(STEPS - RATE_STEPS - ROUNDS * ROUND_STEPS)
    for _ in range(ROUNDS - FIRST_ROUNDS):
        _add_round(samples, size, random, replay, end - clock())
        advance(ROUND_STEPS)
    fewest = min(map(len, samples.values()))
    if fewest < ROUNDS * PAIRS:
        most = ROUNDS * PAIRS
        notes.append(f"{fewest} of {most} pairs at a distance and in a direction: the time ended before")
    return DiskProfile(seek_times(samples, rate), zones, rate, history, notes)


def distances(size: int) -> tuple[int, ...]:
    """Measured distances of a disk in bytes, rising."""
    near, distance = [], NEAREST
    while distance < size * FAR[0]:
        near.append(distance)
        distance *= 8
    return (*near, *(_aligned(size * share) for share in FAR))


def _aligned(offset: float) -> int:
    return int(offset) // BLOCK * BLOCK


def _pairs(size: int, random: Random) -> Iterator[tuple[tuple[int, int], Read, Read]]:
    """Pairs of a round with their distance and direction, in a random order and at random positions."""
    kinds = [(distance, way) for distance in distances(size) for way in (1, -1) for _ in range(PAIRS)]
    random.shuffle(kinds)
    for distance, way in kinds:
        low = BLOCK * random.randrange((size - distance) // BLOCK)
        first, second = (low, low + distance) if way > 0 else (low + distance, low)
        yield (distance, way), Read(first, BLOCK), Read(second, BLOCK)


def _add_round(samples: _Samples, size: int, random: Random, replay: Replay, limit: float) -> None:
    """Adds the pairs of a round that a replay completes within a limit in seconds."""
    pairs = list(_pairs(size, random))
    if limit <= 0:
        return
    done = replay([read for _, *both in pairs for read in both], limit)
    for (kind, _, _), seconds in zip(pairs, done[1::2], strict=False):
        samples[kind].append(seconds)


def _check_pairs(samples: _Samples, seconds: float) -> None:
    fewest = min(map(len, samples.values()))
    if fewest >= LEAST_PAIRS:
        return
    needed = len(samples) * FIRST_ROUNDS * PAIRS
    found = sum(map(len, samples.values()))
    message = f"{found} of {needed} pairs of reads in {duration_text(FIRST_SHARE * seconds)}"
    raise InputError.about("--duration", f"{message}: the device is slow; measure for longer")


def _check_seeks(samples: _Samples, size: int) -> None:
    """Checks that far pairs take longer than near ones, and longer than half a rotation."""
    near_distances = [d for d in distances(size) if max(LEAST_NEAR, NEAR[0] * size) <= d <= NEAR[1] * size]
    far_distances = [distance for distance in distances(size) if distance >= size // 2 // BLOCK * BLOCK]
    near = sorted(s for d in near_distances for way in (1, -1) for s in samples[d, way])
    far = sorted(s for d in far_distances for way in (1, -1) for s in samples[d, way])
    # Mann and Whitney's statistic, as a probability; ties count half.
    longer = sum(bisect_left(near, s) + bisect_right(near, s) for s in far) / (2 * len(near) * len(far))
    if longer >= LONGER and median(far) >= max(RATIO * median(near), LEAST_FAR_S):
        return
    far_text, near_text = bytes_text(far_distances[0]), bytes_text(near_distances[-1])
    message = (
        f"reads {far_text} or more apart take {time_text(median(far))}, and reads at most {near_text} apart"
        f" {time_text(median(near))}: no seeks of a disk, as on an SSD, a RAM disk or a throttled device"
    )
    error = InputError.about("--disk", message)
    error.add_note("leeward device profile --fio DIR measures such a device, and writes a table")
    error.add_note("of a disk, name the whole device rather than a file, and keep other load away")
    raise error


def seek_times(samples: _Samples, rate: float) -> list[SeekTime]:
    """Seek times by distance, from the pairs and the rate of transfers in bytes per second."""
    transfer = BLOCK / rate
    rows = []
    for distance in sorted({distance for distance, _ in samples}):
        forward, backward = (
            [max(seconds - transfer, 0.0) for seconds in samples[distance, way]] for way in (1, -1)
        )
        both = sorted(forward + backward)
        rows.append(
            SeekTime(
                distance,
                (median(forward) + median(backward)) / 2,
                median(forward),
                median(backward),
                both[len(both) // 10],
                both[-1 - len(both) // 10],
                len(both),
            )
        )
    return rows


def _rates(size: int, random: Random, replay: Replay, limit: float) -> tuple[list[Zone], float]:
    """Rates of sequential reads by place, and over all places."""
    length = ZONE_CHUNKS * CHUNK
    starts = [_aligned((size - length) * zone / (ZONES - 1)) for zone in range(ZONES)]
    random.shuffle(starts)
    reads = [Read(start + chunk * CHUNK, CHUNK) for start in starts for chunk in range(ZONE_CHUNKS)]
    done = replay(reads, limit) if limit > 0 else []
    zones, count, total = [], 0, 0.0
    for number, start in enumerate(starts):
        continued = done[number * ZONE_CHUNKS : (number + 1) * ZONE_CHUNKS][1:]
        if sum(continued) > 0:
            zones.append(Zone(start, CHUNK * len(continued) / sum(continued)))
            count, total = count + len(continued), total + sum(continued)
    if not zones:
        message = f"no place was read in {duration_text(max(limit, 0.0))}"
        raise InputError.about("--duration", f"{message}: the device is slow; measure for longer")
    return sorted(zones, key=lambda zone: zone.offset), CHUNK * count / total


class _Streams:
    """Streams side by side: the most that a disk continues without a seek is its history.

    Attributes:
        late: True if the time ended before the search.
    """

    def __init__(
        self,
        size: int,
        seeks: list[SeekTime],
        rate: float,
        random: Random,
        replay: Replay,
        left: Callable[[], float],
    ) -> None:
        self.late = False
        self._size, self._seeks, self._transfer = size, seeks, BLOCK / rate
        self._random, self._replay, self._left = random, replay, left

    def count(self) -> int:
        """Number of streams: doubled while the disk continues all of them, then bisected."""
        low, high = 0, 1
        while high <= MOST_STREAMS and self._continues(high):
            low, high = high, 2 * high
        high = min(high, MOST_STREAMS + 1)
        while high - low > 1 and not self.late:
            middle = (low + high) // 2
            if self._continues(middle):
                low = middle
            else:
                high = middle
        return low

    def _continues(self, streams: int) -> bool:
        """True if most reads of streams, read in turn, take less than half a seek; False too without time."""
        starts = [
            _aligned(self._size * (stream + self._random.uniform(0.1, 0.6)) / streams)
            for stream in range(streams)
        ]
        turns = SETTLING + max(TURNS, -(-LEAST_CONTINUED // streams))
        reads = [Read(start + turn * BLOCK, BLOCK) for turn in range(turns) for start in starts]
        limit = self._left()
        done = self._replay(reads, limit) if limit > 0 else []
        if len(done) < len(reads):
            self.late = True
            return False
        settled = SETTLING * streams
        without = 0
        for at in range(settled, len(reads)):
            distance = abs(reads[at].offset - reads[at - 1].offset)
            without += done[at] < self._transfer + self._seek(distance) / 2
        return 2 * without > len(reads) - settled

    def _seek(self, distance: int) -> float:
        """Seek time at a distance, on straight lines between the measured ones."""
        at = bisect_left([seek.distance for seek in self._seeks], distance)
        if at in (0, len(self._seeks)):
            return self._seeks[min(at, len(self._seeks) - 1)].seconds
        below, above = self._seeks[at - 1], self._seeks[at]
        share = (distance - below.distance) / (above.distance - below.distance)
        return below.seconds + share * (above.seconds - below.seconds)
