"""Frequency of hot links: by cross-section and direction, by kind of rack, and by link.

A link is hot in an interval if its mean utilization there is above 75 %; each direction counts by itself
(Hotspots, section 3.1). For any set of links::

    hotspot rate = hot link-intervals / all link-intervals that were seen      (figure 3)

By kind of rack, only uplinks and downlinks of ToRs count, as in figure 5. Percentiles are
of histograms with bins of 1 %: the lower edge of the bin that holds the value of that rank (nearest rank), so
that a true percentile is at most 1 % above the shown one.
"""

from collections.abc import Sequence
from typing import Any

import ibis
import pyarrow

from leeward.hotspots.settings import BIN_PPM, HOUR_MS, Settings
from leeward.telemetry import Samples, Windows
from leeward.telemetry.units import UNIT_PPM, doubt

CROSS_SECTIONS = ("host-ToR", "ToR-pod", "pod-core", "pair", "shared")
"""Cross-sections from the hosts up; `pair` and `shared` are of a mesh: measured pairs, and shared links."""
TOR = "ToR-pod"
"""Cross-section of a "hotspot" without further qualification (section 3.2)."""
PERCENTILES = (50, 95, 98)


def histogram(windows: Windows, settings: Settings) -> ibis.Table:
    """Number of intervals of each link in each bin of utilization.

    Returns:
        `link`, `bin` (utilization in whole percent, rounded down), `intervals`, `hot`, `over` (number above
        105 %), `most_ppm`.
    """
    seen = windows.table.mutate(bin=windows.table.ppm // BIN_PPM)
    grouped = seen.group_by("link", "bin")
    return windows.samples.engine.keep(
        grouped.agg(
            intervals=seen.count(),
            hot=seen.count(where=seen.ppm > settings.hot_ppm),
            over=seen.count(where=seen.ppm > UNIT_PPM),
            most_ppm=seen.ppm.max(),
        )
    )


def hours(windows: Windows) -> ibis.Table:
    """Load of each link in each hour, or in each interval if intervals are longer.

    Returns:
        `link`, `start_ms`, `sure` (true for the intervals up to 105 %; those above have rows of their own),
        `kbits` and `capacity_kbits` (sums, in thousands of bits), `load_bps` and `capacity_bps` (maximum of
        any interval).
    """
    seen, length = windows.table, max(HOUR_MS, windows.interval_ms)
    rows = seen.select(
        "link",
        "bits",
        "capacity_bits",
        "covered_ms",
        start_ms=seen.start_ms - seen.start_ms % length,
        sure=seen.ppm <= UNIT_PPM,
    )
    return windows.samples.engine.keep(
        rows.group_by("link", "start_ms", "sure").agg(
            # Sums of thousands of bits over years fit into 64 bits.
            kbits=(rows.bits // 1000).sum().cast("int64"),
            capacity_kbits=(rows.capacity_bits // 1000).sum().cast("int64"),
            load_bps=rate(rows.bits, rows.covered_ms).max(),
            capacity_bps=rate(rows.capacity_bits, rows.covered_ms).max(),
        )
    )


def rate(bits: Any, covered_ms: Any, scale: float = 1000.0) -> Any:
    """Bits per second, rounded down."""
    return (bits.cast("float64") * scale / covered_ms.cast("float64")).floor().cast("int64")


def percentiles(bins: ibis.Table, by: Sequence[str], ranks: Sequence[int] = PERCENTILES) -> ibis.Table:
    """Percentiles of utilization, from a histogram.

    Args:
        bins: Table with `bin` and `intervals`, and the columns `by`.
        by: Columns of the groups.
        ranks: Percentiles, in percent.

    Returns:
        `by`, and for each rank `p95_ppm` and the like.
    """
    counts = bins.group_by(*by, "bin").agg(n=bins.intervals.sum().cast("int64"))
    up_to = ibis.cumulative_window(group_by=list(by), order_by="bin")
    ranked = counts.mutate(
        below=counts.n.sum().over(up_to).cast("int64"),
        all=counts.n.sum().over(ibis.window(group_by=list(by))).cast("int64"),
    )
    columns: Any = {
        f"p{rank}_ppm": ranked.bin.min(where=ranked.below * 100 >= ranked["all"] * rank).cast("int64")
        * BIN_PPM
        for rank in ranks
    }
    return ranked.group_by(*by).agg(**columns)


def by_cross_section(windows: Windows, bins: ibis.Table) -> pyarrow.Table:
    """The hotspot rate of each cross-section in each direction (figure 3).

    Returns:
        `cross_section`, `direction`, `links` (seen), `hot_links` (hot at any time), `intervals`, `hot`,
        `rate`, percentiles and maximum of utilization.
    """
    keys = ("cross_section", "direction")
    rows = _with_places(windows, bins)
    return _rates(windows, rows, keys, _rank("cross_section", CROSS_SECTIONS))


def by_kind(windows: Windows, bins: ibis.Table) -> pyarrow.Table:
    """Hotspots of each kind of rack (figure 5): share of all hotspots, and hotspot rate.

    Returns:
        `kind`, and the columns of `by_cross_section`, and `share` (of all hot intervals of ToRs).
    """
    engine = windows.samples.engine
    racks = engine.table(windows.samples.racks.select(["rack", "kind"]))
    rows = _with_places(windows, bins).filter(ibis._.cross_section == TOR).join(racks, "rack")
    table = _rates(windows, rows, ("kind",), {})
    hot = table["hot"].to_pylist()
    shares = [count / sum(hot) if sum(hot) else None for count in hot]
    return table.append_column("share", pyarrow.array(shares, pyarrow.float64()))


def by_link(windows: Windows, bins: ibis.Table, by_hour: ibis.Table, runs: ibis.Table) -> pyarrow.Table:
    """Frequency and duration of hotspots of each seen link, the hottest first.

    Args:
        windows: Windows of all links.
        bins: Histogram of the windows.
        by_hour: Loads of the links, from `hours`.
        runs: Runs of hot intervals, from `durations.runs`.

    Returns:
        `name`, `cross_section`, `direction`, `rack`, `pod`, `kind`, `intervals`, `hot`, `rate`,
        `mean_ppm`, percentiles, `most_ppm`, `over` (intervals above 105 %), `hot_since_ms` (start of the
        first hot interval), `last_hot_ms` (end of the last one), `runs`, `longest_ms`.
    """
    engine = windows.samples.engine
    counts = _sums(bins.group_by("link"), bins).join(percentiles(bins, ["link"]), "link")
    loads = by_hour.group_by(its="link").agg(
        kbits=by_hour.kbits.sum().cast("int64"), capacity_kbits=by_hour.capacity_kbits.sum().cast("int64")
    )
    longest = runs.group_by(of="link").agg(
        runs=runs.count(),
        longest_ms=(runs.end_ms - runs.start_ms).max(),
        first_hot_ms=runs.start_ms.min(),
        last_hot_ms=runs.end_ms.max(),
    )
    racks = engine.table(windows.samples.racks.select(["rack", "kind"])).rename(in_rack="rack")
    places = engine.table(windows.samples.links).select(
        "link", "name", "cross_section", "direction", "rack", "pod"
    )
    joined = counts.join(places, "link").join(loads, [("link", "its")])
    joined = joined.left_join(longest, [("link", "of")])
    joined = joined.left_join(racks, [("rack", "in_rack")])
    result = joined.select(
        *("link", "name", "cross_section", "direction", "rack", "pod", "kind", "intervals", "hot"),
        rate=joined.hot.cast("float64") / joined.intervals.cast("float64"),
        mean_ppm=_mean(joined),
        **{f"p{rank}_ppm": joined[f"p{rank}_ppm"] for rank in PERCENTILES},
        most_ppm=joined.most_ppm,
        over=joined.over,
        hot_since_ms=joined.first_hot_ms,
        last_hot_ms=joined.last_hot_ms,
        runs=ibis.coalesce(joined.runs, 0).cast("int64"),
        longest_ms=ibis.coalesce(joined.longest_ms, 0).cast("int64"),
    )
    in_order = result.order_by(ibis.desc("hot"), ibis.desc("p98_ppm"), "link").drop("link")
    return engine.arrow(in_order)


def unit_errors(links: pyarrow.Table, samples: Samples) -> pyarrow.Table:
    """Links with loads above 105 % of their capacity, and the causes that fit the evidence.

    Args:
        links: Result of `by_link`.
        samples: Samples of the links.

    Returns:
        `name`, `over` (intervals above 105 %), `intervals`, `most_ppm`, `factor` (null if no cause has one),
        `why`. The analysis of hot links counts these links unchanged.
    """
    columns = ("name", "over", "intervals", "most_ppm", "p98_ppm")
    rows = [row for row in links.select(columns).to_pylist() if row["over"]]
    names = samples.links.select(["name", "link"]).to_pylist() if rows else []
    numbers = {row["name"]: row["link"] for row in names}
    for row in rows:
        ports = samples.source.ports.get(numbers[row["name"]], 1)
        row["factor"], row["why"] = doubt(row["p98_ppm"] / 1e6, samples.source, ports)
    rows.sort(key=lambda row: (-row["most_ppm"], row["name"]))
    schema = pyarrow.schema(
        [links.schema.field(name) for name in columns]
        + [pyarrow.field("factor", pyarrow.float64()), pyarrow.field("why", pyarrow.string())]
    )
    return pyarrow.Table.from_pylist(rows, schema).drop_columns(["p98_ppm"])


def utilization(windows: Windows, bins: ibis.Table) -> pyarrow.Table:
    """The histogram of each cross-section in each direction.

    Returns:
        `cross_section`, `direction`, `percent` (the lower edge of a bin, 1 % wide), `intervals`.
    """
    rows = _with_places(windows, bins)
    grouped = rows.group_by("cross_section", "direction", percent="bin").agg(
        intervals=rows.intervals.sum().cast("int64")
    )
    return windows.samples.engine.arrow(grouped.order_by("cross_section", "direction", "percent"))


def heat(windows: Windows, cells: int) -> pyarrow.Table:
    """Maximum utilization of the links of a rack, of either direction, in each cell of time.

    Args:
        windows: Windows of all links.
        cells: Greatest number of cells of equal length.

    Returns:
        `rack`, `start_ms`, `length_ms` (of the cell), `ppm`.
    """
    engine, length = windows.samples.engine, windows.interval_ms
    places = engine.table(windows.samples.links).filter(ibis._.cross_section == TOR).select("link", "rack")
    ends = engine.arrow(
        windows.table.agg(first=windows.table.start_ms.min(), last=windows.table.start_ms.max())
    )
    first, last = (ends[name][0].as_py() for name in ("first", "last"))
    if first is not None:
        count = (last - first) // length + 1
        length *= -(-count // cells)
    seen = windows.table.join(places, "link")
    start = seen.start_ms - (seen.start_ms - (first or 0)) % length
    rows = seen.select("rack", "ppm", cell=start)
    result = rows.group_by("rack", start_ms="cell").agg(ppm=rows.ppm.max())
    result = result.mutate(length_ms=ibis.literal(length, "int64"))
    return engine.arrow(result.order_by("rack", "start_ms"))


def _with_places(windows: Windows, bins: ibis.Table) -> ibis.Table:
    """A histogram, with the places of links."""
    places = windows.samples.engine.table(windows.samples.links)
    return bins.join(places.select("link", "cross_section", "direction", "rack"), "link")


def _sums(grouped: Any, bins: ibis.Table) -> ibis.Table:
    return grouped.agg(
        links=bins.link.nunique(),
        hot_links=(bins.hot > 0).ifelse(bins.link, None).nunique(),
        intervals=bins.intervals.sum().cast("int64"),
        hot=bins.hot.sum().cast("int64"),
        over=bins.over.sum().cast("int64"),
        most_ppm=bins.most_ppm.max(),
    )


def _mean(table: ibis.Table) -> Any:
    share = table.kbits.cast("float64") * 1e6 / ibis.greatest(table.capacity_kbits, 1).cast("float64")
    return share.floor().cast("int64")


def _rates(
    windows: Windows, bins: ibis.Table, by: Sequence[str], order: dict[str, dict[str, int]]
) -> pyarrow.Table:
    """Rates of groups of links, sorted by names or by an order of them."""
    joined = _sums(bins.group_by(*by), bins).join(percentiles(bins, by), list(by))
    result = joined.select(
        *(*by, "links", "hot_links", "intervals", "hot"),
        rate=joined.hot.cast("float64") / joined.intervals.cast("float64"),
        **{f"p{rank}_ppm": joined[f"p{rank}_ppm"] for rank in PERCENTILES},
        most_ppm=joined.most_ppm,
    )
    table = windows.samples.engine.arrow(result.order_by(*by))
    rows = table.to_pylist()
    rows.sort(key=lambda row: [order.get(name, {}).get(row[name], 0) for name in by])
    return pyarrow.Table.from_pylist(rows, table.schema)


def _rank(column: str, values: Sequence[str]) -> dict[str, dict[str, int]]:
    return {column: {value: rank for rank, value in enumerate(values)}}
