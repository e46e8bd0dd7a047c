"""One self-contained HTML page about the impact of hot links: numbers, curves, words, rows left out."""

from collections.abc import Iterator, Sequence
from os import PathLike

from leeward.impact import pictures, rows
from leeward.impact.analysis import Impact
from leeward.impact.curves import Curve
from leeward.report import document
from leeward.report.document import Html, Picture


def write_page(path: str | PathLike[str], impact: Impact) -> None:
    """Writes the page, completely or not at all."""
    document.write(path, page(impact))


def page(impact: Impact) -> str:
    """The page as text."""
    beside = "each with the utilization of its busiest link"
    warnings = [document.section("Warnings", document.listing(impact.warnings))]
    curves = [
        document.details(_title(curve), _table(*rows.buckets(impact, curve))) for curve in impact.curves
    ]
    headers, cells = rows.summary(impact)
    summary = _table(headers, cells, rows.sides(headers, impact.by))
    return document.document(
        "Impact of utilization on latency",
        "Cost of hot links",
        [
            f"{impact.latencies:,} of {impact.rows:,} latencies, {beside}.",
            "Growth with utilization does not prove that utilization is its cause.",
        ],
        [
            *(warnings if impact.warnings else []),
            document.section("Load-tolerance and hotspot-inflation", summary),
            document.pictures(_pictures(impact)),
            document.section("Bucket by bucket", *curves),
            document.section("The words", document.words(rows.glossary(impact))),
            document.section(
                "What was left out", document.listing([*rows.discard_lines(impact)] or ["nothing"])
            ),
        ],
    )


def _pictures(result: Impact) -> Iterator[Picture]:
    """Pictures of p95, with a few curves in each. Time on the network has pictures of its own."""
    band = " The band is the confidence interval." if result.settings.resamples else ""
    caption = f"The 95th percentile, divided by that of the lowest bucket.{band} A gap has too few latencies."
    for part, title in (("total", "Inflation of latency"), ("network", "Inflation of time on the network")):
        drawable = [curve for curve in result.curves if curve.part == part and len(curve.judged) > 1]
        for first in range(0, len(drawable), pictures.TOGETHER):
            together = drawable[first : first + pictures.TOGETHER]
            yield title, pictures.inflation(together, result.settings), caption


def _title(curve: Curve) -> str:
    return curve.name if curve.part == "total" else f"{curve.name}, {curve.part}"


def _table(headers: Sequence[str], cells: Sequence[Sequence[str]], sides: str | None = None) -> Html:
    return document.table([header.lower() for header in headers], cells, sides)
