"""Tables of `hot` and `durations`."""

from collections.abc import Iterable
from typing import Any

from leeward._quantities import NONE, duration_text, percent_text
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.hot import TOR
from leeward.hotspots.places import CAUSES, REMEDIES
from leeward.hotspots.report.section import Section, rest, stamp, threshold, utilization
from leeward.hotspots.settings import BIN_PPM
from leeward.telemetry.units import UNIT_PPM


def places(analysis: Analysis, top: int) -> Section | None:
    """The answer: hot places, since when, why, and what to do. None without hot links."""
    rows = analysis.hot_places.to_pylist()
    if not rows:
        return None
    concentrated = [
        f"job {row['subject']}: {row['evidence'].partition(';')[0]}; spread it (leeward place tasks)"
        for row in analysis.causes.findings.to_pylist()
        if row["cause"] == "concentration"
    ]
    return Section(
        "Which racks are hot, since when, why, and what to do?",
        ("PLACE", "HOT", "SINCE", "UNTIL", "WHY", "WHAT TO DO"),
        "<><<<<",
        [
            (
                *(row["place"], percent_text(row["rate"]), stamp(row["since_ms"])),
                "still hot" if row["open"] else stamp(row["until_ms"]),
                *(CAUSES[row["cause"]].words, REMEDIES[row["remedy"]]),
            )
            for row in rows[:top]
        ],
        [*rest(len(rows) - top, "hot places"), *concentrated[:1], *_lost(rows[:top])],
        words=(
            ("place", "a rack, or a link between pods"),
            ("hot", "share of the time in which the hottest link of the place is hot"),
            ("why", "the cause of most of its hot intervals"),
        ),
    )


def _lost(rows: list[dict[str, Any]]) -> list[str]:
    """What hot places lost, which may change how long they were hot, and so what to do."""
    return [
        f"{row['link']}: {row['lost']:,} intervals are not judged"
        + (f" (readings lost: {row['lost_why']})" if row["lost_why"] else " (no readings)")
        for row in rows
        if row["lost"]
    ]


def cross_sections(analysis: Analysis) -> Section:
    """Hotspot rates of cross-sections."""
    return Section(
        "How often are links hot?",
        (
            "CROSS-SECTION",
            "DIRECTION",
            "LINKS",
            "EVER HOT",
            "INTERVALS",
            "HOT",
            "RATE",
            "P50",
            "P95",
            "P98",
            "MOST",
        ),
        "<<" + 9 * ">",
        [
            (row["cross_section"], row["direction"], *_counts(row), *_utilizations(row))
            for row in analysis.cross_sections.to_pylist()
        ],
        words=(
            ("rate", "hot link intervals over all that were seen (Hotspots, figure 3)"),
            (
                "p50, p95, p98",
                f"of utilization over link intervals, in bins of {threshold(BIN_PPM)}: lower edges",
            ),
        ),
    )


def kinds(analysis: Analysis) -> Section | None:
    """Hotspots by kind of rack; None without racks."""
    rows = analysis.kinds.to_pylist()
    if not rows:
        return None
    return Section(
        "Which kinds of racks?",
        ("KIND", "LINKS", "EVER HOT", "INTERVALS", "HOT", "RATE", "SHARE OF HOT", "P95"),
        "<" + 7 * ">",
        [
            (row["kind"], *_counts(row), percent_text(row["share"]), utilization(row["p95_ppm"]))
            for row in rows
        ],
        words=(("share of hot", f"of all hot intervals of {TOR} links, both directions (figure 5)"),),
    )


def links(analysis: Analysis, top: int) -> Section | None:
    """The hottest links; None if no link was hot."""
    hot = [row for row in analysis.links.to_pylist() if row["hot"]]
    if not hot:
        return None
    return Section(
        "Which links?",
        ("LINK", "KIND", "HOT", "RATE", "SINCE", "UNTIL", "RUNS", "LONGEST", "P50", "P95", "P98", "MOST"),
        "<<>><<" + 6 * ">",
        [
            (
                *(row["name"], row["kind"] or NONE, f"{row['hot']:,}", percent_text(row["rate"])),
                *(stamp(row["hot_since_ms"]), stamp(row["last_hot_ms"])),
                *(f"{row['runs']:,}", duration_text(row["longest_ms"] / 1000), *_utilizations(row)),
            )
            for row in hot[:top]
        ],
        rest(len(hot) - top, "links that were hot"),
        words=(("since, until", "start of the first hot interval of the link, end of the last one"),),
    )


def classes(analysis: Analysis) -> Section | None:
    """Runs by persistence class; None without runs."""
    rows = analysis.classes.to_pylist()
    if not rows:
        return None
    hours, days = (duration_text(ms / 1000) for ms in (analysis.settings.hours_ms, analysis.settings.days_ms))
    return Section(
        "How long do they last, and what helps?",
        ("CROSS-SECTION", "LAST", "REMEDY", "RUNS", "SHARE", "HOT TIME", "SHARE OF TIME", "OPEN"),
        "<<<" + 5 * ">",
        [
            (
                *(row["cross_section"], row["class"], row["remedy"], f"{row['runs']:,}"),
                *(
                    percent_text(row["share"]),
                    duration_text(row["hot_ms"] / 1000),
                    percent_text(row["hot_share"]),
                ),
                f"{row['open']:,}",
            )
            for row in rows
        ],
        words=(
            ("minutes", f"less than {hours}: move tasks away when it happens"),
            ("hours", f"less than {days}: place data and long-running jobs elsewhere"),
            ("days", "more than that: plan capacity, or upgrade the rack (section 3.2)"),
            ("open", "begins or ends next to an interval without telemetry; may have lasted longer"),
        ),
    )


def units(analysis: Analysis, top: int) -> Section | None:
    """Links whose units are in doubt; None without such links."""
    rows = analysis.units.to_pylist()
    if not rows:
        return None
    return Section(
        f"Is something counted wrong? Links above {threshold(UNIT_PPM)}",
        ("LINK", "ABOVE", "OF INTERVALS", "MOST", "LIKELY FACTOR", "WHY"),
        "<>>>><",
        [
            (
                *(row["name"], f"{row['over']:,}", f"{row['intervals']:,}", utilization(row["most_ppm"])),
                *(NONE if row["factor"] is None else f"{row['factor']:g}", row["why"]),
            )
            for row in rows[:top]
        ],
        [*rest(len(rows) - top, "links"), "the analysis of hot links counts them unchanged"],
    )


def _counts(row: dict[str, Any]) -> Iterable[str]:
    return (
        *(f"{row[name]:,}" for name in ("links", "hot_links", "intervals", "hot")),
        percent_text(row["rate"]),
    )


def _utilizations(row: dict[str, Any]) -> Iterable[str]:
    return (utilization(row[name]) for name in ("p50_ppm", "p95_ppm", "p98_ppm", "most_ppm"))
