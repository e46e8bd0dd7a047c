"""Tables of `imbalance` and `forecast`."""

from leeward._quantities import NONE, duration_text, percent_text
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.report.section import Section, number, rest, stamp, threshold, utilization, within
from leeward.telemetry.units import UNIT_PPM


def unevenness(analysis: Analysis) -> Section:
    """Cv of cross-sections, in intervals and over longer times."""
    uneven = analysis.imbalance
    longer = {
        (row["cross_section"], row["direction"], row["average_ms"]): row for row in uneven.longer.to_pylist()
    }
    lengths = sorted(
        {row["average_ms"] for row in uneven.longer.to_pylist()} - {0, analysis.extent.interval_ms}
    )
    averages = [*lengths, 0]
    doubtful = sum(row["doubtful"] for row in uneven.unevenness.to_pylist())
    more = [f"{doubtful:,} link intervals above {threshold(UNIT_PPM)} are left out"] if doubtful else []
    return Section(
        "How uneven is the load?",
        (
            *("CROSS-SECTION", "DIRECTION", "INTERVALS", "CV P50", "CV P95", "CV > 1", "P95 LINK HOT"),
            *(
                f"CV OF {duration_text(length / 1000).upper()}" if length else "CV OF ALL"
                for length in averages
            ),
        ),
        "<<" + (5 + len(averages)) * ">",
        [
            (
                *(row["cross_section"], row["direction"], f"{row['intervals']:,}"),
                *(number(row["cv_p50"]), number(row["cv_p95"])),
                *(percent_text(row["above_one"]), percent_text(row["busy"])),
                *(
                    number(longer.get((row["cross_section"], row["direction"], length), {}).get("cv_p50"))
                    for length in averages
                ),
            )
            for row in uneven.unevenness.to_pylist()
        ],
        more,
        words=(
            (
                "Cv",
                (
                    f"standard deviation over mean of links in {duration_text(uneven.interval_ms / 1000)}"
                    " (Sinbad, figure 5)"
                ),
            ),
            ("Cv of 1 h, ...", "the median when utilization is averaged over that time"),
            ("p95 link hot", "share of intervals in which the 95th percentile over links is hot"),
        ),
    )


def stability(analysis: Analysis) -> Section | None:
    """Stability of links; None if samples are too far apart."""
    rows = analysis.imbalance.stability.to_pylist()
    if not rows:
        return None
    return Section(
        "How steady are links?",
        ("WITHIN", "LINKS", "SAMPLES", "ALL LINKS", "LEAST PREDICTABLE", "WHICH"),
        ">>>>><",
        [
            (
                *(duration_text(row["horizon_ms"] / 1000), f"{row['links']:,}", f"{row['pairs']:,}"),
                *(
                    percent_text(row["all"]),
                    percent_text(row["worst"]),
                    row["worst_link"] or NONE,
                ),
            )
            for row in rows
        ],
        words=(
            (
                "all links, least predictable",
                (
                    f"chance that the next mean is within {analysis.settings.stable_percent} % of the last"
                    " sample (Sinbad, 4.3)"
                ),
            ),
        ),
    )


def scores(analysis: Analysis) -> Section | None:
    """Scores of forecasts on later intervals; None without enough of them."""
    ahead = analysis.forecast
    if not ahead.scores:
        return None
    title = f"Will a hot link still be hot in {duration_text(ahead.ahead_ms / 1000)}?"
    note = (
        f"learnt from {ahead.learnt:,} hot intervals, {percent_text(ahead.base_rate)} of which stayed hot"
        f"; scored on {ahead.scored:,} later ones; forecasts are by {ahead.used}"
    )
    return Section(
        title,
        ("PREDICTOR", "BRIER", "SKILL", "OVER BASE RATE", "PRECISION", "RECALL"),
        "<>>>>>",
        [
            (
                *(score.predictor, f"{score.brier:.4f}", within(score.skill), within(score.over_base)),
                *(percent_text(score.precision), percent_text(score.recall)),
            )
            for score in ahead.scores
        ],
        [note],
        words=(
            (
                "persistence, base rate",
                "every hot link stays hot; hot links stay hot as often as in the past",
            ),
            ("hazard", "chance by duration, excess above the threshold and time of day"),
            ("Brier", "mean squared error of the chance; skill: 1 - Brier / persistence's"),
            ("in brackets", "95 % confidence interval; of skills by bootstrap over links"),
        ),
    )


def now(analysis: Analysis, top: int) -> Section | None:
    """Links that are hot at the end, and their chance to stay hot; None without such links."""
    ahead = analysis.forecast
    rows = ahead.now.to_pylist()
    few = (
        f"too few hot intervals for a forecast: {ahead.learnt:,} to learn from and {ahead.scored:,} to score"
    )
    if not rows:
        return None
    return Section(
        "What is hot at the end?",
        ("LINK", "SINCE", "UTILIZATION", f"HOT IN {duration_text(ahead.ahead_ms / 1000).upper()}", "AS OF"),
        "<<>>>",
        [
            (
                *(row["name"], stamp(row["since_ms"]), utilization(row["ppm"])),
                *(percent_text(row["chance"]), f"{row['like_it']:,}"),
            )
            for row in rows[:top]
        ],
        [*rest(len(rows) - top, "links"), *([] if ahead.scores else [few])],
        words=(("as of", "number of past hot intervals from which the chance is computed"),),
    )
