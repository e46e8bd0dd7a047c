"""Synthetic latencies and telemetry with a known inflation.

An operation has a base time, a share of which is time on the network. That share grows with the utilization
of its busiest link by a given curve, and the total varies by a lognormal factor. So inflation is known in
each bucket, for every percentile::

    inflation(bucket) = 1 - share + share x growth(bucket)

The curve is an input here. Results on such data test the analysis, and say nothing about any network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy
import pyarrow
from numpy.typing import NDArray

from leeward.impact.operations import ENDS, SIDES, rules

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


@dataclass(frozen=True)
class Kind:
    """Operations of one kind.

    Attributes:
        operation: One of `OPERATIONS` whose rule has racks at both ends.
        growth: Growth of the time on the network in each bucket; 1 in the first.
        share: Share of the base time on the network.
        base_ms: Median latency in the first bucket, at least 20.
        spread: Standard deviation of the logarithm of latencies.
        medium: Medium of the operations.
    """

    operation: str
    growth: Sequence[float]
    share: float = 1.0
    base_ms: float = 40.0
    spread: float = 0.4
    medium: str = "hdd"

    def inflation(self) -> list[float]:
        """Planted inflation of each bucket."""
        return [1 - self.share + self.share * growth for growth in self.growth]


@dataclass(frozen=True)
class SyntheticData:
    """Synthetic data.

    Attributes:
        samples: Telemetry, with the columns of `Samples`.
        latencies: `t_ms`, `latency_ms`, `network_ms`, `operation`, `medium`, `src`, `dst`.
    """

    samples: pyarrow.Table
    latencies: pyarrow.Table


def plant(
    links: pyarrow.Table,
    kinds: Sequence[Kind],
    *,
    intervals: int = 240,
    per_bucket: int = 200,
    even: bool = True,
    interval_ms: int = 30_000,
    seed: int = 1,
) -> SyntheticData:
    """Makes telemetry of racks, and latencies of operations between them.

    A quarter of the operations run in two intervals.

    Args:
        links: Links of a cluster with racks, as in `Cluster.links()`.
        kinds: Kinds of operations. All curves have the same number of buckets: 20 if a bucket is 5 % wide.
        intervals: Number of intervals.
        per_bucket: Number of latencies of each kind in each bucket.
        even: True to take the factors of a bucket from the distribution's quantiles, so that the analysis
            finds the inflation as exactly as bins allow; false to draw the factors.
        interval_ms: Length of an interval.
        seed: Seed of all draws.
    """
    random = numpy.random.Generator(numpy.random.PCG64(seed))
    buckets = len(kinds[0].growth)
    rows = [row for row in links.to_pylist() if row["host"] is None and row["rack"] is not None]
    racks = list(dict.fromkeys(row["rack"] for row in rows))
    row_of_link = {(row["rack"], row["direction"]): number for number, row in enumerate(rows)}
    level = random.integers(0, buckets, (len(rows), intervals))
    # Utilizations away from the edges stay in their bucket when bits are rounded.
    utilization = (level + random.uniform(0.01, 0.99, level.shape)) / buckets
    capacity = numpy.array([row["capacity_bps"] for row in rows], dtype=numpy.int64)
    bits = (utilization * (capacity * (interval_ms / 1000))[:, None]).astype(numpy.int64)
    ends = START_MS + interval_ms * (1 + numpy.arange(intervals, dtype=numpy.int64))
    samples = pyarrow.table(
        {
            "link": pyarrow.array(numpy.repeat([row["link"] for row in rows], intervals), "int32"),
            "t_ms": numpy.tile(ends, len(rows)),
            "span_ms": numpy.full(level.size, interval_ms, dtype=numpy.int64),
            "bits": bits.ravel(),
            "capacity_bps": numpy.repeat(capacity, intervals),
        }
    )
    pairs = numpy.array([(src, dst) for src in racks for dst in racks if src != dst])
    parts = [
        _operations(
            kind, row_of_link, pairs, level, ends - interval_ms, per_bucket, even, interval_ms, random
        )
        for kind in kinds
    ]
    return SyntheticData(samples, pyarrow.concat_tables(parts))


def _operations(
    kind: Kind,
    row_of_link: Mapping[tuple[str, str], int],
    pairs: NDArray[numpy.str_],
    level: NDArray[numpy.int64],
    starts: NDArray[numpy.int64],
    per_bucket: int,
    even: bool,
    interval_ms: int,
    random: numpy.random.Generator,
) -> pyarrow.Table:
    """Latencies of a kind, equally many in each bucket."""
    crossed = [
        [
            row_of_link[str(pair[ENDS.index(part.end)]), SIDES[part.side][1]]
            for part in rules()[kind.operation]
        ]
        for pair in pairs
    ]
    # Shape (pairs, intervals): the bucket of an operation in an interval, or in it and the one before.
    in_one = numpy.array([level[links].max(axis=0) for links in crossed])
    in_two = numpy.maximum(in_one, numpy.concatenate([in_one[:, :1], in_one[:, :-1]], axis=1))
    in_two[:, 0] = -1
    columns: dict[str, list[NDArray[numpy.generic]]] = {
        name: [] for name in ("t_ms", "latency_ms", "network_ms", "src", "dst")
    }
    normal = NormalDist(sigma=kind.spread)
    for bucket, growth in enumerate(kind.growth):
        spanning = per_bucket // 4 if (in_two == bucket).any() else 0
        places = []
        for grid, count in ((in_two, spanning), (in_one, per_bucket - spanning)):
            candidates = numpy.argwhere(grid == bucket)
            places.append(candidates[random.integers(0, len(candidates), count)])
        drawn = numpy.concatenate(places)
        if even:
            shares = (numpy.arange(per_bucket) + 0.5) / per_bucket
            factor = numpy.exp([normal.inv_cdf(share) for share in random.permutation(shares)])
        else:
            factor = random.lognormal(0.0, kind.spread, per_bucket)
        network = kind.base_ms * kind.share * growth * factor
        latency = kind.base_ms * (1 - kind.share) * factor + network
        start = starts[drawn[:, 1]].astype(numpy.float64)
        # Either half before the interval begins, or all within it.
        within = start + latency + random.uniform(0.01, 0.99, per_bucket) * (interval_ms - latency)
        end = numpy.where(numpy.arange(per_bucket) < spanning, start + latency / 2, within)
        for name, values in zip(columns, (end, latency, network, *pairs[drawn[:, 0]].T), strict=True):
            columns[name].append(values)
    whole = {name: numpy.concatenate(parts) for name, parts in columns.items()}
    rows = len(whole["t_ms"])
    return pyarrow.table(
        {
            "t_ms": numpy.round(whole["t_ms"], 3),
            "latency_ms": numpy.round(whole["latency_ms"], 6),
            "network_ms": numpy.round(numpy.minimum(whole["network_ms"], whole["latency_ms"]), 6),
            "operation": [kind.operation] * rows,
            "medium": [kind.medium] * rows,
            "src": whole["src"].tolist(),
            "dst": whole["dst"].tolist(),
        }
    )
