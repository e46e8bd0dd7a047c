"""Changes at the start of a run of hot intervals: of capacity, load, both or none (Hotspots, section 3.4).

A rollout that takes half of a rack's uplinks makes it hot at an unchanged load; a new application makes it
hot at an unchanged capacity. The mean capacity and load of each run are compared with the earlier capacity
and load: the maxima of the link over all intervals before the hour in which the run began.

=================== ==================================================================================
cause               when
=================== ==================================================================================
`capacity-loss`     capacity below 90 % and load at most 110 % of the earlier maxima, and the link would not
be
                    hot at the earlier capacity
`demand-growth`     capacity at least 90 % and load above 110 % of the earlier maxima
`both`              capacity below 90 % of the earlier maximum; and either load above 110 % of the earlier
                    maximum, or the link would be hot at the earlier capacity too
`demand`            neither changed: the link is too small for its earlier load too
`unknown`           no telemetry of the earlier time
=================== ==================================================================================

Intervals with a utilization above 105 % are left out: their units are in doubt.
"""

import ibis
import pyarrow

from leeward.hotspots.hot import rate
from leeward.hotspots.settings import HOUR_MS, Settings
from leeward.telemetry import Windows

CAUSES = ("capacity-loss", "demand-growth", "both", "demand", "unknown")


def changes(windows: Windows, by_hour: ibis.Table, runs: ibis.Table, settings: Settings) -> ibis.Table:
    """The cause of each run.

    Args:
        windows: All intervals.
        by_hour: Loads of links, from `hot.hours`.
        runs: From `durations.runs`.
        settings: Thresholds.

    Returns:
        `link`, `start_ms`, `end_ms`, `intervals`, `cause`, `capacity_bps` and `load_bps` (means over the
        run's hot intervals), `capacity_before_bps` and `load_before_bps` (the maximum before it; null without
        any interval).
    """
    period = max(HOUR_MS, windows.interval_ms)
    seen = by_hour.filter(by_hour.sure).semi_join(runs.select("link"), "link")
    hours = seen.select("link", hour=seen.start_ms // period, capacity=seen.capacity_bps, load=seen.load_bps)
    # The hour of a run's start may be in doubt itself; then it has no row to add.
    run_hours = runs.select("link", hour=runs.start_ms // period).distinct()
    run_hours = run_hours.mutate(capacity=ibis.null("int64"), load=ibis.null("int64"))
    all_hours = hours.union(run_hours)
    merged = all_hours.group_by("link", "hour").agg(
        capacity=all_hours.capacity.max(), load=all_hours.load.max()
    )
    earlier = ibis.window(group_by="link", order_by="hour", preceding=(None, 1), following=None)
    before = merged.select(
        of="link",
        hour="hour",
        capacity_before_bps=merged.capacity.max().over(earlier),
        load_before_bps=merged.load.max().over(earlier),
    )
    during = runs.mutate(
        hour=runs.start_ms // period,
        capacity_bps=rate(runs.capacity_kbits, runs.covered_ms, 1e6),
        load_bps=rate(runs.kbits, runs.covered_ms, 1e6),
    )
    joined = during.left_join(before, [("link", "of"), ("hour", "hour")])
    result = joined.mutate(cause=_cause(joined, settings))
    return windows.samples.engine.keep(
        result.select(
            *("link", "start_ms", "end_ms", "intervals", "cause", "capacity_bps", "load_bps"),
            *("capacity_before_bps", "load_before_bps"),
        )
    )


def named_changes(windows: Windows, table: ibis.Table) -> pyarrow.Table:
    """Runs with the names of their links, in the order of links and time."""
    engine = windows.samples.engine
    places = engine.table(windows.samples.links).select("link", "name", "cross_section", "direction", "rack")
    return engine.arrow(table.join(places, "link").order_by("link", "start_ms").drop("link"))


def by_cause(windows: Windows, table: ibis.Table) -> pyarrow.Table:
    """Share of each cross-section's hot time by cause.

    Returns:
        `cross_section`, `cause`, `links`, `runs`, `intervals`, `share` (of the cross-section's hot
        intervals).
    """
    engine = windows.samples.engine
    rows = table.join(engine.table(windows.samples.links).select("link", "cross_section"), "link")
    grouped = rows.group_by("cross_section", "cause").agg(
        links=rows.link.nunique(), runs=rows.count(), intervals=rows.intervals.sum().cast("int64")
    )
    total = grouped.intervals.sum().over(ibis.window(group_by="cross_section")).cast("float64")
    result = grouped.mutate(share=grouped.intervals.cast("float64") / total)
    return engine.arrow(result.order_by("cross_section", ibis.desc("intervals"), "cause"))


def _cause(run: ibis.Table, settings: Settings) -> ibis.Value:
    lost = run.capacity_bps.cast("float64") < run.capacity_before_bps.cast("float64") * settings.fell
    grown = run.load_bps.cast("float64") > run.load_before_bps.cast("float64") * settings.grew
    hot_anyway = (
        run.load_bps.cast("float64") * 1e6 > run.capacity_before_bps.cast("float64") * settings.hot_ppm
    )
    loss, growth, both, demand, unknown = CAUSES
    when_lost = ibis.ifelse(grown | hot_anyway, both, loss)
    cause = ibis.ifelse(lost, when_lost, ibis.ifelse(grown, growth, demand))
    return ibis.ifelse(run.capacity_before_bps.isnull(), unknown, cause)
