"""One self-contained HTML page of a summary."""

from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING

import numpy

from leeward._quantities import duration_text
from leeward.client.summary_types import Summary
from leeward.report import document
from leeward.report.document import Html, Picture
from leeward.summary import rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_page(path: str | PathLike[str], summary: Summary, cluster: str) -> None:
    """Writes the page, completely or not at all."""
    document.write(path, page(summary, cluster))


def page(summary: Summary, cluster: str) -> str:
    """The page as text. It loads nothing from outside.

    Args:
        summary: The summary.
        cluster: Name of the cluster, for the heading.
    """
    start, end = datetime.fromisoformat(summary["from"]), datetime.fromisoformat(summary["to"])
    lead = [
        f"{_text(start)} to {_text(end)} ({duration_text((end - start).total_seconds())})",
        rows.effect_sentence(summary),
        rows.move_sentence(summary),
    ]
    return document.document("Was it worth it?", f"Leeward on {cluster}", lead, _parts(summary))


def _parts(summary: Summary) -> list[Html]:
    headers = [name.capitalize() for name in rows.KIND_HEADERS]
    return [
        document.section(
            "Hot links", _table([name.capitalize() for name in rows.HOT_HEADERS], rows.hot_rows(summary))
        ),
        document.pictures(_pictures(summary)),
        document.section("Decisions", _table(headers, rows.kind_rows(summary))),
        document.section(
            "The decisions that mattered most",
            document.paragraph(
                "Decisions in which the choices of both policies differ most. A plus means that Leeward's "
                "choice is better, whether it was made or not."
            ),
            _table(
                [name.capitalize() for name in rows.MATTERED_HEADERS],
                rows.mattered_rows(summary),
                rows.MATTERED_SIDES,
            ),
        ),
        document.section("Words", document.words(rows.WORDS)),
    ]


def _table(headers: list[str], cells: list[tuple[str, ...]], sides: str | None = None) -> Html:
    return document.table(headers, cells, sides) if cells else document.paragraph("None.")


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M %Z")


def _pictures(summary: Summary) -> list[Picture]:
    from leeward.report.pictures import figure

    steps = summary["steps"]
    if not steps:
        return []
    times = numpy.array([datetime.fromisoformat(step["ends"]).replace(tzinfo=None) for step in steps])

    def hot(axes: "Axes") -> None:
        curves = (
            ([step["without_h"] for step in steps], "without Leeward", "#6f6f6f", "--"),
            ([step["hot_h"] for step in steps], "as seen", "#111111", "-"),
            ([step["with_h"] for step in steps], "with Leeward", "#c4411d", "-"),
        )
        for hours, label, colour, line in curves:
            axes.step(times, hours, label=label, color=colour, linestyle=line)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("link-hours")
        axes.legend()
        axes.tick_params("x", rotation=30)

    def decided(axes: "Axes") -> None:
        axes.step(times, [step["decided"] for step in steps], color="#0b62a4")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("decisions")
        axes.tick_params("x", rotation=30)

    length = duration_text(summary["step_s"])
    return [
        ("Time that links were hot", figure(hot), f"Link-hours above the threshold, in each {length}."),
        ("Decisions", figure(decided), f"Decisions of all kinds, in each {length}."),
    ]
