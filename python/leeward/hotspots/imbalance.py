"""Imbalance across links, and stability of each link over time (Sinbad, section 4.3).

* *Unevenness*: in each interval the coefficient of variation over the links of a cross-section and direction,
  ``Cv = standard deviation / mean`` of their utilizations (figure 5); 0 is even. Intervals last ten
  seconds, as in Sinbad, if samples are that frequent; else the intervals of the analysis apply, which hide
  changes within an interval. An interval without any load has no Cv.
* *Evenness in the long run*: the median of Cv of utilization averaged over longer times. It falls with the
  length of the times if the imbalance is short-term.
* *Busiest links*: the share of intervals in which the 95th percentile over links is above the threshold
  (nearest rank; in Sinbad, 25 % of the time).
* *Stability*: after a sample with utilization U(t), the chance that the mean over the next T seconds is
  within 5 % of U(t), ``|mean U over (t, t+T] - U(t)| <= 5 % x U(t)``, for T = 5, 10, 20, 40 s. It is known
  only for links above the hosts whose samples are T seconds, or a whole fraction of T, apart and have no gap.

All these analyses leave out, and count, intervals with a utilization above 105 %: their units are in doubt.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow

from leeward.hotspots.hot import CROSS_SECTIONS
from leeward.hotspots.settings import DAY_MS, HOUR_MS, Settings
from leeward.telemetry import Windows, windows
from leeward.telemetry.units import UNIT_PPM

SHORT_MS = 10_000
"""Intervals of figure 5."""
STABLE_MS = (5_000, 10_000, 20_000, 40_000)
LONGER_MS = (HOUR_MS, 6 * HOUR_MS, DAY_MS)
UNIT = 100
"""Resolution of utilizations for Cv, in millionths: sums of their squares fit into 64 bits."""
CV_BINS = 1000
"""Resolution of Cv: number of parts of a Cv of 1."""


@dataclass(frozen=True)
class Imbalance:
    """Results on imbalance.

    Attributes:
        interval_ms: Length of the intervals of `unevenness`.
        unevenness: `cross_section`, `direction`, `intervals`, `links` (maximum in one interval), `cv_p25`,
            `cv_p50`, `cv_p75`, `cv_p95`, `above_one` (share of intervals with Cv > 1), `busy` (share with the
            95th percentile over links above the threshold), `idle` (intervals without any load), `doubtful`
            (link intervals left out).
        cv: `cross_section`, `direction`, `permille` (of Cv, rounded down), `intervals`.
        longer: `cross_section`, `direction`, `average_ms` (0: all of the time), `averages`, `cv_p50`.
        stability: `horizon_ms`, `links`, `pairs`, `worst` (chance of the least predictable link),
            `worst_link`, `all` (chance over all links). Without rows if the cadence is too long.
    """

    interval_ms: int
    unevenness: pyarrow.Table
    cv: pyarrow.Table
    longer: pyarrow.Table
    stability: pyarrow.Table


def imbalance(all_windows: Windows, by_hour: ibis.Table, settings: Settings) -> Imbalance:
    """Imbalance of all cross-sections.

    Args:
        all_windows: The intervals of the analysis.
        by_hour: Loads of links, from `hot.hours`.
        settings: Thresholds.
    """
    short = all_windows
    if all_windows.samples.cadence_ms <= SHORT_MS < all_windows.interval_ms:
        short = windows(all_windows.samples, SHORT_MS, settings.coverage)
    spread = _spread(short, settings)
    return Imbalance(
        short.interval_ms,
        _unevenness(short, spread),
        _histogram(short, spread),
        _longer(all_windows, by_hour),
        _stability(all_windows, settings),
    )


def _sets(windows: Windows) -> tuple[ibis.Table, list[tuple[str, str]]]:
    """The number of each link's set, and the cross-section and direction of each set, from the hosts up.

    These numbers group many rows faster than names do.
    """
    links = windows.samples.links.select(["link", "cross_section", "direction"]).to_pylist()
    sets = sorted(
        {(row["cross_section"], row["direction"]) for row in links},
        key=lambda place: (CROSS_SECTIONS.index(place[0]), place[1]),
    )
    number_of_set = {place: number for number, place in enumerate(sets)}
    table = pyarrow.table(
        {
            "link": pyarrow.array([row["link"] for row in links], pyarrow.int32()),
            "set": pyarrow.array(
                [number_of_set[row["cross_section"], row["direction"]] for row in links], pyarrow.int32()
            ),
        }
    )
    return windows.samples.engine.table(table), sets


def _with_names(windows: Windows, table: ibis.Table, *order: str) -> pyarrow.Table:
    """A small table by sets, sorted, with the names of sets in place of their numbers."""
    _, sets = _sets(windows)
    arrow = windows.samples.engine.arrow(table.order_by("set", *order))
    numbers = arrow["set"].to_pylist()
    for name, part in (("direction", 1), ("cross_section", 0)):
        names = [sets[number][part] for number in numbers]
        arrow = arrow.add_column(0, name, pyarrow.array(names, pyarrow.string()))
    return arrow.drop_columns(["set"])


def _spread(windows: Windows, settings: Settings) -> ibis.Table:
    """For each interval and set of links: number of links, utilization, and Cv in thousandths."""
    seen = windows.table.select("link", "start_ms", "ppm").join(_sets(windows)[0], "link")
    sure = seen.ppm <= UNIT_PPM
    seen = seen.mutate(x=sure.ifelse(seen.ppm // UNIT, 0), sure=sure)
    grouped = seen.group_by("set", "start_ms").agg(
        links=seen.count(where=seen.sure),
        doubtful=seen.count(where=~seen.sure),
        hot=seen.count(where=seen.sure & (seen.ppm > settings.hot_ppm)),
        s=seen.x.sum().cast("int64"),
        q=(seen.x * seen.x).sum().cast("int64"),
    )
    return windows.samples.engine.keep(grouped.mutate(permille=_cv(grouped.links, grouped.s, grouped.q)))


def _cv(n: ibis.Value, s: ibis.Value, q: ibis.Value) -> ibis.Value:
    """Cv in thousandths, from a count, a sum and a sum of squares; null where the sum is 0."""
    n, s, q = (value.cast("float64") for value in (n, s, q))
    variance = ibis.greatest(n * q - s * s, 0.0)
    return (s > 0).ifelse((variance.sqrt() * float(CV_BINS) / s).floor(), None).cast("int64")


def _unevenness(windows: Windows, spread: ibis.Table) -> pyarrow.Table:
    # The value of rank ceil(0.95 n) is above the threshold if fewer than ceil(0.95 n) values are not.
    judged = spread.links > 0
    rank = (spread.links * 95 + 99) // 100
    busy = judged & (spread.links - spread.hot < rank)
    counts = spread.group_by("set").agg(
        intervals=spread.permille.count(),
        links=spread.links.max(),
        above=(spread.permille > CV_BINS).ifelse(1, 0).sum().cast("int64"),
        busy=busy.ifelse(1, 0).sum().cast("int64"),
        judged=judged.ifelse(1, 0).sum().cast("int64"),
        idle=(judged & spread.permille.isnull()).ifelse(1, 0).sum().cast("int64"),
        doubtful=spread.doubtful.sum().cast("int64"),
    )
    percentiles = _percentiles(spread, ["set"], (25, 50, 75, 95)).rename(of="set")
    joined = counts.left_join(percentiles, [("set", "of")])
    result = joined.select(
        *("set", "intervals", "links", "cv_p25", "cv_p50", "cv_p75", "cv_p95"),
        above_one=joined.above.cast("float64") / joined.intervals.nullif(0).cast("float64"),
        busy=joined.busy.cast("float64") / joined.judged.nullif(0).cast("float64"),
        idle=joined.idle,
        doubtful=joined.doubtful,
    )
    return _with_names(windows, result)


def _histogram(windows: Windows, spread: ibis.Table) -> pyarrow.Table:
    with_cv = spread.filter(spread.permille.notnull())
    counts = with_cv.group_by("set", "permille").agg(intervals=with_cv.count())
    return _with_names(windows, counts, "permille")


def _percentiles(spread: ibis.Table, keys: list[str], ranks: tuple[int, ...]) -> ibis.Table:
    """Percentiles of Cv by nearest rank, from its histogram."""
    with_cv = spread.filter(spread.permille.notnull())
    counts = with_cv.group_by(*keys, "permille").agg(n=with_cv.count())
    until = ibis.cumulative_window(group_by=keys, order_by="permille")
    table = counts.mutate(
        below=counts.n.sum().over(until), total=counts.n.sum().over(ibis.window(group_by=keys))
    )
    result = {
        f"cv_p{rank}": table.permille.min(where=table.below * 100 >= table.total * rank).cast("float64")
        / float(CV_BINS)
        for rank in ranks
    }
    return table.group_by(*keys).agg(**result)


def _longer(all_windows: Windows, by_hour: ibis.Table) -> pyarrow.Table:
    """Median of Cv of utilization averaged over longer and longer times."""
    lengths = [length for length in LONGER_MS if length > all_windows.interval_ms]
    sure = by_hour.filter(by_hour.sure)
    spreads = [
        _averages(sure, length).mutate(average_ms=ibis.literal(length, "int64")) for length in (*lengths, 0)
    ]
    sums = ibis.union(*spreads) if spreads[1:] else spreads[0]
    share = sums.kbits.cast("float64") * 1e6 / ibis.greatest(sums.capacity_kbits, 1).cast("float64")
    values = sums.mutate(x=(share / float(UNIT)).floor().cast("int64")).join(_sets(all_windows)[0], "link")
    grouped = values.group_by("set", "average_ms", "start_ms").agg(
        n=values.count(), s=values.x.sum().cast("int64"), q=(values.x * values.x).sum().cast("int64")
    )
    spread = grouped.mutate(permille=_cv(grouped.n, grouped.s, grouped.q))
    keys = ["set", "average_ms"]
    counts = spread.group_by(*keys).agg(averages=spread.permille.count())
    percentiles = _percentiles(spread, keys, (50,)).rename(of="set", over="average_ms")
    result = counts.left_join(percentiles, [("set", "of"), ("average_ms", "over")]).drop("of", "over")
    return _with_names(all_windows, result, "average_ms")


def _averages(table: ibis.Table, length: int) -> ibis.Table:
    """Carried and possible bits, in thousands, of each link in periods of a length; 0 is all of the time."""
    start = table.start_ms - table.start_ms % length if length else table.start_ms * 0
    rows = table.select("link", "kbits", "capacity_kbits", start_ms=start)
    return rows.group_by("link", "start_ms").agg(
        kbits=rows.kbits.sum().cast("int64"), capacity_kbits=rows.capacity_kbits.sum().cast("int64")
    )


def _stability(all_windows: Windows, settings: Settings) -> pyarrow.Table:
    cadence = all_windows.samples.cadence_ms
    horizons = [horizon for horizon in STABLE_MS if horizon % cadence == 0]
    if not horizons:
        return pyarrow.Table.from_pylist([], _STABILITY_SCHEMA)
    engine, sample = all_windows.samples.engine, all_windows.samples.table
    places = engine.table(all_windows.samples.links)
    above = places.filter(places.cross_section != CROSS_SECTIONS[0]).select("link", "name")
    whole = sample.filter(sample.span_ms == cadence).join(above, "link")
    possible = whole.capacity_bps.cast("float64") * float(cadence) / 1000.0
    share = (whole.bits.cast("float64") * 1e6 / possible).floor().cast("int64")
    utilizations = whole.select("name", "t_ms", ppm=share)
    utilizations = engine.keep(utilizations.filter(utilizations.ppm <= UNIT_PPM))
    rows = [_stable(engine.arrow, utilizations, cadence, horizon, settings) for horizon in horizons]
    return pyarrow.Table.from_pylist(rows, _STABILITY_SCHEMA)


def _stable(
    arrow: Callable[[ibis.Table], pyarrow.Table],
    utilizations: ibis.Table,
    cadence: int,
    horizon: int,
    settings: Settings,
) -> dict[str, Any]:
    """Chance to be stable over a horizon: of all links together, and of the least predictable one."""
    steps = horizon // cadence
    next_ones = ibis.window(group_by="name", order_by="t_ms", preceding=-1, following=steps)
    ahead = utilizations.mutate(
        then=utilizations.ppm.sum().over(next_ones).cast("int64"),
        last=utilizations.t_ms.lead(steps).over(ibis.window(group_by="name", order_by="t_ms")),
    )
    gapless = ahead.filter(ahead["last"] == ahead.t_ms + horizon)
    change = (gapless.then - gapless.ppm * steps).abs() * 100
    pairs_judged = gapless.mutate(
        stays=(change <= gapless.ppm * (steps * settings.stable_percent)).ifelse(1, 0)
    )
    by_link = pairs_judged.group_by("name").agg(
        pairs=pairs_judged.count(), stayed=pairs_judged.stays.sum().cast("int64")
    )
    result = arrow(by_link.order_by("name")).to_pylist()
    worst = min(result, key=lambda row: (row["stayed"] / row["pairs"], row["name"]), default=None)
    pairs = sum(row["pairs"] for row in result)
    return {
        "horizon_ms": horizon,
        "links": len(result),
        "pairs": pairs,
        "worst": worst["stayed"] / worst["pairs"] if worst else None,
        "worst_link": worst["name"] if worst else None,
        "all": sum(row["stayed"] for row in result) / pairs if pairs else None,
    }


_STABILITY_SCHEMA = pyarrow.schema(
    [
        ("horizon_ms", pyarrow.int64()),
        ("links", pyarrow.int64()),
        ("pairs", pyarrow.int64()),
        ("worst", pyarrow.float64()),
        ("worst_link", pyarrow.string()),
        ("all", pyarrow.float64()),
    ]
)
