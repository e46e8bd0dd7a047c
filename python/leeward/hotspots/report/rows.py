"""An analysis as tables of texts, in the order of an operator's questions.

The order: hotspots, places, times, durations, causes, imbalance, forecast; and at the end the rows left out.
Each table explains its words. The terminal and the page show the same tables.
"""

from leeward._quantities import days_text, share_text
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.report import cause_rows, hot_rows, steady_rows
from leeward.hotspots.report.section import Section, stamp, utilization


def heading(made: Analysis) -> list[str]:
    """Extent of the analysis, in two lines."""
    seen, set_to = made.extent, made.settings
    first, end = seen.first_ms or 0, seen.end_ms or 0
    covered = share_text(set_to.coverage)
    thin = f"; {seen.thin:,} more were seen for less than {covered} of their time, and are not judged"
    links = f"{seen.seen:,} of {seen.links:,} link directions seen"
    hot = f"{seen.hot:,} of {seen.intervals:,} link intervals of {days_text(seen.interval_ms)} are hot"
    return [
        f"{days_text(end - first)} from {stamp(first)} to {stamp(end)} UTC; {links}",
        f"{hot}: above {utilization(set_to.hot_ppm)}{thin if seen.thin else ''}",
    ]


def sections(made: Analysis, top: int) -> list[Section]:
    """All tables with content.

    Args:
        made: The analysis.
        top: Greatest number of rows of long tables.
    """
    every = [
        hot_rows.cross_sections(made),
        hot_rows.kinds(made),
        hot_rows.links(made, top),
        hot_rows.classes(made),
        cause_rows.causes(made),
        cause_rows.findings(made, top),
        cause_rows.split(made),
        cause_rows.jobs(made, top),
        cause_rows.uplinks(made),
        cause_rows.served(made),
        steady_rows.unevenness(made),
        steady_rows.stability(made),
        steady_rows.scores(made),
        steady_rows.now(made, top),
        hot_rows.units(made, top),
        _discards(made),
    ]
    return [section for section in every if section is not None]


def _discards(result: Analysis) -> Section | None:
    rows = list(result.discards)
    if not rows:
        return None
    return Section(
        "What was left out or mended?",
        ("REASON", "COUNT", "SUCH AS"),
        "<><",
        [(reason, f"{count:,}", "; ".join(examples)) for reason, count, examples in rows],
    )
