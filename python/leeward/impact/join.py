"""Join of latencies and utilizations: each latency gets the maximum over its links and its intervals.

As in Hotspots, section 4.1, the busiest link limits a storage operation. Operations of the paper lie
within one interval; here an operation in several intervals takes the maximum over them. If a link has no
telemetry, the maximum is unknown, and the latency is left out and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import pyarrow

from leeward.errors import InputError
from leeward.hotspots.hot import percentiles
from leeward.hotspots.settings import BIN_PPM
from leeward.impact import stages
from leeward.impact.latencies import Latencies
from leeward.impact.settings import Settings
from leeward.impact.utilization import Utilization
from leeward.telemetry import Discards
from leeward.telemetry.times import moment_text
from leeward.telemetry.units import UNIT_PPM

MOST_EXAMPLES = 3
USUAL = 98
"""Percentile of a link's utilization by which the unit of its load is judged."""


@dataclass(frozen=True)
class Above:
    """A link whose load exceeds its capacity.

    Attributes:
        name: Name.
        most_ppm: Greatest utilization, in millionths.
        usual_ppm: 98th percentile, which one interval does not change.
    """

    name: str
    most_ppm: int
    usual_ppm: int


@dataclass(frozen=True)
class LatencyHistograms:
    """Histograms of latencies.

    Attributes:
        counts: A row for each occupied bin, in order: the fields that latencies are split by (`operation`,
            `medium`, `class`: text; `size`, `compute`: int64, the number of edges that are not above), `part`
            (`total` or `network`), `bucket` (int64: utilization over the width of buckets, rounded down),
            `bin` (int64), `latencies`, `sum_us` (both int64).
        by: Fields that latencies are split by.
        latencies: Number of all latencies.
        above: Links whose load exceeds their capacity, the worst first.
    """

    counts: pyarrow.Table
    by: tuple[str, ...]
    latencies: int
    above: list[Above]


def join(
    latencies: Latencies,
    utilization: Utilization,
    settings: Settings,
    ratios: Path | None,
    discards: Discards,
) -> LatencyHistograms:
    """Joins latencies with utilizations and counts them.

    Args:
        latencies: Valid latencies.
        utilization: Utilization of the links of the same cluster.
        settings: Widths and edges.
        ratios: Valid times of stages, for compute ratios.
        discards: Counts of latencies without a utilization.

    Raises:
        InputError: Latencies and telemetry do not overlap in time or links, or a field to split by is
            missing.
    """
    if utilization.cadence_ms > utilization.interval_ms:
        seconds = f"{utilization.cadence_ms / 1000:g}s"
        message = f"`{utilization.interval_ms / 1000:g}s`: telemetry has a sample every {seconds} only"
        error = InputError.about("interval", message)
        error.add_note(f"--interval {seconds} sets intervals of that length")
        raise error
    engine = utilization.engine
    by = _splits(latencies, settings, ratios)
    rows = engine.parquet([latencies.file])
    if ratios is not None:
        rows = rows.left_join(stages.compute_ratios(engine, ratios), "query").drop("query_right")
        rows = rows.mutate(compute_ppm=ibis.coalesce(rows.compute_ppm, rows.ratio_ppm)).drop("ratio_ppm")
    width = utilization.interval_ms
    rows = rows.mutate(
        first_start=rows.first_ms - rows.first_ms % width, last_start=rows.last_ms - rows.last_ms % width
    )
    keys = ["route", "first_start", "last_start", *(["class"] if utilization.weights else [])]
    routes = engine.table(
        pyarrow.table(
            {
                "route": pyarrow.array(
                    [number for number, route in enumerate(latencies.routes) for _ in route], "int32"
                ),
                "link": pyarrow.array([link for route in latencies.routes for link in route], "int32"),
            }
        )
    )
    # Many operations cross the same links at the same time: one maximum serves all of them.
    spans = rows.select(keys).distinct().join(routes, "route")
    spans = spans.mutate(start_ms=ibis.range(spans.first_start, spans.last_start + width, width).unnest())
    utilizations = utilization.table.mutate(there=ibis.literal(1, "int64"))
    pairs = spans.left_join(utilizations, utilization.keys)
    pairs = pairs.drop([f"{name}_right" for name in utilization.keys])
    greatest = engine.keep(
        pairs.group_by(keys).agg(
            ppm=lambda t: t.ppm.max(),
            crossed=lambda t: t.count(),
            seen=lambda t: t.ppm.count(),
            there=lambda t: t.there.count(),
        )
    )
    # A null class equals no other class, so rows with an unknown class are counted separately.
    joined = rows.left_join(greatest, keys)
    effective = utilization.weights is not None
    state = ibis.cases(
        *([(_no_weight(joined, utilization), "no-weight")] if effective else []),
        (joined.there.isnull() | (joined.there < joined.crossed), "no-telemetry"),
        (joined.seen < joined.crossed, "thin"),
        *([] if effective else [(joined.ppm > UNIT_PPM, "above-105%")]),
        else_="",
    )
    joined = engine.keep(joined.mutate(state=state))
    latencies_of_state = joined.group_by("state").agg(latencies=lambda t: t.weight.sum().cast("int64"))
    states = engine.arrow(latencies_of_state.order_by("state"))
    count_of_state = dict(zip(states["state"].to_pylist(), states["latencies"].to_pylist(), strict=True))
    names = utilization.links["name"].to_pylist()
    unseen = (
        pairs.filter(pairs.there.isnull()).select("link").distinct().order_by("link").limit(MOST_EXAMPLES)
    )
    examples = [names[link] for link in engine.arrow(unseen)["link"].to_pylist()]
    valid_count = count_of_state.pop("", 0)
    for reason, count in sorted(count_of_state.items()):
        discards.count(reason, count, *(examples if reason == "no-telemetry" else ()))
    if not valid_count:
        raise _no_overlap_error(latencies, utilization, count_of_state, examples)
    counts = _count(joined.filter(joined.state == ""), by, settings, latencies)
    return LatencyHistograms(engine.arrow(counts), by, valid_count, _above(utilization, latencies, names))


def _splits(latencies: Latencies, settings: Settings, ratios: Path | None) -> tuple[str, ...]:
    """Fields that latencies are split by.

    Raises:
        InputError: Latencies do not have a requested field.
    """
    needed = {"medium": "medium", "class": "class", "size": "size_bytes", "compute": "compute_ratio"}
    if settings.by is None:
        return ("operation", "medium") if "medium" in latencies.optional_columns else ("operation",)
    for name in settings.by:
        column = needed.get(name)
        from_stages = name == "compute" and ratios is not None
        if column is not None and column not in latencies.optional_columns and not from_stages:
            error = InputError.about("by", f"`{name}`: latencies have no column `{column}`")
            if name == "compute":
                error.add_note(
                    "--query-stages FILE gives compute ratios of queries, from the times of their stages"
                )
            raise error
    return tuple(dict.fromkeys(settings.by))


def _no_weight(joined: Any, utilization: Utilization) -> Any:
    return joined["class"].isnull() | ~joined["class"].isin(sorted(utilization.weights or ()))


def _count(rows: Any, by: Sequence[str], settings: Settings, latencies: Latencies) -> Any:
    """Histograms of the latencies in each bucket of utilization."""
    edges = {"size": ("size_bytes", settings.sizes), "compute": ("compute_ppm", settings.ratios)}
    split = {
        name: _classes(rows[edges[name][0]], edges[name][1]) if name in edges else rows[name] for name in by
    }
    rows = rows.select(
        "bin",
        "latency_us",
        "network_bin",
        "network_us",
        "weight",
        bucket=rows.ppm // settings.bucket_ppm,
        **split,
    )
    total = rows.mutate(part=ibis.literal("total"), part_bin=rows.bin, us=rows.latency_us)
    parts = total
    if "network" in latencies.optional_columns:
        network = rows.filter(rows.network_bin.notnull())
        network = network.mutate(
            part=ibis.literal("network"), part_bin=network.network_bin, us=network.network_us
        )
        parts = total.union(network)
    keys = [*by, "part", "bucket"]
    counts = parts.group_by(*keys, bin=parts.part_bin.cast("int64")).agg(
        latencies=lambda t: t.weight.sum().cast("int64"),
        sum_us=lambda t: (t.us * t.weight).sum().cast("int64"),
    )
    order = [ibis.asc(name, nulls_first=True) for name in keys]
    return counts.select(*keys, "bin", "latencies", "sum_us").order_by(*order, "bin")


def _classes(column: Any, edges: Sequence[int]) -> Any:
    """Number of edges that are not above a value; null for an absent value."""
    number = ibis.literal(0, "int64")
    for edge in edges:
        number = number + (column >= edge).cast("int64")
    return number


def _above(utilization: Utilization, latencies: Latencies, names: Sequence[str]) -> list[Above]:
    """Links with more load than capacity, among those that operations cross."""
    if utilization.weights:
        return []
    crossed = sorted({link for route in latencies.routes for link in route})
    seen = utilization.table.filter(utilization.table.link.isin(crossed) & utilization.table.ppm.notnull())
    most = seen.group_by("link").agg(most_ppm=seen.ppm.max()).filter(lambda t: t.most_ppm > UNIT_PPM)
    bins = seen.semi_join(most, "link").mutate(bin=lambda t: t.ppm // BIN_PPM)
    counts = bins.group_by("link", "bin").agg(intervals=bins.count())
    ranked = most.join(percentiles(counts, ["link"], [USUAL]), "link")
    rows = utilization.engine.arrow(ranked.order_by(ibis.desc("most_ppm"), "link")).to_pylist()
    return [Above(names[row["link"]], row["most_ppm"], row[f"p{USUAL}_ppm"]) for row in rows]


def _no_overlap_error(
    latencies: Latencies, utilization: Utilization, counts: dict[str, int], unseen: Sequence[str]
) -> InputError:
    """Reports the reason if no latency has a utilization."""
    table, width = utilization.table, utilization.interval_ms
    ends = table.aggregate(low=table.start_ms.min(), high=table.start_ms.max())
    (row,) = utilization.engine.arrow(ends).to_pylist()
    if row["low"] is None:
        return InputError.about("telemetry", "no samples of links")
    low, high = row["low"], row["high"] + width
    if latencies.last_ms < low or latencies.first_ms >= high:
        first, last = latencies.first_ms, latencies.last_ms
        ranges = f"latencies are of {_range(first, last)}, and telemetry of {_range(low, high)}"
        message = f"no overlap in time: {ranges}"
        error = InputError.about("latency", message)
        for factor, words in ((1000, "seconds where milliseconds"), (1 / 1000, "milliseconds where seconds")):
            if first * factor < high and last * factor >= low:
                error.add_note(f"times of latencies look like {words} are expected")
        return error
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
    message = f"none of {latencies.valid_rows:,} latencies has a utilization: {reasons}"
    error = InputError.about("latency", message)
    if unseen:
        error.add_note(f"no telemetry of {', '.join(unseen)}")
        error.add_note("--links OPERATION=dst:downlink compares operations with other links")
    return error


def _range(first: int, last: int) -> str:
    return f"{moment_text(first)} to {moment_text(last)}"
