"""Durations of hot links, and the remedy for each.

A run is a sequence of consecutive hot intervals of a link direction, and its duration is their total length
(Hotspots, section 3.2 and figure 4). An interval without enough telemetry ends a run, unless the setting
`bridge` bridges it. An interval with enough telemetry that is not hot always ends a run. A run is *open* if
the interval before or after it has too little telemetry: the run may have lasted longer.

====== ====================== ==========================================================
class  duration               remedy (section 3.2)
====== ====================== ==========================================================
minutes less than an hour     migrate: move tasks away when it happens
hours   an hour to a day      place: put data and long-running jobs elsewhere beforehand
days    a day or more         provision: plan capacity, or upgrade the rack
====== ====================== ==========================================================
"""

from typing import NamedTuple

import ibis
import pyarrow

from leeward.hotspots.hot import CROSS_SECTIONS
from leeward.hotspots.settings import Settings
from leeward.telemetry import Windows


class Remedy(NamedTuple):
    """Remedy for hotspots of a persistence class."""

    name: str
    remedy: str


CLASSES = (Remedy("minutes", "migrate"), Remedy("hours", "place"), Remedy("days", "provision"))


def hot_intervals(windows: Windows, settings: Settings) -> ibis.Table:
    """Every hot interval, with its run.

    Returns:
        The columns of windows, `run` (its number among the link's, from 1), `run_ms` (the start of the run),
        `elapsed` (intervals of the run up to this one, from 1).
    """
    length = windows.interval_ms
    order = ibis.window(group_by="link", order_by="start_ms")
    seen = windows.table
    if settings.bridge:
        # Hot intervals with other seen intervals in between, which are not hot, have no consecutive numbers.
        seen = seen.mutate(number=ibis.row_number().over(order))
    hot = seen.filter(seen.ppm > settings.hot_ppm)
    missing = (hot.start_ms - hot.start_ms.lag().over(order)) // length - 1
    first = missing.isnull() | (missing > settings.bridge)
    if settings.bridge:
        first = first | (hot.number - hot.number.lag().over(order) != 1)
    with_first = hot.mutate(first=first.ifelse(1, 0))
    until = ibis.cumulative_window(group_by="link", order_by="start_ms")
    with_run = with_first.mutate(run=with_first.first.sum().over(until).cast("int64"))
    run_start = with_run.start_ms.min().over(ibis.window(group_by=["link", "run"]))
    result = with_run.mutate(run_ms=run_start).mutate(elapsed=(ibis._.start_ms - ibis._.run_ms) // length + 1)
    return windows.samples.engine.keep(result.drop("first", *(["number"] if settings.bridge else [])))


def runs(windows: Windows, hot: ibis.Table) -> ibis.Table:
    """Runs of hot intervals.

    Args:
        windows: All intervals.
        hot: Hot intervals, from `hot_intervals`.

    Returns:
        `link`, `start_ms`, `end_ms`, `intervals` (hot ones), `kbits` (thousands of bits), `covered_ms`,
        `capacity_kbits`, `most_ppm`, `open` (the interval before it or after it was not seen).
    """
    length = windows.interval_ms
    table = hot.group_by("link", "run").agg(
        start_ms=hot.start_ms.min(),
        end_ms=hot.start_ms.max() + length,
        intervals=hot.count(),
        kbits=(hot.bits // 1000).sum().cast("int64"),
        covered_ms=hot.covered_ms.sum().cast("int64"),
        capacity_kbits=(hot.capacity_bits // 1000).sum().cast("int64"),
        most_ppm=hot.ppm.max(),
    )
    table = windows.samples.engine.keep(table.drop("run"))
    seen = windows.table.select("link", "start_ms")
    edges = table.select("link", run_ms="start_ms", edge=table.start_ms - length).union(
        table.select("link", run_ms="start_ms", edge=table.end_ms)
    )
    # Intervals are unique, so that this table has at most two rows for each run.
    side_counts = (
        edges.join(seen, ["link", ("edge", "start_ms")]).group_by("link", "run_ms").agg(sides=ibis._.count())
    )
    side_counts = side_counts.rename(of="link")
    joined = table.left_join(side_counts, [("link", "of"), ("start_ms", "run_ms")])
    closed = ibis.coalesce(joined.sides, 0) == 2
    return windows.samples.engine.keep(
        joined.select(
            *("link", "start_ms", "end_ms", "intervals", "kbits", "covered_ms", "capacity_kbits", "most_ppm"),
            open=~closed,
        )
    )


def persistence(start_ms: ibis.Value, end_ms: ibis.Value, settings: Settings) -> ibis.Value:
    """Persistence class of a run, as an index into `CLASSES`."""
    length = end_ms - start_ms
    return ibis.ifelse(length < settings.hours_ms, 0, ibis.ifelse(length < settings.days_ms, 1, 2))


def by_class(windows: Windows, table: ibis.Table, settings: Settings) -> pyarrow.Table:
    """Runs of each persistence class, by cross-section.

    Returns:
        `cross_section`, `class`, `remedy`, `runs`, `share` (of the cross-section's runs), `hot_ms` (sum of
        their durations), `hot_share`, `open`.
    """
    rows_of_section = _with_places(windows, table)
    with_class = rows_of_section.mutate(
        class_index=persistence(rows_of_section.start_ms, rows_of_section.end_ms, settings)
    )
    grouped = with_class.group_by("cross_section", "class_index").agg(
        runs=with_class.count(),
        hot_ms=(with_class.end_ms - with_class.start_ms).sum().cast("int64"),
        open=with_class.open.ifelse(1, 0).sum().cast("int64"),
    )
    row_of = {
        (row["cross_section"], row["class_index"]): row
        for row in windows.samples.engine.arrow(grouped).to_pylist()
    }
    rows = []
    for section in CROSS_SECTIONS:
        of_section = [row_of.get((section, index)) for index in range(len(CLASSES))]
        runs_total = sum(row["runs"] for row in of_section if row)
        hot_ms = sum(row["hot_ms"] for row in of_section if row)
        for persistence_class, row in zip(CLASSES, of_section, strict=True):
            if not runs_total:
                continue
            counts = row or {"runs": 0, "hot_ms": 0, "open": 0}
            rows.append(
                {
                    "cross_section": section,
                    "class": persistence_class.name,
                    "remedy": persistence_class.remedy,
                    "runs": counts["runs"],
                    "share": counts["runs"] / runs_total,
                    "hot_ms": counts["hot_ms"],
                    "hot_share": counts["hot_ms"] / hot_ms,
                    "open": counts["open"],
                }
            )
    return pyarrow.Table.from_pylist(rows, _CLASS_SCHEMA)


def distribution(windows: Windows, table: ibis.Table) -> pyarrow.Table:
    """The distribution of durations (figure 4).

    Returns:
        `cross_section`, `duration_ms`, `runs`, `up_to` (share of runs that last no longer), `time_up_to`
        (share of the hot time that is in them).
    """
    rows = _with_places(windows, table)
    rows = rows.mutate(duration_ms=rows.end_ms - rows.start_ms)
    grouped = rows.group_by("cross_section", "duration_ms").agg(runs=rows.count())
    grouped = grouped.mutate(time=(grouped.runs * grouped.duration_ms).cast("int64"))
    until = ibis.cumulative_window(group_by="cross_section", order_by="duration_ms")
    section_window = ibis.window(group_by="cross_section")
    result = grouped.select(
        *("cross_section", "duration_ms", "runs"),
        up_to=_share(grouped.runs.sum().over(until), grouped.runs.sum().over(section_window)),
        time_up_to=_share(grouped.time.sum().over(until), grouped.time.sum().over(section_window)),
    )
    return windows.samples.engine.arrow(result.order_by("cross_section", "duration_ms"))


def named_runs(windows: Windows, table: ibis.Table, settings: Settings) -> pyarrow.Table:
    """Every run with the name of its link, the longest first.

    Returns:
        `name`, `cross_section`, `direction`, `rack`, `start_ms`, `end_ms`, `intervals`, `class`,
        `mean_ppm`, `most_ppm`, `open`.
    """
    engine = windows.samples.engine
    places = engine.table(windows.samples.links).select("link", "name", "cross_section", "direction", "rack")
    joined = table.join(places, "link")
    index = persistence(joined.start_ms, joined.end_ms, settings)
    names = [remedy.name for remedy in CLASSES]
    mean = joined.kbits.cast("float64") * 1e6 / ibis.greatest(joined.capacity_kbits, 1).cast("float64")
    result = joined.select(
        *("link", "name", "cross_section", "direction", "rack", "start_ms", "end_ms", "intervals"),
        **{"class": ibis.ifelse(index == 0, names[0], ibis.ifelse(index == 1, names[1], names[2]))},
        mean_ppm=mean.floor().cast("int64"),
        most_ppm=joined.most_ppm,
        open=joined.open,
    )
    in_order = result.order_by(ibis.desc(result.end_ms - result.start_ms), "start_ms", "link")
    return engine.arrow(in_order.drop("link"))


_CLASS_SCHEMA = pyarrow.schema(
    [
        ("cross_section", pyarrow.string()),
        ("class", pyarrow.string()),
        ("remedy", pyarrow.string()),
        ("runs", pyarrow.int64()),
        ("share", pyarrow.float64()),
        ("hot_ms", pyarrow.int64()),
        ("hot_share", pyarrow.float64()),
        ("open", pyarrow.int64()),
    ]
)


def _with_places(windows: Windows, table: ibis.Table) -> ibis.Table:
    places = windows.samples.engine.table(windows.samples.links).select("link", "cross_section", "direction")
    return table.join(places, "link")


def _share(part: ibis.Value, whole: ibis.Value) -> ibis.Value:
    return part.cast("float64") / whole.cast("float64")
