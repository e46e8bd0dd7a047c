"""Inflation of latency by utilization, and the two numbers that it is told by.

For a bucket of utilization, from the histograms of its latencies::

    inflation(bucket) = p95(bucket) / p95(the lowest bucket with enough latencies)
    load-tolerance(f) = the lower edge of the first bucket whose inflation is f or more
    hotspot-inflation = inflation of the bucket that begins at 75 %

(Hotspots, sections 4.1 and 4.2), and the same with medians. A percentile is the middle of the bin that holds
the latency of rank ceil(share x latencies), see `leeward.impact.bins` for how exact that is. Intervals are
of the bootstrap, for which latencies are drawn independently of each other.
"""

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
from numpy.typing import NDArray

from leeward._arrays import Floats
from leeward.impact.bins import Whole, middles
from leeward.impact.settings import MILLION, Settings

PERCENTILES = {"p95": 95, "median": 50}
"""What inflation is of, in percent of latencies."""


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval; None, where there is none."""

    value: float | None
    low: float | None
    high: float | None


NOTHING = Estimate(None, None, None)


@dataclass(frozen=True)
class Bucket:
    """Latencies at utilizations from `low_ppm` to below `high_ppm` (in millionths).

    Attributes:
        low_ppm: Its lower edge.
        high_ppm: Its upper edge.
        latencies: How many.
        enough: Whether it is judged: it has as many as settings ask for.
        ns: The percentiles of latency, by `PERCENTILES`, in nanoseconds.
        inflation: The same over those of the first bucket that is judged; nothing, where it is not judged.
        sum_us: All latencies together, in microseconds.
    """

    low_ppm: int
    high_ppm: int
    latencies: int
    enough: bool
    ns: Mapping[str, float]
    inflation: Mapping[str, Estimate]
    sum_us: int


@dataclass(frozen=True)
class Tolerance:
    """At which utilization inflation reaches a factor.

    Attributes:
        factor: The factor.
        of: Which percentile it is of.
        utilization: A share from 0 on; None: it is not reached. The same of the ends of the interval.
        gap: Whether buckets just below have too few latencies, so that it may be reached there already.
        judged_ppm: Up to which utilization buckets are judged, in millionths: it may be reached above.
    """

    factor: float
    of: str
    utilization: Estimate
    gap: bool
    judged_ppm: int


@dataclass(frozen=True)
class Curve:
    """Inflation of latencies of one kind.

    Attributes:
        split: What kind: a value of each that latencies are split by, in words; None, where it is not stated.
        part: `total`, or `network` for the part of them on the network.
        buckets: Those with latencies, the lowest first.
        tolerances: For each factor and percentile.
        hotspot: Hotspot-inflation, by `PERCENTILES`.
    """

    split: Mapping[str, str | None]
    part: str
    buckets: Sequence[Bucket]
    tolerances: Sequence[Tolerance]
    hotspot: Mapping[str, Estimate]

    @property
    def name(self) -> str:
        """Its kind in words."""
        return " ".join("(not stated)" if value is None else value for value in self.split.values())

    @property
    def judged(self) -> list[Bucket]:
        """The buckets with enough latencies; inflation is over the first."""
        return [bucket for bucket in self.buckets if bucket.enough]


@dataclass(frozen=True)
class _Histogram:
    """Latencies of a bucket: bins with any, and how many are in each and all before it."""

    bins: Whole
    upto: Whole
    sum_us: int

    @property
    def latencies(self) -> int:
        return int(self.upto[-1])

    def rank(self, percent: int) -> int:
        """Which latency, from the smallest, from 1."""
        return -(-percent * self.latencies // 100)

    def percentile(self, percent: int) -> float:
        at = numpy.searchsorted(self.upto, self.rank(percent))
        return float(middles(self.bins[at : at + 1])[0])

    def redrawn(self, percent: int, times: int, random: numpy.random.Generator) -> Floats:
        """The percentile of as many latencies, drawn from these with replacement, so many times.

        What is drawn with replacement has the values of the empirical distribution at independent uniform
        shares, and the share at a rank r of n has the distribution Beta(r, n + 1 - r). One draw of it is the
        same bootstrap as n draws of latencies, or as one of the counts of all bins.
        """
        rank, of = self.rank(percent), self.latencies
        share = random.beta(rank, of + 1 - rank, times)
        at = numpy.searchsorted(self.upto, share * of)
        return middles(self.bins[numpy.minimum(at, len(self.bins) - 1)])


def curves(counts: pyarrow.Table, by: Sequence[str], settings: Settings) -> list[Curve]:
    """The curves of all kinds, in order of their splits, with those of the network after those of all.

    Args:
        counts: Histograms as `leeward.impact.join.Joined` has them.
        by: What they are split by.
        settings: Widths and thresholds.
    """
    kinds: dict[tuple[Any, ...], dict[int, list[int]]] = {}
    keys = zip(*(counts[name].to_pylist() for name in (*by, "part", "bucket")), strict=True)
    for row, (*kind, bucket) in enumerate(keys):
        kinds.setdefault(tuple(kind), {}).setdefault(bucket, []).append(row)
    columns = [counts[name].to_numpy() for name in ("bin", "latencies", "sum_us")]
    made = []
    for (*values, part), buckets in kinds.items():
        histograms = {
            bucket: _Histogram(columns[0][rows], numpy.cumsum(columns[1][rows]), int(columns[2][rows].sum()))
            for bucket, rows in buckets.items()
        }
        split = {name: words(name, value, settings) for name, value in zip(by, values, strict=True)}
        made.append(_curve(split, part, histograms, settings))
    return sorted(made, key=lambda curve: curve.part != "total")


def words(split: str, value: Any, settings: Settings) -> str | None:
    """A class of what latencies are split by, in words."""
    if value is None or split not in ("size", "compute"):
        return None if value is None else str(value)
    from leeward._native import bytes_text

    edges = settings.sizes if split == "size" else settings.ratios
    shown = [bytes_text(edge) if split == "size" else f"{edge / MILLION:g}" for edge in edges]
    shown = ["0", *shown, "1" if split == "compute" else ""]
    low, high = shown[value], shown[value + 1]
    return f"{low} to {high}" if high else f"from {low}"


def _curve(
    split: Mapping[str, str | None], part: str, of: Mapping[int, _Histogram], settings: Settings
) -> Curve:
    judged = [bucket for bucket in sorted(of) if of[bucket].latencies >= settings.least]
    key = zlib.crc32(json.dumps([part, *split.items()]).encode())
    inflation: dict[str, dict[int, float]] = {}
    redrawn: dict[str, dict[int, Floats]] = {}
    for at, (name, percent) in enumerate(PERCENTILES.items()):
        # Each curve and percentile draws by itself: none changes if others are added.
        random = numpy.random.Generator(numpy.random.PCG64([settings.seed, key, at]))
        times = settings.resamples
        values = {bucket: of[bucket].percentile(percent) for bucket in judged}
        drawn = {bucket: of[bucket].redrawn(percent, times, random) for bucket in judged}
        inflation[name] = {bucket: value / values[judged[0]] for bucket, value in values.items()}
        redrawn[name] = {bucket: value / drawn[judged[0]] for bucket, value in drawn.items()}
    width = settings.bucket_ppm
    buckets = [
        Bucket(
            low_ppm=bucket * width,
            high_ppm=(bucket + 1) * width,
            latencies=of[bucket].latencies,
            enough=bucket in judged,
            ns={name: of[bucket].percentile(percent) for name, percent in PERCENTILES.items()},
            inflation={
                name: _estimate(inflation[name][bucket], redrawn[name][bucket], settings)
                if bucket in judged
                else NOTHING
                for name in PERCENTILES
            },
            sum_us=of[bucket].sum_us,
        )
        for bucket in sorted(of)
    ]
    tolerances = [
        _tolerance(factor, name, judged, inflation[name], redrawn[name], settings)
        for factor in settings.factors
        for name in PERCENTILES
        if len(judged) > 1
    ]
    hot = settings.hot_ppm // width
    found = next((bucket.inflation for bucket in buckets if bucket.low_ppm == hot * width), None)
    return Curve(split, part, buckets, tolerances, found or dict.fromkeys(PERCENTILES, NOTHING))


def _tolerance(
    factor: float,
    name: str,
    judged: Sequence[int],
    inflation: Mapping[int, float],
    redrawn: Mapping[int, Floats],
    settings: Settings,
) -> Tolerance:
    one = numpy.array([[inflation[bucket]] for bucket in judged])
    many = numpy.array([redrawn[bucket] for bucket in judged])
    (value,) = _reached(factor, judged, one, settings)
    low, high = _ends(_reached(factor, judged, many, settings), settings)
    # What is said of a first bucket says more than was seen if buckets just below it are missing.
    first = next((bucket for bucket in judged if inflation[bucket] >= factor), None)
    gap = first is not None and first - 1 not in judged
    upto = (judged[-1] + 1) * settings.bucket_ppm
    return Tolerance(factor, name, Estimate(*(_stated(end) for end in (value, low, high))), gap, upto)


def _reached(factor: float, judged: Sequence[int], inflation: Floats, settings: Settings) -> Floats:
    """The utilization at which each column of inflations reaches a factor; infinite where none does."""
    above = inflation >= factor
    first = numpy.argmax(above, axis=0)
    edges = numpy.asarray([bucket * settings.bucket_ppm for bucket in judged]) / MILLION
    found = edges[first]
    if settings.interpolate:
        # The first bucket has an inflation of 1, so that there is one before.
        before = numpy.maximum(first - 1, 0)
        columns = numpy.arange(inflation.shape[1])
        low, high = inflation[before, columns], inflation[first, columns]
        rise = numpy.where(high > low, high - low, 1.0)
        share = (factor - low) / rise
        half = settings.bucket_ppm / MILLION / 2
        found = edges[before] + half + share * (edges[first] - edges[before])
    return numpy.where(above.any(axis=0), found, math.inf)


def _estimate(value: float, redrawn: Floats, settings: Settings) -> Estimate:
    low, high = _ends(redrawn, settings)
    return Estimate(value, _stated(low), _stated(high))


def _ends(redrawn: NDArray[numpy.float64], settings: Settings) -> tuple[float, float]:
    """The ends of the interval: percentiles of what was drawn, none of them between two draws."""
    if not len(redrawn):
        return math.nan, math.nan
    # Between two draws nothing is sought, as one of them may be infinite.
    ordered, tail = numpy.sort(redrawn), (1 - settings.confidence) / 2
    low, high = (max(math.ceil(share * len(ordered)), 1) - 1 for share in (tail, 1 - tail))
    return float(ordered[low]), float(ordered[high])


def _stated(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
