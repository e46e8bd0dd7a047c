"""Raw counters to samples: growth, restarts, wraps, gaps and jumps.

Readings of a series are sorted by time. From one reading to the next::

    grew = value - value before
    bits = grew x bits of one unit

A counter that decreases was restarted, unless it has 32 bits and wrapped: then it grew by 2^32 more. The
number of wraps is unknown; the least number that fits the speed is taken.
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
    """Samples of counters: `link`, `share_bps`, `members`, `t_ms`, `span_ms`, `bits`, `speed`.

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
    if counter.width == 0:
        widths = table.group_by("series").agg(narrow=table.value.max() < TOP)
        steps = steps.join(widths, "series")
    else:
        steps = steps.mutate(narrow=ibis.literal(counter.width == 32))
    capacity = _positive(steps.speed).fill_null(steps.share_bps.cast("float64"))
    steps = steps.mutate(possible=capacity * TOO_FAST * steps.span_ms.cast("float64") / 1000.0)
    back = steps.grew < 0
    unwrapped = steps.grew + TOP
    fits = unwrapped.cast("float64") * counter.unit <= steps.possible
    wrapped = back & steps.narrow & fits
    steps = steps.mutate(wrap=wrapped, grew=wrapped.ifelse(unwrapped, steps.grew))
    bits = steps.grew.cast("float64") * counter.unit
    jump = bits > steps.possible
    # More than an int64 of bits is beyond any link, whatever its speed.
    beyond = steps.grew >= 2**62 // counter.unit
    fate = ibis.cases(
        (steps.grew < 0, 1), (steps.span_ms > counter.gap_ms, 2), (beyond, 4), (jump, 3), else_=0
    ).cast("int8")
    may_wrap_twice = steps.possible > 2.0 * TOP * counter.unit * TOO_FAST
    with_fate = steps.mutate(fate=fate, twice=ibis.literal(counter.width == 32) & may_wrap_twice)
    rows = engine.keep(with_fate.drop("value", "again", "narrow", "possible"))
    with reading(name):
        tally = engine.arrow(
            rows.group_by("series", "fate", "wrap", "twice")
            .agg(number=rows.count(), first=rows.t_ms.min())
            .order_by("series", "fate", "wrap", "twice")
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
        "link", "share_bps", "members", "t_ms", "span_ms", "speed", bits=good_rows.grew * counter.unit
    )


def _count(tally: list[dict[str, Any]], series_table: pyarrow.Table, discards: Discards) -> list[int]:
    """Counts anomalies; returns the series with too many fast readings for jumps."""
    names = dict(zip(series_table["series"].to_pylist(), series_table["key"].to_pylist(), strict=True))
    totals: dict[int, int] = {}
    jumps: dict[int, int] = {}
    for row in tally:
        totals[row["series"]] = totals.get(row["series"], 0) + row["number"]
        if row["fate"] in (3, 4):
            jumps[row["series"]] = jumps.get(row["series"], 0) + row["number"]
    fast = [series for series, number in jumps.items() if number > USUAL * totals[series]]
    for row in tally:
        text = f"{names[row['series']].replace(chr(31), ' ')}, first at {row['first']} ms"
        reason = {1: "reset", 2: "gap", 3: "too-fast", 4: "too-fast"}.get(row["fate"])
        if reason and not (row["fate"] == 3 and row["series"] in fast):
            discards.count(reason, row["number"], text)
        elif row["wrap"]:
            discards.count("wrap-32", row["number"], text)
        elif row["twice"]:
            discards.count("ambiguous-32", row["number"], text)
    return fast


def _positive(speed: Any) -> Any:
    """A valid speed, or null."""
    return ((speed > 0) & ~speed.isnan()).ifelse(speed, ibis.null("float64"))
