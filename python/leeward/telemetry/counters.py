"""Raw counters to samples: growth, restarts, wraps, gaps, cached readings and jumps.

Readings of a series are sorted by time. From one reading to the next::

    grew = value - value before
    bits = grew x bits of one unit

A counter that decreases was restarted, unless it has 32 bits and wrapped: then it grew by 2^32 more. If it
may have wrapped once more than that without exceeding its capacity, its growth is unknown.

Some devices answer from a cache: a reading repeats, and a later one catches up. If the catch-up exceeds the
capacity, and is possible in the whole time since the repeated value appeared, it is spread over that time.
"""

from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import reading
from leeward.telemetry.series import Series

TOP = 2**32
"""Range of a counter of 32 bits."""
TOO_FAST = 1.05
"""Multiple of its capacity that a port cannot have carried."""
USUAL = 0.1
"""Share of a series above which too fast readings point to a wrong speed, and are kept."""
GAP = 3
"""Greatest number of cadences that a sample may cover."""
LONGEST_CACHE_MS = 3_600_000
"""Longest time of repeated readings whose catch-up is spread."""


@dataclass(frozen=True)
class Counter:
    """Properties of counters.

    Attributes:
        unit: Bits of one unit.
        width: Bits of the counter itself, 32 or 64; 0 if unknown.
        gap_ms: Greatest time between two readings whose growth counts.
    """

    unit: int
    width: int
    gap_ms: int


def counters(engine: Engine, series: Series, counter: Counter, discards: Discards, name: str) -> ibis.Table:
    """Samples of counters: `series`, `link`, `share_bps`, `members`, `t_ms`, `span_ms`, `bits`, `speed`.

    The first reading of a series is its start, and not a sample.

    Args:
        engine: Engine of the tables.
        series: Series of the counters.
        counter: Properties of the counters.
        discards: Counts duplicates, restarts, wraps, gaps and jumps.
        name: Name of the source in errors.
    """
    table = series.table
    window = {"group_by": table.series, "order_by": [table.t_ms, table.value]}
    with_repeats = table.mutate(again=(table.t_ms == table.t_ms.lag().over(**window)).fill_null(False))
    once = with_repeats.filter(~with_repeats.again)
    window = {"group_by": once.series, "order_by": once.t_ms}
    before = {
        "span_ms": once.t_ms - once.t_ms.lag().over(**window),
        "grew": once.value - once.value.lag().over(**window),
    }
    steps = once.mutate(**before)
    steps = steps.filter(steps.span_ms.notnull())
    capacity = _positive(steps.speed).fill_null(steps.share_bps.cast("float64"))
    steps = steps.mutate(possible=capacity * TOO_FAST * steps.span_ms.cast("float64") / 1000.0)
    unwrapped = steps.grew + TOP
    fits = unwrapped.cast("float64") * counter.unit <= steps.possible
    wrapped = (steps.grew < 0) & fits
    if counter.width == 0:
        # Values below 2^32 with a decrease that fits a wrap are of a counter of 32 bits.
        tops = table.group_by("series").agg(highest=table.value.max())
        wraps = steps.group_by("series").agg(narrow=wrapped.any())
        steps = steps.join(tops, "series").join(wraps, "series")
        steps = steps.mutate(narrow=steps.narrow & (steps.highest < TOP)).drop("highest")
    else:
        steps = steps.mutate(narrow=ibis.literal(counter.width == 32))
    wrapped = wrapped & steps.narrow
    steps = steps.mutate(wrap=wrapped, grew=wrapped.ifelse(unwrapped, steps.grew))
    steps = engine.keep(steps.drop("value", "again"))
    with reading(name):
        steps = _spread(engine, steps, counter, series.known, discards)
    # A counter that did not grow at all did not wrap: exactly 2^32 units are too unlikely.
    again = (steps.grew.cast("float64") + TOP) * counter.unit <= steps.possible
    jump = steps.grew.cast("float64") * counter.unit > steps.possible
    # More than an int64 of bits is beyond any link, whatever its speed.
    beyond = steps.grew >= 2**62 // counter.unit
    fate = ibis.cases(
        (steps.grew < 0, 1),
        (steps.span_ms > counter.gap_ms, 2),
        (beyond, 4),
        (jump, 3),
        (steps.narrow & (steps.grew > 0) & again, 5),
        else_=0,
    ).cast("int8")
    rows = engine.keep(steps.mutate(fate=fate).drop("narrow", "possible"))
    with reading(name):
        tally = engine.arrow(
            rows.group_by("series", "fate", "wrap")
            .agg(number=rows.count(), first=rows.t_ms.min())
            .order_by("series", "fate", "wrap")
        ).to_pylist()
        repeats = with_repeats.filter(with_repeats.again)
        number = engine.arrow(repeats.agg(number=repeats.count()))["number"][0].as_py()
    discards.count("duplicate", number)
    fast = _count(tally, series.known, discards)
    good = rows.fate == 0
    if fast:
        good = good | ((rows.fate == 3) & rows.series.isin(fast))
    good_rows = rows.filter(good)
    return good_rows.select(
        *("series", "link", "share_bps", "members", "t_ms", "span_ms", "speed"),
        bits=good_rows.grew * counter.unit,
    )


def _spread(
    engine: Engine, steps: ibis.Table, counter: Counter, known: pyarrow.Table, discards: Discards
) -> ibis.Table:
    """Steps whose catch-ups after repeated readings are spread over the time of the repetition."""
    jump = steps.grew.cast("float64") * counter.unit > steps.possible
    if not engine.arrow(steps.filter(jump & (steps.grew < 2**62 // counter.unit)).limit(1)).num_rows:
        return steps
    # Repeated readings belong to the next growth.
    later = {"group_by": steps.series, "order_by": steps.t_ms, "preceding": 0, "following": None}
    growth = (steps.grew != 0).ifelse(steps.t_ms, ibis.null("int64"))
    grouped = steps.mutate(end_ms=growth.min().over(ibis.window(**later)), jump=jump)
    group = ibis.window(group_by=[grouped.series, grouped.end_ms])
    sums = grouped.mutate(
        whole_ms=grouped.span_ms.sum().over(group),
        whole_possible=grouped.possible.sum().over(group),
        # A decrease has no growth to spread.
        whole=grouped.grew.cast("float64").sum().over(group),
        jumps=grouped.jump.any().over(group),
        number=grouped.count().over(group),
    )
    spread = (
        sums.end_ms.notnull()
        & sums.jumps
        & (sums.number > 1)
        & (sums.whole * counter.unit <= sums.whole_possible)
        & (sums.whole_ms <= LONGEST_CACHE_MS)
    )
    part = (sums.whole * sums.span_ms.cast("float64") / sums.whole_ms.cast("float64")).floor()
    result = sums.mutate(cached=spread & ~sums.jump, grew=spread.ifelse(part.cast("int64"), sums.grew))
    result = engine.keep(result.select(*steps.columns, "cached"))
    cached = result.filter(result.cached)
    counts = cached.group_by("series").agg(number=cached.count(), first=cached.t_ms.min()).order_by("series")
    names = _names(known)
    for row in engine.arrow(counts).to_pylist():
        text = f"{names[row['series']]}, first at {row['first']} ms"
        discards.count("cached", row["number"], text)
    return result.drop("cached")


def _names(known: pyarrow.Table) -> dict[int, str]:
    """Labels of each series as a text."""
    keys = zip(known["series"].to_pylist(), known["key"].to_pylist(), strict=True)
    return {series: key.replace(chr(31), " ") for series, key in keys}


def _count(tally: list[dict[str, Any]], series_table: pyarrow.Table, discards: Discards) -> list[int]:
    """Counts anomalies; returns the series with too many fast readings for jumps."""
    names = _names(series_table)
    links = dict(zip(series_table["series"].to_pylist(), series_table["link"].to_pylist(), strict=True))
    totals: dict[int, int] = {}
    jumps: dict[int, int] = {}
    for row in tally:
        totals[row["series"]] = totals.get(row["series"], 0) + row["number"]
        if row["fate"] in (3, 4):
            jumps[row["series"]] = jumps.get(row["series"], 0) + row["number"]
    fast = [series for series, number in jumps.items() if number > USUAL * totals[series]]
    for row in tally:
        text = f"{names[row['series']]}, first at {row['first']} ms"
        reason = {1: "reset", 2: "gap", 3: "too-fast", 4: "too-fast", 5: "ambiguous-32"}.get(row["fate"])
        if reason and not (row["fate"] == 3 and row["series"] in fast):
            discards.count(reason, row["number"], text)
            discards.lose(links[row["series"]], reason, row["number"])
        elif row["wrap"]:
            discards.count("wrap-32", row["number"], text)
    return fast


def _positive(speed: Any) -> Any:
    """A valid speed, or null."""
    return ((speed > 0) & ~speed.isnan()).ifelse(speed, ibis.null("float64"))
