"""Queries of storage operations and computation: figures 11 and 12, table 1, and figure 19.

The paper has seven benchmark queries. `BENCHMARKS` has its statements about them; the notes of rows name our
assumptions. The slowest worker of a query determines its time; this worker computes, and does its storage
operations one after another. The latency of each operation is drawn from the request simulator's operations
of the same kind, at the same utilization of the link. Computation takes the same time at every utilization.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy

from leeward._arrays import Floats, Ints
from leeward_reproduce.hotspots.rack_storage import ServedOperations
from leeward_reproduce.hotspots.racks import utilization

BASE_S = 1.0
"""Seconds of a worker's part on idle links; our assumption."""
BUCKET = 0.05
"""Width of a bucket of utilization."""
READ, SHUFFLE_READ, WRITE = "hdd-read", "ram-read", "hdd-write"
"""Reads of chunks, reads of RamStore's memory, and writes. Writes end in the memory of RamStore, or in the
write-back cache of a file server."""


@dataclass(frozen=True)
class Benchmark:
    """A query of section 4.2."""

    name: str
    compute: float
    """Share of computation in the time of a query, on idle links."""
    storage: Mapping[str, float]
    """Shares of the operations in the other part of its time."""
    note: str


_RATIO_NOTE = (
    "the paper: less network-intensive, and ratios of all queries from 0.1 to 0.9; the upper end is our"
    " assumption"
)
BENCHMARKS = (
    Benchmark(
        "shuffle-flush",
        0.1,
        {SHUFFLE_READ: 0.5, WRITE: 0.5},
        "the paper: samples at compute ratio 0.1; half reads of memory and half writes to files are our"
        " assumption",
    ),
    Benchmark(
        "materialize",
        0.5,
        {READ: 0.5, WRITE: 0.5},
        "writes through files; the ratio is not published; our assumption is the middle of 0.1 to 0.9",
    ),
    Benchmark(
        "aggregation",
        0.5,
        {READ: 0.6, WRITE: 0.2, SHUFFLE_READ: 0.2},
        "the paper: half computation, 30 % chunk reads, the rest shuffles",
    ),
    Benchmark("tpc-ds-q17", 0.9, {READ: 0.6, WRITE: 0.2, SHUFFLE_READ: 0.2}, _RATIO_NOTE),
    Benchmark("tpc-h-q02", 0.9, {READ: 0.6, WRITE: 0.2, SHUFFLE_READ: 0.2}, _RATIO_NOTE),
    Benchmark("shuffle", 0.9, {WRITE: 0.5, SHUFFLE_READ: 0.5}, _RATIO_NOTE),
    Benchmark("streaming", 0.8, {READ: 1.0}, "the paper: chunk reads, with samples at compute ratio 0.8"),
)
"""All seven, in the order of table 1."""


class Worker:
    """Sampler of storage operations by the utilization of the link, from one experiment."""

    def __init__(self, served: ServedOperations) -> None:
        """Prepares samples of these operations of the simulator."""
        self._served = served
        self._pools: dict[tuple[str, int], tuple[Floats, Floats]] = {}

    @cached_property
    def _utilization(self) -> Mapping[str, Floats]:
        return {way: utilization(self._served, way) for way in ("up", "down")}

    def _pool(self, operation: str, interval: int) -> tuple[Floats, Floats]:
        """Latencies of the operations that ended in an interval, and their seconds on the network."""
        if (operation, interval) not in self._pools:
            served = self._served
            rows = served.of(operation) & (served.interval == interval)
            self._pools[operation, interval] = served.latency_s[rows], served.network_s[rows]
        return self._pools[operation, interval]

    @cached_property
    def idle_s(self) -> Mapping[str, float]:
        """Mean latency of each operation in the first interval, with almost idle links."""
        return {name: float(self._pool(name, 0)[0].mean()) for name in (READ, SHUFFLE_READ, WRITE)}

    def draw_intervals(self, loads: Floats, way: str, random: numpy.random.Generator) -> Ints:
        """Draws an interval for each utilization, from those in the same bucket; if none is, the nearest."""
        seen = self._utilization[way]
        bucket = (seen / BUCKET).astype(numpy.int64)
        needed = (numpy.minimum(loads, 1 - 1e-9) / BUCKET).astype(numpy.int64)
        result = numpy.zeros(len(loads), dtype=numpy.int64)
        for one in numpy.unique(needed):
            candidates = numpy.flatnonzero(bucket == one)
            if not len(candidates):
                candidates = numpy.array([numpy.argmin(numpy.abs(seen - (one + 0.5) * BUCKET))])
            mine = needed == one
            result[mine] = candidates[random.integers(0, len(candidates), int(mine.sum()))]
        return result

    def storage_s(
        self, benchmark: Benchmark, ratio: float, reads: Ints, writes: Ints, random: numpy.random.Generator
    ) -> Floats:
        """Draws the seconds that queries spend in storage operations, one value for each query.

        Args:
            benchmark: Benchmark of the queries.
            ratio: Share of computation in the time of a query, on idle links.
            reads: Interval from which the reads of each query are drawn.
            writes: Interval from which the writes of each query are drawn.
            random: Source of the draws.
        """
        total = numpy.zeros(len(reads))
        for name, share in benchmark.storage.items():
            count = max(round((1 - ratio) * share * BASE_S / self.idle_s[name]), 1)
            total += self.operations_s(name, writes if name == WRITE else reads, count, random)[0]
        return total

    def operations_s(
        self, name: str, intervals: Ints, count: int, random: numpy.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draws `count` operations of a kind from each interval; they follow one another.

        Returns:
            For each interval, the sum of the latencies and its part on the network, in seconds.
        """
        total, network = numpy.zeros(len(intervals)), numpy.zeros(len(intervals))
        for interval in numpy.unique(intervals):
            latency, part = self._pool(name, int(interval))
            mine = numpy.flatnonzero(intervals == interval)
            if len(latency):
                choices = random.integers(0, len(latency), (len(mine), count))
                total[mine], network[mine] = latency[choices].sum(axis=1), part[choices].sum(axis=1)
        return total, network
