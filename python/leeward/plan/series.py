"""Loads of the links of racks and pods, interval by interval."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import ibis
import numpy
from numpy.typing import NDArray

from leeward.errors import InputError
from leeward.telemetry import Windows

Numbers = NDArray[numpy.float64]

MOST_VALUES = 200_000_000
"""Greatest number of link-intervals in memory."""


@dataclass(frozen=True)
class Series:
    """One direction of one link.

    Attributes:
        name: Name of the link.
        load_bps: Mean load in each interval, in bits per second; NaN without telemetry.
        capacity_bps: Capacity in each interval, in bits per second; NaN without telemetry.
        cluster_bps: Capacity in the cluster file, in bits per second.
    """

    name: str
    load_bps: Numbers
    capacity_bps: Numbers
    cluster_bps: int

    @cached_property
    def seen(self) -> NDArray[numpy.bool_]:
        """True for intervals in which the link was seen."""
        return ~numpy.isnan(self.load_bps)

    @cached_property
    def now_bps(self) -> float:
        """Capacity in the last interval in which the link was seen."""
        return float(self.capacity_bps[self.seen][-1])

    @property
    def utilization(self) -> Numbers:
        """Utilization in the intervals in which the link was seen."""
        seen = self.seen
        return self.load_bps[seen] / self.capacity_bps[seen]


@dataclass(frozen=True)
class Loads:
    """Series of several links over the same intervals.

    Attributes:
        first_ms: Start of the first interval, Unix time in milliseconds.
        interval_ms: Length of an interval.
        count: Number of intervals, seen or not.
        links: Links by name.
    """

    first_ms: int
    interval_ms: int
    count: int
    links: dict[str, Series]


def nearest_rank(values: Numbers, thousandths: int) -> float:
    """A percentile: the least value that a share of the values does not exceed.

    Args:
        values: Values, at least one.
        thousandths: Thousandths of a percent, from 1 to 100,000: 98,000 is the 98th percentile.
    """
    index = rank(len(values), thousandths) - 1
    return float(numpy.partition(values, index)[index])


def rank(count: int, thousandths: int) -> int:
    """Rank of a percentile among `count` values; the least value has rank 1."""
    return -(-count * thousandths // 100_000)


def loads(windows: Windows, links: Collection[int]) -> Loads:
    """Series of links.

    Args:
        windows: Windows of all links.
        links: Numbers of the links.

    Raises:
        InputError: The links have more than `MOST_VALUES` intervals together.
    """
    samples = windows.samples
    engine, table = samples.engine, windows.table
    if not links:
        return Loads(0, windows.interval_ms, 0, {})
    rows = table.filter(table.link.isin(sorted(links))).select(
        "link", "start_ms", "bits", "capacity_bits", "covered_ms"
    )
    ends = engine.arrow(rows.agg(first=rows.start_ms.min(), last=rows.start_ms.max())).to_pylist()[0]
    if ends["first"] is None:
        return Loads(0, windows.interval_ms, 0, {})
    count = (ends["last"] - ends["first"]) // windows.interval_ms + 1
    if count * len(links) > MOST_VALUES:
        message = f"{count:,} intervals of {len(links):,} links: more than {MOST_VALUES:,}"
        error = InputError.about("telemetry", message)
        error.add_note("use less time (--since) or longer intervals (--interval)")
        raise error
    row_of = {row["link"]: row for row in samples.links.select(["link", "name", "capacity_bps"]).to_pylist()}
    order = numpy.asarray(sorted(links))
    # Each row has a place in the arrays, so that the engine need not sort the rows.
    columns_table = engine.arrow(rows)
    columns = {name: columns_table[name].to_numpy() for name in columns_table.column_names}
    link_index = numpy.searchsorted(order, columns["link"])
    interval_index = (columns["start_ms"] - ends["first"]) // windows.interval_ms
    seconds = columns["covered_ms"] / 1000.0
    load, capacity = (numpy.full((len(order), count), numpy.nan) for _ in range(2))
    load[link_index, interval_index] = columns["bits"] / seconds
    capacity[link_index, interval_index] = columns["capacity_bits"] / seconds
    result = {}
    for number, link in enumerate(order.tolist()):
        row = row_of[link]
        if not numpy.isnan(load[number]).all():
            result[row["name"]] = Series(row["name"], load[number], capacity[number], row["capacity_bps"])
    return Loads(ends["first"], windows.interval_ms, count, result)


def percentiles(windows: Windows, bins: ibis.Table, thousandths: int) -> dict[int, int]:
    """Percentile of each link's utilization in whole percent, rounded down, from a histogram.

    Args:
        windows: Windows of all links.
        bins: Result of `hotspots.hot.histogram`.
        thousandths: Thousandths of a percent.
    """
    up_to = ibis.cumulative_window(group_by="link", order_by="bin")
    ranked = bins.mutate(
        below=bins.intervals.sum().over(up_to).cast("int64"),
        all=bins.intervals.sum().over(ibis.window(group_by="link")).cast("int64"),
    )
    enough = ranked.below * 100_000 >= ranked["all"] * thousandths
    table = windows.samples.engine.arrow(ranked.group_by("link").agg(bin=ranked.bin.min(where=enough)))
    return {row["link"]: row["bin"] for row in table.to_pylist()}
