"""Rates summed up by link and short interval, in one pass over them, where nothing is wrong with them.

Most readings of most files are as they should be. One scan tells which: it groups them by link and interval,
and of each group sums the bits, the readings, and the marks of their places. An interval has a place for each
cadence or somewhat less, and the mark of place k is 2^k; a reading that is no number, or out of range, has
none. A sum of powers of two has as many bits set as there are of them only if all are different: then the
readings of the group are all good, and no two of them are the same. Any other group is *doubtful*, and its
readings are looked at one by one (`rates`).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import Readings, reading
from leeward.telemetry.links import of_links
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
    known_of,
    series,
)
from leeward.telemetry.windows import INTERVAL_MS, grouped, possible, utilization

if TYPE_CHECKING:
    from leeward.telemetry.mapping import Map

PLACES = 32
"""Bits of a number that mark places."""
ONE = 2.0**PLACES
"""A reading, in the bits above."""
EXACT = 2.0**53
"""Below this the sum of whole numbers as doubles is exact, in any order."""


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
def bit_count(number: int) -> int:
    """How many bits are set; both engines call it so."""
    raise NotImplementedError


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
def floor(number: float) -> float:
    """As Ibis' own, without a cast to whole numbers, which not all are that a file may hold."""
    raise NotImplementedError


@dataclass(frozen=True)
class Summed:
    """Samples and their sums.

    Attributes:
        table: Samples, the columns of `samples.COLUMNS`.
        sums: Sums of the same.
        cadence_ms: The most frequent spacing.
    """

    table: ibis.Table
    sums: Sums
    cadence_ms: int


def summed(
    engine: Engine,
    given: Readings,
    links: pyarrow.Table,
    map_file: "Map",
    period: Period,
    cadence_ms: int | None,
    discards: Discards,
) -> Summed | None:
    """Samples of rates and their sums; the arguments are those of `series`.

    Returns:
        None where this way is not open, so that all must be looked at: nothing is a link or as it should
            be, some links are several ports, or it is not known how far apart readings are.

    Raises:
        InputError: None of the readings can be used.
    """
    asked = replace(given, table=_asked(given.table, period))
    with reading(given.name):
        keys = engine.arrow(given.table.select(given.by).distinct().order_by(given.by)).to_pylist()
    known = known_of(given, keys, links, map_file)
    if known is None or len(set(known["link"].to_pylist())) < known.num_rows:
        return None
    if cadence_ms is None:
        cadence_ms = cadence_of(engine, asked.table, given, known)
    if cadence_ms is None or cadence_ms > MOST_CADENCE_MS:
        return None
    length = length_of(cadence_ms)
    found = Series(_joined(engine, asked, known), asked.table, given.by, known, cadence_ms)
    with reading(given.name):
        every = engine.keep(_sums(engine, asked, found, length, period))
        counts = every.agg(every=every.count(), sure=every.sure.ifelse(1, 0).sum())
        row = engine.arrow(counts).to_pylist()[0]
    if not row["sure"]:
        return None
    doubtful = row["every"] > row["sure"]
    columns = ("link", "start_ms", "bits", "capacity_bits", "covered_ms", "ppm")
    good = found.table
    parts = []
    if doubtful:
        names = engine.table(known.select(["link", *given.by]))
        marks = every.filter(~every.sure).select("link", "start_ms").join(names, "link")
        keys_of = [*given.by, "start_ms"]
        started = asked.table.mutate(start_ms=_start(asked.table.t_ms, length))
        parts.append(started.semi_join(marks.select(keys_of), keys_of).drop("start_ms"))
        timeless = asked.table.filter(asked.table.t_ms.isnull())
        parts.append(timeless.semi_join(names, given.by))
        doubts = every.filter(~every.sure).select("link", "start_ms")
        good = good.mutate(start_ms=_start(good.t_ms, length)).anti_join(doubts, ["link", "start_ms"])
        good = good.filter(good.t_ms.notnull())
    if len(keys) > known.num_rows:
        names = engine.table(known.select(given.by))
        parts.append(asked.table.anti_join(names, given.by))
    table = of_links(engine, samples_of(good, cadence_ms), found, False, discards, given.name)
    if not parts:
        return Summed(table, Sums(every.select(columns), length), cadence_ms)
    rest = replace(given, table=ibis.union(*parts) if parts[1:] else parts[0])
    looked = series(engine, rest, links, map_file, period, cadence_ms, discards, alone=False)
    made = rates(engine, looked, discards, given.name)
    others = of_links(engine, made, looked, False, discards, given.name)
    with reading(given.name):
        more = engine.keep(utilization(grouped(others, length)))
    sums = ibis.union(every.filter(every.sure).select(columns), more.select(columns))
    return Summed(ibis.union(table, others), Sums(sums, length), cadence_ms)


def length_of(cadence_ms: int) -> int:
    """The longest whole part of the usual interval that has places enough."""
    shift = _shift(cadence_ms)
    parts = (part for part in range(1, INTERVAL_MS + 1) if INTERVAL_MS % part == 0)
    return next(INTERVAL_MS // part for part in parts if (INTERVAL_MS // part - 1) >> shift < PLACES)


def _shift(cadence_ms: int) -> int:
    # A power of two needs no division. It is from half a cadence up to one.
    return cadence_ms.bit_length() - 1


def _asked(table: ibis.Table, period: Period) -> ibis.Table:
    """Readings but for those outside of the times asked for, which are no loss."""
    if period.since_ms > -(2**62):
        table = table.filter((table.t_ms > period.since_ms) | table.t_ms.isnull())
    if period.until_ms < 2**62:
        late = table.t_ms > period.now_ms + LATE_MS
        table = table.filter((table.t_ms <= period.until_ms) | late | table.t_ms.isnull())
    return table


def _joined(engine: Engine, asked: Readings, known: pyarrow.Table) -> ibis.Table:
    joined = asked.table.join(engine.table(known), asked.by)
    return joined.select("series", "link", "share_bps", "members", "t_ms", "value", "speed")


def _start(t_ms: Any, length: int) -> Any:
    return t_ms - 1 - (t_ms - 1) % length


def _sums(engine: Engine, asked: Readings, found: Series, length: int, period: Period) -> ibis.Table:
    """The columns of windows, and `sure`, of each link and interval."""
    table, cadence = asked.table, found.cadence_ms
    good = (table.value >= 0) & (table.value <= MOST_RATE)
    # Of a time before 1970 it may be any place: intervals so early are doubtful as a whole.
    place = (((table.t_ms - 1) % length) >> _shift(cadence)) & (PLACES - 1)
    # By the names that the readings have: to look up links of sums is quicker than of readings.
    keys = [*asked.by, "start_ms"]
    placed = table.select(
        *asked.by,
        start_ms=_start(table.t_ms, length),
        # Spark's is whole, and might be too much to be added up.
        bits=floor(table.value * (cadence / 1000.0)) * 1.0,
        mark=good.ifelse(ibis.literal(1, "int64") << place, 0).cast("float64") + ONE,
    )
    counted = placed.group_by(keys).agg(bits=placed.bits.sum(), marks=placed["mark"].sum())
    within = (counted.start_ms >= EARLIEST_MS) & (counted.start_ms + length <= period.now_ms + LATE_MS)
    within = (within & (counted.bits < EXACT) & (counted.marks < EXACT)).fill_null(False)
    marks = within.ifelse(counted.marks, 0.0).cast("int64")
    split = counted.mutate(
        number=ibis.greatest(marks >> PLACES, 1), within=within, places=marks & (2**PLACES - 1)
    )
    marked = split.mutate(sure=split.within & (bit_count(split.places) == split.number))
    known = marked.join(engine.table(found.known.select([*asked.by, "link", "share_bps"])), asked.by)
    made = known.select(
        "link",
        "start_ms",
        bits=known.sure.ifelse(known.bits, 0.0).cast("int64"),
        capacity_bits=known.number * possible(known.share_bps, cadence),
        covered_ms=known.number * cadence,
        sure=known.sure,
    )
    return utilization(made)
