"""Rates to samples: each rate stands for one cadence, the usual time since the previous reading.

If readings are somewhat early or late, spans overlap or leave a gap of the same length. The
utilization is still the mean of the rates, since bits and capacities cover the same spans. A reading so
early that it shares a slot of time (below) with the previous reading stands only for the time since that
reading.

One pass without a sort detects duplicates. Time is divided into slots of a cadence or somewhat less, and 32
slots are the bits of a number. If no two readings of a series share a slot, the sum of their bits equals
their union. Only if the sum is larger, the readings are sorted and examined one by one.
"""

from typing import Any

import ibis

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import reading
from leeward.telemetry.series import Series


def rates(engine: Engine, series: Series, discards: Discards, name: str) -> ibis.Table:
    """Samples of rates: `series`, `link`, `share_bps`, `members`, `t_ms`, `span_ms`, `bits`, `speed`.

    Args:
        engine: Engine of the tables.
        series: Series of the rates.
        discards: Counts duplicates.
        name: Name of the source in errors.
    """
    cadence, readings = series.cadence_ms, series.table
    # A power of two needs no division. It is from half a cadence up to one.
    shift = cadence.bit_length() - 1
    place = series.times.t_ms >> shift
    bit = ibis.literal(1, "int64") << (place & 31)
    slots = series.times.select(*series.by, block=place >> 5, bit=bit, weight=bit.cast("float64"))
    grouped = slots.group_by([*series.by, "block"]).agg(union=_bit_or(slots.bit), sum=slots.weight.sum())
    # Distinct powers of two have their union as their sum; repeated ones have more.
    repeats = grouped.filter(grouped["sum"] > grouped["union"].cast("float64"))
    series_of_key = engine.table(series.known.select([*series.by, "series"]))
    repeats = repeats.join(series_of_key, series.by).select("series", "block")
    with reading(name):
        suspicious = engine.arrow(repeats.order_by("series", "block"))
    if not suspicious.num_rows:
        return samples_of(readings, cadence)
    table = engine.table(suspicious)
    in_blocks = readings.mutate(block=readings.t_ms >> (shift + 5))
    unique = in_blocks.anti_join(table, ["series", "block"]).drop("block")
    rest = in_blocks.semi_join(table, ["series", "block"]).drop("block")
    window = {"group_by": rest.series, "order_by": [rest.t_ms, rest.value]}
    in_order = rest.mutate(since=rest.t_ms - rest.t_ms.lag().over(**window))
    with reading(name):
        duplicates = in_order.filter(in_order.since == 0)
        number = engine.arrow(duplicates.agg(number=duplicates.count()))["number"][0].as_py()
    discards.count("duplicate", number)
    once = in_order.filter(in_order.since.isnull() | (in_order.since > 0))
    span = ibis.least(once.since.fill_null(cadence), ibis.literal(cadence, "int64"))
    return ibis.union(samples_of(unique, cadence), _samples(once, span))


def samples_of(table: ibis.Table, cadence_ms: int) -> ibis.Table:
    """Samples of rates that each stand for one cadence, from the columns of `Series.table`."""
    return _samples(table, ibis.literal(cadence_ms, "int64"))


@ibis.udf.agg.builtin(name="bit_or")  # type: ignore[untyped-decorator]
def _bit_or(bits: int) -> int:
    """Union of bits. Both engines have this function; Ibis supports only that of DuckDB."""
    raise NotImplementedError


def _samples(table: ibis.Table, span: Any) -> ibis.Table:
    bits = table.value * (span.cast("float64") / 1000.0)
    return table.select(
        "series",
        "link",
        "share_bps",
        "members",
        "t_ms",
        "speed",
        span_ms=span.cast("int64"),
        bits=bits.floor().cast("int64"),
    )
