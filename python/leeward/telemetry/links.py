"""Samples of series to samples of links: capacities, and links with several ports.

The load of a link of several ports is the sum over its ports, and so is its capacity: if half of them are
down or not seen, its capacity is half. Readings of its ports seldom have the same time, so readings within
a cadence are summed.
"""

import ibis

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import reading
from leeward.telemetry.series import Series


def link_samples(
    engine: Engine, samples: ibis.Table, series: Series, speeds: bool, discards: Discards, name: str
) -> ibis.Table:
    """Samples by link: the columns of `samples.COLUMNS`.

    A port with an unknown speed has an equal part of the link's capacity in the cluster file. A port whose
    speed is 0 is down, and has no capacity; but if it carries bits in most samples with this speed, its
    speed is unknown.

    Args:
        engine: Engine of the tables.
        samples: `series`, `link`, `share_bps`, `members`, `t_ms`, `span_ms`, `bits`, `speed`.
        series: Series of the samples.
        speeds: True if any series has a speed.
        discards: Counts samples without a speed, and those of links that are down.
        name: Name of the source in errors.
    """
    if not speeds:
        samples = samples.mutate(capacity=samples.share_bps)
    else:
        missing = samples.speed.isnull() | (samples.speed < 0)
        with reading(name):
            busy = _busy_without_speed(engine, samples)
        if busy:
            missing = missing | ((samples.speed < 1) & samples.series.isin(busy))
        # Less than 1 bit/s counts as 0.
        samples = samples.mutate(
            capacity=missing.ifelse(samples.share_bps, samples.speed.floor().cast("int64"))
        )
        counts = samples.agg(
            missing=missing.cast("int64").sum(),
            down=((samples.capacity == 0) & (samples.members == 1)).cast("int64").sum(),
        )
        with reading(name):
            row = engine.arrow(counts).to_pylist()[0]
        discards.count(
            "no-speed", int(row["missing"] or 0), "the capacity in the cluster file is used instead"
        )
        discards.count("no-capacity", int(row["down"] or 0), "a speed of 0")
    single = samples
    if series.has_bundles:
        single = samples.filter(samples.members == 1)
    if speeds:
        single = single.filter(single.capacity > 0)
    result = single.select("link", "t_ms", "span_ms", "bits", capacity_bps=single.capacity)
    if not series.has_bundles:
        return result
    bundles = _bundles(samples.filter(samples.members > 1), series.cadence_ms)
    if speeds:
        down = bundles.filter(bundles.capacity_bps == 0)
        with reading(name):
            readings_lost = engine.arrow(down.agg(readings=down.readings.sum()))["readings"][0].as_py()
        discards.count("no-capacity", int(readings_lost or 0), "a speed of 0 of all ports of a link")
        bundles = bundles.filter(bundles.capacity_bps > 0)
    return ibis.union(result, bundles.drop("readings"))


def _busy_without_speed(engine: Engine, samples: ibis.Table) -> list[int]:
    """Series that carry bits in most samples with a speed of 0."""
    none = samples.filter((samples.speed >= 0) & (samples.speed < 1))
    counts = none.group_by("series").agg(number=none.count(), busy=(none.bits > 0).cast("int64").sum())
    counts = counts.filter(counts.busy * 2 > counts.number)
    return sorted(engine.arrow(counts.select("series"))["series"].to_pylist())


def _bundles(samples: ibis.Table, cadence: int) -> ibis.Table:
    """Sum over the ports of a link, a sample for each cadence, and its number of readings."""
    place = ((samples.t_ms + cadence // 2) // cadence).cast("int64")
    work = samples.capacity.cast("float64") * samples.span_ms.cast("float64")
    slots = samples.mutate(place=place, work=work.floor().cast("int64"))
    grouped = slots.group_by("link", "place").agg(
        t_ms=slots.t_ms.max(),
        span_ms=slots.span_ms.max(),
        bits=slots.bits.sum().cast("int64"),
        work=slots.work.cast("decimal(38, 0)").sum().cast("float64"),
        readings=slots.count(),
    )
    capacity = (grouped.work / grouped.span_ms.cast("float64")).floor().cast("int64")
    return grouped.select("link", "t_ms", "span_ms", "bits", capacity_bps=capacity, readings="readings")
