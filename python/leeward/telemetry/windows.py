"""Utilization of links in intervals of equal length, which is what "hot" is said of.

A sample belongs to the interval that holds the last millisecond it covers. For a link in an interval::

    utilization = sum of bits / sum of (capacity x span)

so a link whose capacity changed, or that was seen for a part of the interval only, is judged by what it was
seen to carry of what it could have. An interval of which less than a stated share was seen is *thin*, and not
judged.
"""

from dataclasses import dataclass
from typing import Any

import ibis

from leeward.telemetry.samples import Samples

MILLION = 1_000_000.0
"""Utilizations are whole millionths, so that both engines agree on each."""
INTERVAL_MS = 300_000
"""Five minutes, as in Hotspots, section 3.1."""
COVERAGE = 0.5
"""The least share of an interval that must be seen."""


@dataclass(frozen=True)
class Windows:
    """Utilization of each link in each interval.

    Attributes:
        samples: What it is made of.
        table: `link` (int32), `start_ms` (a whole multiple of the interval), `bits`, `capacity_bits`,
            `covered_ms` (all int64), `ppm` (int64: utilization in millionths, rounded down). In no order.
        interval_ms: The length of an interval.
        thin: A table of the same columns: intervals that were seen for too short a time to be judged.
    """

    samples: Samples
    table: ibis.Table
    interval_ms: int
    thin: ibis.Table


def windows(samples: Samples, interval_ms: int = INTERVAL_MS, coverage: float = COVERAGE) -> Windows:
    """Utilization in intervals.

    Args:
        samples: Of links.
        interval_ms: The length of an interval, in milliseconds.
        coverage: The least share of an interval that must be seen, from 0 to 1.
    """
    sample = samples.table
    last = sample.t_ms - 1
    start = last - last % interval_ms
    if samples.steady:
        counted = (
            sample.select("link", "bits", "capacity_bps", start_ms=start)
            .group_by("link", "start_ms")
            .agg(
                bits=lambda t: t.bits.sum().cast("int64"),
                number=lambda t: t.count(),
                capacity_bps=lambda t: t.capacity_bps.max(),
            )
        )
        grouped = counted.select(
            "link",
            "start_ms",
            "bits",
            capacity_bits=counted.number * _possible(counted.capacity_bps, samples.cadence_ms),
            covered_ms=counted.number * samples.cadence_ms,
        )
    else:
        grouped = (
            sample.mutate(start_ms=start, possible=_possible(sample.capacity_bps, sample.span_ms))
            .group_by("link", "start_ms")
            .agg(
                bits=lambda t: t.bits.sum().cast("int64"),
                capacity_bits=lambda t: t.possible.sum().cast("int64"),
                covered_ms=lambda t: t.span_ms.sum().cast("int64"),
            )
        )
    share = grouped.bits.cast("float64") * MILLION / grouped.capacity_bits.cast("float64")
    every = samples.engine.keep(grouped.mutate(ppm=share.floor().cast("int64")))
    enough = every.covered_ms >= int(interval_ms * coverage)
    return Windows(samples, every.filter(enough), interval_ms, every.filter(~enough))


def _possible(capacity_bps: Any, span_ms: Any) -> Any:
    """Bits that a link can carry in a time."""
    span = span_ms.cast("float64") if hasattr(span_ms, "cast") else float(span_ms)
    return (capacity_bps.cast("float64") * span / 1000.0).floor().cast("int64")
