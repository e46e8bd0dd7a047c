"""Queries of storage operations and computation: figures 11 and 12, table 1, and figure 19.

The paper has seven benchmark queries. `BENCHMARKS` holds its statements about them; the notes of rows name
our assumptions. A query here is its slowest worker: it computes, and does its storage operations one after
the other, each as long as some operation of that kind took in the request simulator at that load of the link.
Compute takes the same time at every utilization.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy

from leeward._arrays import Floats, Ints
from leeward_reproduce.hotspots.rack_storage import ServedOperations
from leeward_reproduce.hotspots.racks import utilization

BASE_S = 1.0
"""Time of a worker's part on idle links; ours."""
BUCKET = 0.05
READ, SHUFFLE_READ, WRITE = "hdd-read", "ram-read", "hdd-write"
"""Chunk reads, reads of the memory of RamStore, and writes, which end in memory: of RamStore, or of the
write-back cache of a file server."""


@dataclass(frozen=True)
class Benchmark:
    """A query of section 4.2."""

    name: str
    compute: float
    """Share of computation in its time, on idle links."""
    storage: Mapping[str, float]
    """Shares of the rest, by operation."""
    note: str


_WORDS = "less network-intensive, says the paper, of ratios from 0.1 to 0.9: the upper end was taken"
BENCHMARKS = (
    Benchmark(
        "shuffle-flush",
        0.1,
        {SHUFFLE_READ: 0.5, WRITE: 0.5},
        "the paper: samples at compute ratio 0.1; half reads of memory and half writes to files is ours",
    ),
    Benchmark(
        "materialize",
        0.5,
        {READ: 0.5, WRITE: 0.5},
        "writes through files; the ratio is not published, the middle of 0.1 to 0.9 was taken",
    ),
    Benchmark(
        "aggregation",
        0.5,
        {READ: 0.6, WRITE: 0.2, SHUFFLE_READ: 0.2},
        "the paper: half computation, 30 % chunk reads, the rest shuffles",
    ),
    Benchmark("tpc-ds-q17", 0.9, {READ: 0.6, WRITE: 0.2, SHUFFLE_READ: 0.2}, _WORDS),
    Benchmark("tpc-h-q02", 0.9, {READ: 0.6, WRITE: 0.2, SHUFFLE_READ: 0.2}, _WORDS),
    Benchmark("shuffle", 0.9, {WRITE: 0.5, SHUFFLE_READ: 0.5}, _WORDS),
    Benchmark("streaming", 0.8, {READ: 1.0}, "the paper: chunk reads, with samples at compute ratio 0.8"),
)
"""All seven, in the order of table 1."""


class Worker:
    """Times of storage operations by the utilization of the link, from one experiment."""

    def __init__(self, served: ServedOperations) -> None:
        """Takes the results of the simulator."""
        self._served = served
        self._pools: dict[tuple[str, int], tuple[Floats, Floats]] = {}

    @cached_property
    def _utilization(self) -> Mapping[str, Floats]:
        return {way: utilization(self._served, way) for way in ("up", "down")}

    def _pool(self, operation: str, interval: int) -> tuple[Floats, Floats]:
        """Latencies of operations that ended in an interval, and their parts on the network."""
        if (operation, interval) not in self._pools:
            served = self._served
            of = served.of(operation) & (served.interval == interval)
            self._pools[operation, interval] = served.latency_s[of], served.network_s[of]
        return self._pools[operation, interval]

    @cached_property
    def idle_s(self) -> Mapping[str, float]:
        """Mean latency of each operation in the first interval, with almost idle links."""
        return {name: float(self._pool(name, 0)[0].mean()) for name in (READ, SHUFFLE_READ, WRITE)}

    def at(self, loads: Floats, way: str, random: numpy.random.Generator) -> Ints:
        """For each utilization an interval with the link in the same bucket, or else the nearest."""
        seen = self._utilization[way]
        bucket = (seen / BUCKET).astype(numpy.int64)
        needed = (numpy.minimum(loads, 1 - 1e-9) / BUCKET).astype(numpy.int64)
        result = numpy.zeros(len(loads), dtype=numpy.int64)
        for one in numpy.unique(needed):
            there = numpy.flatnonzero(bucket == one)
            if not len(there):
                there = numpy.array([numpy.argmin(numpy.abs(seen - (one + 0.5) * BUCKET))])
            mine = needed == one
            result[mine] = there[random.integers(0, len(there), int(mine.sum()))]
        return result

    def storage_s(
        self, of: Benchmark, ratio: float, reads: Ints, writes: Ints, random: numpy.random.Generator
    ) -> Floats:
        """Time in storage operations of one query each.

        Args:
            of: Operations of queries.
            ratio: Share of computation in their time, on idle links.
            reads: Intervals whose link reads cross.
            writes: Intervals whose link writes cross.
            random: Draws the operations.
        """
        total = numpy.zeros(len(reads))
        for name, share in of.storage.items():
            count = max(round((1 - ratio) * share * BASE_S / self.idle_s[name]), 1)
            total += self.operations_s(name, writes if name == WRITE else reads, count, random)[0]
        return total

    def operations_s(
        self, name: str, intervals: Ints, count: int, random: numpy.random.Generator
    ) -> tuple[Floats, Floats]:
        """A number of operations of a kind one after the other, in each of some intervals.

        Returns:
            Sum of their latency, and its part on the network, in seconds.
        """
        total, network = numpy.zeros(len(intervals)), numpy.zeros(len(intervals))
        for interval in numpy.unique(intervals):
            latency, part = self._pool(name, int(interval))
            mine = numpy.flatnonzero(intervals == interval)
            if len(latency):
                workloads = random.integers(0, len(latency), (len(mine), count))
                total[mine], network[mine] = latency[workloads].sum(axis=1), part[workloads].sum(axis=1)
        return total, network
