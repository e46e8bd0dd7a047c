"""Utilization of links in intervals of equal length, the basis of "hot".

A sample belongs to the interval that holds the last millisecond of its span. For a link in an interval::

    utilization = sum of bits / sum of (capacity x span)

so that a link whose capacity changed, or that was seen for only a part of the interval, has the ratio of its
seen load to its seen capacity. An interval with telemetry for less than a stated share is *thin*, and is not
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
"""Least observed share of an interval."""


@dataclass(frozen=True)
class Windows:
    """Utilization of each link in each interval.

    Attributes:
        samples: Samples from which utilization is computed.
        table: `link` (int32), `start_ms` (a whole multiple of the interval), `bits`, `capacity_bits`,
            `covered_ms` (all int64), `ppm` (int64: utilization in millionths, rounded down). In no order.
        interval_ms: Length of an interval.
        thin: A table of the same columns: intervals seen for too short a time to be judged.
    """

    samples: Samples
    table: ibis.Table
    interval_ms: int
    thin: ibis.Table


def windows(samples: Samples, interval_ms: int = INTERVAL_MS, coverage: float = COVERAGE) -> Windows:
    """Utilization in intervals.

    Args:
        samples: Samples of links.
        interval_ms: Length of an interval, in milliseconds.
        coverage: Least observed share of an interval, from 0 to 1.
    """
    sums, engine = samples.sums, samples.engine
    if sums is not None and sums.length_ms == interval_ms:
        table = sums.table
    elif sums is not None and interval_ms % sums.length_ms == 0:
        table = engine.keep(utilization(_longer(sums.table, interval_ms)))
    else:
        table = engine.keep(utilization(group_samples(samples.table, interval_ms)))
    enough = table.covered_ms >= int(interval_ms * coverage)
    return Windows(samples, table.filter(enough), interval_ms, table.filter(~enough))


def group_samples(sample: ibis.Table, interval_ms: int) -> ibis.Table:
    """Samples by link and interval: the columns of windows, without `ppm`."""
    last = sample.t_ms - 1
    start = last - last % interval_ms
    rows = sample.mutate(start_ms=start, possible=possible(sample.capacity_bps, sample.span_ms))
    return rows.group_by("link", "start_ms").agg(
        bits=rows.bits.sum().cast("int64"),
        capacity_bits=rows.possible.sum().cast("int64"),
        covered_ms=rows.span_ms.sum().cast("int64"),
    )


def _longer(sums: ibis.Table, interval_ms: int) -> ibis.Table:
    """Sums in longer intervals, each a whole number of the shorter ones."""
    rows = sums.mutate(start_ms=sums.start_ms - sums.start_ms % interval_ms)
    names = ("bits", "capacity_bits", "covered_ms")
    return rows.group_by("link", "start_ms").agg(**{name: rows[name].sum().cast("int64") for name in names})


def utilization(table: ibis.Table) -> ibis.Table:
    """The table with a column `ppm`."""
    share = table.bits.cast("float64") * MILLION / table.capacity_bits.cast("float64")
    return table.mutate(ppm=share.floor().cast("int64"))


def possible(capacity_bps: Any, span_ms: Any) -> Any:
    """Bits that a link can carry in a time."""
    span = span_ms.cast("float64") if hasattr(span_ms, "cast") else float(span_ms)
    return (capacity_bps.cast("float64") * span / 1000.0).floor().cast("int64")
