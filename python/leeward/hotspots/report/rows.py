"""An analysis as tables of texts, in the order of an operator's questions.

The order: hotspots, places, times, durations, causes, imbalance, forecast; and at the end the rows left out.
Each table explains its words. The terminal and the page show the same tables.
"""

from leeward._quantities import duration_text, percent_text, some
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.report import cause_rows, hot_rows, imbalance_rows
from leeward.hotspots.report.section import Section, stamp, threshold
from leeward.telemetry import Discards


def heading(analysis: Analysis) -> list[str]:
    """Extent of the analysis in two lines, and doubts about all of it."""
    extent, settings = analysis.extent, analysis.settings
    first, end = extent.first_ms or 0, extent.end_ms or 0
    share = percent_text(settings.coverage, None)
    thin = f"; {extent.thin:,} more were seen for less than {share} of their time, and are not judged"
    unseen = f"; not {some(analysis.unseen)}" if analysis.unseen else ""
    links = f"{extent.seen:,} of {extent.links:,} link directions seen{unseen}"
    length = duration_text(extent.interval_ms / 1000)
    hot = f"{extent.hot:,} of {extent.intervals:,} link intervals of {length} are hot"
    return [
        f"{duration_text((end - first) / 1000)} from {stamp(first)} to {stamp(end)} UTC; {links}",
        f"{hot}: above {threshold(settings.hot_ppm)}{thin if extent.thin else ''}",
        *_doubts(analysis.discards),
    ]


def _doubts(discards: Discards) -> list[str]:
    """What may be missing from the answer, a line each."""
    partial, strange = discards.counts.get("partial", 0), discards.counts.get("no-link", 0)
    such = "; ".join(discards.examples.get("no-link", [])[:1])
    return [
        *(
            [f"partial: {partial:,} answers of Prometheus may lack links or readings, as the warnings say"]
            * (partial > 0)
        ),
        *(
            [f"no-link: {strange:,} readings are of ports without a link in the cluster, such as {such}"]
            * (strange > 0)
        ),
    ]


ANSWERS = 4
"""Rows of the answer: with heading and notes it has at most ten lines."""


def answer(analysis: Analysis, top: int = ANSWERS) -> list[Section]:
    """The answer in short, as a table; empty without hot links."""
    section = hot_rows.places(analysis, top)
    return [] if section is None else [section]


def sections(analysis: Analysis, top: int) -> list[Section]:
    """All tables with content, besides the answer.

    Args:
        analysis: The analysis.
        top: Greatest number of rows of long tables.
    """
    every = [
        hot_rows.cross_sections(analysis),
        hot_rows.kinds(analysis),
        hot_rows.links(analysis, top),
        hot_rows.classes(analysis),
        cause_rows.causes(analysis),
        cause_rows.findings(analysis, top),
        cause_rows.split(analysis),
        cause_rows.jobs(analysis, top),
        cause_rows.uplinks(analysis),
        cause_rows.request_shares(analysis),
        imbalance_rows.unevenness(analysis),
        imbalance_rows.stability(analysis),
        imbalance_rows.scores(analysis),
        imbalance_rows.now(analysis, top),
        hot_rows.units(analysis, top),
        _discards(analysis),
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
