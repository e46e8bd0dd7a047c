"""Inflation of latency by utilization, and its two summary numbers.

For a bucket of utilization, from the histograms of its latencies::

    inflation(bucket) = p95(bucket) / p95(the lowest bucket with enough latencies)
    load-tolerance(f) = the lower edge of the first bucket whose inflation is f or more
    hotspot-inflation = inflation of the bucket that begins at 75 %

(Hotspots, sections 4.1 and 4.2). The same numbers are computed with medians. A percentile is the middle of
the bin that holds the latency of rank ceil(share x latencies); `leeward.impact.bins` states its error.
Confidence intervals come from a bootstrap that draws latencies independently of each other.
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
"""Percentiles of inflation, in percent of latencies."""


@dataclass(frozen=True)
class Estimate:
    """A number and its confidence interval; None if unknown."""

    value: float | None
    low: float | None
    high: float | None


UNKNOWN = Estimate(None, None, None)


@dataclass(frozen=True)
class Bucket:
    """Latencies at utilizations from `low_ppm` to below `high_ppm` (in millionths).

    Attributes:
        low_ppm: Lower edge.
        high_ppm: Upper edge.
        latencies: Number of latencies.
        enough: True if the bucket is judged: it has at least `Settings.least` latencies.
        ns: Percentiles of latency, by `PERCENTILES`, in nanoseconds.
        inflation: Ratio of each percentile to that of the first judged bucket; unknown for a bucket that is
            not judged.
        sum_us: Sum of all latencies, in microseconds.
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
    """Utilization at which inflation reaches a factor.

    Attributes:
        factor: The factor.
        of: Name of the percentile, as in `PERCENTILES`.
        utilization: Share of the capacity; None if inflation does not reach the factor.
        gap: True if the bucket just below has too few latencies, so that the true value may be lower.
        judged_ppm: Upper edge of the last judged bucket, in millionths. An unreached factor may be reached
            above it.
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
        split: Kind: the value of each field by which latencies are split, as text; None if unknown.
        part: `total`, or `network` for the part of latencies on the network.
        buckets: Buckets with latencies, the lowest first.
        tolerances: Load-tolerance for each factor and percentile.
        hotspot: Hotspot-inflation, by `PERCENTILES`.
    """

    split: Mapping[str, str | None]
    part: str
    buckets: Sequence[Bucket]
    tolerances: Sequence[Tolerance]
    hotspot: Mapping[str, Estimate]

    @property
    def name(self) -> str:
        """The kind as text."""
        return " ".join("(not stated)" if value is None else value for value in self.split.values())

    @property
    def judged(self) -> list[Bucket]:
        """Buckets with enough latencies; inflation is relative to the first."""
        return [bucket for bucket in self.buckets if bucket.enough]


@dataclass(frozen=True)
class _Histogram:
    """Latencies of a bucket: occupied bins, and the cumulative number of latencies up to each bin."""

    bins: Whole
    cumulative: Whole
    sum_us: int

    @property
    def latencies(self) -> int:
        return int(self.cumulative[-1])

    def rank(self, percent: int) -> int:
        """Rank of a percentile; the smallest latency has rank 1."""
        return -(-percent * self.latencies // 100)

    def percentile(self, percent: int) -> float:
        index = numpy.searchsorted(self.cumulative, self.rank(percent))
        return float(middles(self.bins[index : index + 1])[0])

    def resample(self, percent: int, times: int, random: numpy.random.Generator) -> Floats:
        """Percentile in each of `times` resamples: as many latencies as here, drawn with replacement.

        A resample consists of the quantiles of the empirical distribution at n independent uniform shares.
        The share of rank r among them has the distribution Beta(r, n + 1 - r). So one draw from that
        distribution replaces n draws of latencies.
        """
        rank, total = self.rank(percent), self.latencies
        share = random.beta(rank, total + 1 - rank, times)
        indices = numpy.searchsorted(self.cumulative, share * total)
        return middles(self.bins[numpy.minimum(indices, len(self.bins) - 1)])


def curves(counts: pyarrow.Table, by: Sequence[str], settings: Settings) -> list[Curve]:
    """Curves of all kinds, in the order of the counts. Curves of the part on the network come last.

    Args:
        counts: Histograms as in `leeward.impact.join.LatencyHistograms`.
        by: Fields by which latencies are split.
        settings: Widths and thresholds.
    """
    kinds: dict[tuple[Any, ...], dict[int, list[int]]] = {}
    keys = zip(*(counts[name].to_pylist() for name in (*by, "part", "bucket")), strict=True)
    for row, (*kind, bucket) in enumerate(keys):
        kinds.setdefault(tuple(kind), {}).setdefault(bucket, []).append(row)
    columns = [counts[name].to_numpy() for name in ("bin", "latencies", "sum_us")]
    result = []
    for (*values, part), buckets in kinds.items():
        histograms = {
            bucket: _Histogram(columns[0][rows], numpy.cumsum(columns[1][rows]), int(columns[2][rows].sum()))
            for bucket, rows in buckets.items()
        }
        split = {name: value_text(name, value, settings) for name, value in zip(by, values, strict=True)}
        result.append(_curve(split, part, histograms, settings))
    return sorted(result, key=lambda curve: curve.part != "total")


def value_text(field: str, value: Any, settings: Settings) -> str | None:
    """Text for a value of a field by which latencies are split. A value of `size` or `compute` is a class."""
    if value is None or field not in ("size", "compute"):
        return None if value is None else str(value)
    from leeward._quantities import bytes_literal

    edges = settings.sizes if field == "size" else settings.ratios
    labels = [bytes_literal(edge) if field == "size" else f"{edge / MILLION:g}" for edge in edges]
    labels = ["0", *labels, "1" if field == "compute" else ""]
    low, high = labels[value], labels[value + 1]
    return f"{low} to {high}" if high else f"from {low}"


def _curve(
    split: Mapping[str, str | None], part: str, histograms: Mapping[int, _Histogram], settings: Settings
) -> Curve:
    judged = [bucket for bucket in sorted(histograms) if histograms[bucket].latencies >= settings.least]
    key = zlib.crc32(json.dumps([part, *split.items()]).encode())
    inflation: dict[str, dict[int, float]] = {}
    resamples: dict[str, dict[int, Floats]] = {}
    for number, (name, percent) in enumerate(PERCENTILES.items()):
        # Each curve and percentile has its own generator, so that further curves do not change its draws.
        random = numpy.random.Generator(numpy.random.PCG64([settings.seed, key, number]))
        times = settings.resamples
        values = {bucket: histograms[bucket].percentile(percent) for bucket in judged}
        draws = {bucket: histograms[bucket].resample(percent, times, random) for bucket in judged}
        inflation[name] = {bucket: value / values[judged[0]] for bucket, value in values.items()}
        resamples[name] = {bucket: value / draws[judged[0]] for bucket, value in draws.items()}
    width = settings.bucket_ppm
    buckets = [
        Bucket(
            low_ppm=bucket * width,
            high_ppm=(bucket + 1) * width,
            latencies=histograms[bucket].latencies,
            enough=bucket in judged,
            ns={name: histograms[bucket].percentile(percent) for name, percent in PERCENTILES.items()},
            inflation={
                name: _estimate(inflation[name][bucket], resamples[name][bucket], settings)
                if bucket in judged
                else UNKNOWN
                for name in PERCENTILES
            },
            sum_us=histograms[bucket].sum_us,
        )
        for bucket in sorted(histograms)
    ]
    tolerances = [
        _tolerance(factor, name, judged, inflation[name], resamples[name], settings)
        for factor in settings.factors
        for name in PERCENTILES
        if len(judged) > 1
    ]
    hot = settings.hot_ppm // width
    hotspot = next((bucket.inflation for bucket in buckets if bucket.low_ppm == hot * width), None)
    return Curve(split, part, buckets, tolerances, hotspot or dict.fromkeys(PERCENTILES, UNKNOWN))


def _tolerance(
    factor: float,
    name: str,
    judged: Sequence[int],
    inflation: Mapping[int, float],
    resamples: Mapping[int, Floats],
    settings: Settings,
) -> Tolerance:
    measured = numpy.array([[inflation[bucket]] for bucket in judged])
    resampled = numpy.array([resamples[bucket] for bucket in judged])
    (value,) = _reached_at(factor, judged, measured, settings)
    low, high = _ends(_reached_at(factor, judged, resampled, settings), settings)
    first = next((bucket for bucket in judged if inflation[bucket] >= factor), None)
    gap = first is not None and first - 1 not in judged
    judged_ppm = (judged[-1] + 1) * settings.bucket_ppm
    utilization = Estimate(*(_finite_or_none(number) for number in (value, low, high)))
    return Tolerance(factor, name, utilization, gap, judged_ppm)


def _reached_at(factor: float, judged: Sequence[int], inflation: Floats, settings: Settings) -> Floats:
    """Utilization at which each column of inflations reaches a factor; infinite if the column never does."""
    above = inflation >= factor
    first = numpy.argmax(above, axis=0)
    edges = numpy.asarray([bucket * settings.bucket_ppm for bucket in judged]) / MILLION
    result = edges[first]
    if settings.interpolate:
        # The first bucket has an inflation of 1 and factors are above 1, so there is a bucket before.
        before = numpy.maximum(first - 1, 0)
        columns = numpy.arange(inflation.shape[1])
        low, high = inflation[before, columns], inflation[first, columns]
        rise = numpy.where(high > low, high - low, 1.0)
        share = (factor - low) / rise
        half = settings.bucket_ppm / MILLION / 2
        result = edges[before] + half + share * (edges[first] - edges[before])
    return numpy.where(above.any(axis=0), result, math.inf)


def _estimate(value: float, resamples: Floats, settings: Settings) -> Estimate:
    low, high = _ends(resamples, settings)
    return Estimate(value, _finite_or_none(low), _finite_or_none(high))


def _ends(resamples: NDArray[numpy.float64], settings: Settings) -> tuple[float, float]:
    """Ends of the confidence interval: percentiles of the resamples."""
    if not len(resamples):
        return math.nan, math.nan
    # There is no interpolation between two resamples, because one may be infinite.
    in_order, tail = numpy.sort(resamples), (1 - settings.confidence) / 2
    low, high = (max(math.ceil(share * len(in_order)), 1) - 1 for share in (tail, 1 - tail))
    return float(in_order[low]), float(in_order[high])


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
