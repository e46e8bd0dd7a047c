"""One self-contained HTML page about hotspots: the tables of the terminal, their words, and pictures."""

from os import PathLike

from leeward._quantities import duration_text
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.report.rows import answer, heading, sections
from leeward.hotspots.report.section import Section
from leeward.report import document
from leeward.report.document import Html, Picture

ROWS = 100
"""Greatest number of rows of a long table."""


def write_page(path: str | PathLike[str], analysis: Analysis) -> None:
    """Writes the page, completely or not at all."""
    document.write(path, page(analysis))


def page(analysis: Analysis) -> str:
    """The page as text. It loads nothing from outside."""
    pictures = document.pictures(page_pictures(analysis))
    parts = [*map(_section, answer(analysis, ROWS)), pictures, *map(_section, sections(analysis, ROWS))]
    return document.document("Hotspots", "Hotspots", heading(analysis), parts)


def page_pictures(analysis: Analysis) -> list[Picture]:
    """The pictures, with titles and captions."""
    from leeward.hotspots.report import pictures

    result = []
    racks = sum(1 for _ in set(analysis.heat["rack"].to_pylist()))
    if racks:
        length = duration_text(analysis.heat["length_ms"][0].as_py() / 1000)
        cut = f" The {pictures.RACKS} hottest of {racks:,} racks." if racks > pictures.RACKS else ""
        result.append(
            (
                "Racks over time",
                pictures.heat(analysis),
                f"Maximum utilization of a rack's link in {length}, either direction; grey: not seen.{cut}",
            )
        )
    result.append(
        (
            "How busy links are",
            pictures.utilization(analysis),
            "Intervals right of the mark are hot. The vertical axis is logarithmic.",
        )
    )
    if analysis.durations.num_rows:
        result.append(
            (
                "How long they stay hot",
                pictures.durations(analysis),
                "Left of the first line: migrate; between the two: place; right of the second: provision.",
            )
        )
    if analysis.imbalance.cv.num_rows:
        interval = duration_text(analysis.imbalance.interval_ms / 1000)
        result.append(
            (
                "How uneven links are",
                pictures.unevenness(analysis),
                f"Standard deviation over mean in each interval of {interval}.",
            )
        )
    if analysis.causes.tasks is not None:
        result.append(
            (
                "Bandwidth per processor of jobs",
                pictures.jobs(analysis),
                "Bandwidth of jobs for each processor, over the median job's.",
            )
        )
        result.append(
            (
                "Where network-intensive tasks are",
                pictures.crowding(analysis),
                "A point is a rack.",
            )
        )
    return result


def _section(section: Section) -> Html:
    table = document.table(section.headers, section.rows, section.sides)
    notes = map(document.paragraph, section.more)
    return document.section(section.title, table, *notes, document.words(section.words))
