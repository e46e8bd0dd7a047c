"""Rates summed up by link and short interval, in one pass over valid readings.

Most readings of most files are valid. One scan finds them: it groups readings by link and interval, and for
each group sums the bits, the number of readings, and the marks of their slots. An interval has a slot for
each cadence or somewhat less, and the mark of slot k is 2^k; an invalid reading has none. A sum of powers of
two has as many bits set as it has terms only if all are distinct: then the readings of the group are all
valid, and no two of them are duplicates. Any other group is *doubtful*, and its readings are examined one by
one (`rates`).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import Readings, reading
from leeward.telemetry.links import link_samples
from leeward.telemetry.rates import rates, samples_of
from leeward.telemetry.samples import Sums
from leeward.telemetry.series import (
    EARLIEST_MS,
    LATE_MS,
    MOST_CADENCE_MS,
    MOST_RATE,
    Period,
    Series,
    cadence_of,
    links_of_keys,
    series,
)
from leeward.telemetry.windows import INTERVAL_MS, group_samples, possible, utilization

if TYPE_CHECKING:
    from leeward.telemetry.mapping import Map

PLACES = 32
"""Bits of a number that mark slots."""
ONE = 2.0**PLACES
"""Count of one reading, in the bits above those of slots."""
EXACT = 2.0**53
"""Bound below which the sum of whole numbers as doubles is exact, in any order."""


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
def bit_count(number: int) -> int:
    """Number of set bits; both engines have this function."""
    raise NotImplementedError


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
def floor(number: float) -> float:
    """Like the function of Ibis, but without its cast to a whole number, which fails for some values."""
    raise NotImplementedError


@dataclass(frozen=True)
class SampleSums:
    """Samples and their sums.

    Attributes:
        table: Samples, the columns of `samples.COLUMNS`.
        sums: Sums of these samples.
        cadence_ms: Most frequent spacing.
    """

    table: ibis.Table
    sums: Sums
    cadence_ms: int


def sum_rates(
    engine: Engine,
    readings: Readings,
    links: pyarrow.Table,
    map_file: "Map",
    period: Period,
    cadence_ms: int | None,
    discards: Discards,
) -> SampleSums | None:
    """Samples of rates and their sums; the arguments are those of `series`.

    Returns:
        None if sums cannot be computed, so that all readings must be examined: no reading is of a link or
        valid, a link has several ports, or the spacing of readings is unknown.

    Raises:
        InputError: No reading is valid.
    """
    in_period = replace(readings, table=_in_period(readings.table, period))
    with reading(readings.name):
        keys = engine.arrow(readings.table.select(readings.by).distinct().order_by(readings.by)).to_pylist()
    series_links = links_of_keys(readings, keys, links, map_file)
    if series_links is None or len(set(series_links["link"].to_pylist())) < series_links.num_rows:
        return None
    if cadence_ms is None:
        cadence_ms = cadence_of(engine, in_period.table, readings, series_links["key"].to_pylist())
    if cadence_ms is None or cadence_ms > MOST_CADENCE_MS:
        return None
    length = length_of(cadence_ms)
    series_table = Series(
        _with_links(engine, in_period, series_links), in_period.table, readings.by, series_links, cadence_ms
    )
    with reading(readings.name):
        all_sums = engine.keep(_sums(engine, in_period, series_table, length, period))
        counts = all_sums.agg(total=all_sums.count(), sure=all_sums.sure.ifelse(1, 0).sum())
        row = engine.arrow(counts).to_pylist()[0]
    if not row["sure"]:
        return None
    doubtful = row["total"] > row["sure"]
    columns = ("link", "start_ms", "bits", "capacity_bits", "covered_ms", "ppm")
    good = series_table.table
    parts = []
    if doubtful:
        names = engine.table(series_links.select(["link", *readings.by]))
        marks = all_sums.filter(~all_sums.sure).select("link", "start_ms").join(names, "link")
        keys_of = [*readings.by, "start_ms"]
        with_start = in_period.table.mutate(start_ms=_start(in_period.table.t_ms, length))
        parts.append(with_start.semi_join(marks.select(keys_of), keys_of).drop("start_ms"))
        without_time = in_period.table.filter(in_period.table.t_ms.isnull())
        parts.append(without_time.semi_join(names, readings.by))
        doubts = all_sums.filter(~all_sums.sure).select("link", "start_ms")
        good = good.mutate(start_ms=_start(good.t_ms, length)).anti_join(doubts, ["link", "start_ms"])
        good = good.filter(good.t_ms.notnull())
    if len(keys) > series_links.num_rows:
        names = engine.table(series_links.select(readings.by))
        parts.append(in_period.table.anti_join(names, readings.by))
    table = link_samples(engine, samples_of(good, cadence_ms), series_table, False, discards, readings.name)
    if not parts:
        return SampleSums(table, Sums(all_sums.select(columns), length), cadence_ms)
    rest = replace(readings, table=ibis.union(*parts) if parts[1:] else parts[0])
    examined = series(engine, rest, links, map_file, period, cadence_ms, discards, alone=False)
    samples = rates(engine, examined, discards, readings.name)
    others = link_samples(engine, samples, examined, False, discards, readings.name)
    with reading(readings.name):
        more = engine.keep(utilization(group_samples(others, length)))
    sums = ibis.union(all_sums.filter(all_sums.sure).select(columns), more.select(columns))
    return SampleSums(ibis.union(table, others), Sums(sums, length), cadence_ms)


def length_of(cadence_ms: int) -> int:
    """Longest whole part of the usual interval with enough slots."""
    shift = _shift(cadence_ms)
    parts = (part for part in range(1, INTERVAL_MS + 1) if INTERVAL_MS % part == 0)
    return next(INTERVAL_MS // part for part in parts if (INTERVAL_MS // part - 1) >> shift < PLACES)


def _shift(cadence_ms: int) -> int:
    # A power of two needs no division. It is from half a cadence up to one.
    return cadence_ms.bit_length() - 1


def _in_period(table: ibis.Table, period: Period) -> ibis.Table:
    """Readings without those outside of the period, which are not lost."""
    if period.since_ms > -(2**62):
        table = table.filter((table.t_ms > period.since_ms) | table.t_ms.isnull())
    if period.until_ms < 2**62:
        late = table.t_ms > period.now_ms + LATE_MS
        table = table.filter((table.t_ms <= period.until_ms) | late | table.t_ms.isnull())
    return table


def _with_links(engine: Engine, readings: Readings, series_links: pyarrow.Table) -> ibis.Table:
    joined = readings.table.join(engine.table(series_links), readings.by)
    return joined.select("series", "link", "share_bps", "members", "t_ms", "value", "speed")


def _start(t_ms: Any, length: int) -> Any:
    return t_ms - 1 - (t_ms - 1) % length


def _sums(
    engine: Engine, readings: Readings, series_table: Series, length: int, period: Period
) -> ibis.Table:
    """Columns of windows, and `sure`, of each link and interval."""
    table, cadence = readings.table, series_table.cadence_ms
    good = (table.value >= 0) & (table.value <= MOST_RATE)
    # Before 1970 the slot may be wrong: all readings of such intervals are examined.
    place = (((table.t_ms - 1) % length) >> _shift(cadence)) & (PLACES - 1)
    # Groups are by names: a look-up of links is faster for sums than for readings.
    keys = [*readings.by, "start_ms"]
    slots = table.select(
        *readings.by,
        start_ms=_start(table.t_ms, length),
        # Spark counts in whole numbers, which might overflow.
        bits=floor(table.value * (cadence / 1000.0)) * 1.0,
        mark=good.ifelse(ibis.literal(1, "int64") << place, 0).cast("float64") + ONE,
    )
    counts = slots.group_by(keys).agg(bits=slots.bits.sum(), marks=slots["mark"].sum())
    within = (counts.start_ms >= EARLIEST_MS) & (counts.start_ms + length <= period.now_ms + LATE_MS)
    within = (within & (counts.bits < EXACT) & (counts.marks < EXACT)).fill_null(False)
    marks = within.ifelse(counts.marks, 0.0).cast("int64")
    split = counts.mutate(
        number=ibis.greatest(marks >> PLACES, 1), within=within, places=marks & (2**PLACES - 1)
    )
    with_sure = split.mutate(sure=split.within & (bit_count(split.places) == split.number))
    with_links = with_sure.join(
        engine.table(series_table.known.select([*readings.by, "link", "share_bps"])), readings.by
    )
    result = with_links.select(
        "link",
        "start_ms",
        bits=with_links.sure.ifelse(with_links.bits, 0.0).cast("int64"),
        capacity_bits=with_links.number * possible(with_links.share_bps, cadence),
        covered_ms=with_links.number * cadence,
        sure=with_links.sure,
    )
    return utilization(result)
