"""One self-contained HTML page about hotspots: the tables of the terminal, their words, and pictures."""

from html import escape
from os import PathLike

from leeward.files import whole_file
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.report.rows import heading, sections
from leeward.hotspots.report.section import Section, lasting
from leeward.report.page import CSS

ROWS = 100
"""Of a table that may have very many."""
_LEFT = "".join(
    f".left{at} td:nth-child({at}), .left{at} th:nth-child({at}) {{ text-align: left; }}\n"
    for at in range(1, 13)
)
_WIDE = ".wide { white-space: normal; min-width: 24rem; }\n"


def write_page(path: str | PathLike[str], made: Analysis) -> None:
    """Writes the page, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(page(made), encoding="utf-8")


def page(made: Analysis) -> str:
    """The page as text. It loads nothing from anywhere."""
    figures = "".join(
        f"<figure><h2>{escape(title)}</h2>{svg}<figcaption>{escape(caption)}</figcaption></figure>\n"
        for title, svg, caption in _drawn(made)
    )
    tables = "".join(_table(section) for section in sections(made, ROWS))
    lead = "<br>".join(escape(line) for line in heading(made))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Hotspots</title><style>{CSS}{_LEFT}{_WIDE}</style></head><body>
<h1>Hotspots</h1>
<p class="lead">{lead}</p>
<div class="pictures">{figures}</div>
{tables}</body></html>
"""


def _drawn(made: Analysis) -> list[tuple[str, str, str]]:
    from leeward.hotspots.report import pictures

    found = []
    racks = sum(1 for _ in set(made.heat["rack"].to_pylist()))
    if racks:
        length = lasting(made.heat["length_ms"][0].as_py())
        cut = f" The {pictures.RACKS} hottest of {racks:,} racks." if racks > pictures.RACKS else ""
        found.append(
            (
                "Racks over time",
                pictures.heat(made),
                f"The most that a rack's link had in {length}, either way; grey: not seen.{cut}",
            )
        )
    found.append(
        (
            "How busy links are",
            pictures.utilization(made),
            "What is right of the mark is hot. The vertical axis is logarithmic.",
        )
    )
    if made.durations.num_rows:
        found.append(
            (
                "How long they stay hot",
                pictures.durations(made),
                "Left of the first line: migrate; between the two: place; right of the second: provision.",
            )
        )
    if made.imbalance.cv.num_rows:
        found.append(
            (
                "How uneven links are",
                pictures.unevenness(made),
                f"Standard deviation over mean in each interval of {lasting(made.imbalance.interval_ms)}.",
            )
        )
    if made.causes.tasks is not None:
        found.append(
            (
                "Bandwidth per processor of jobs",
                pictures.jobs(made),
                "How much more bandwidth than the median job some jobs have for each processor.",
            )
        )
        found.append(
            (
                "Where network-intensive tasks are",
                pictures.crowding(made),
                "A point is a rack.",
            )
        )
    return found


def _table(section: Section) -> str:
    left = " ".join(f"left{at}" for at, side in enumerate(section.sides, 1) if side == "<")
    head = "".join(f"<th>{escape(header)}</th>" for header in section.headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in section.rows)
    more = "".join(f"<p>{escape(line)}</p>" for line in section.more)
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in section.words)
    return f"""<h2>{escape(section.title)}</h2>
<div class="table"><table class="{left}"><thead><tr>{head}</tr></thead><tbody>
{body}</tbody></table></div>{more}
{f"<dl>{words}</dl>" if words else ""}
"""


def _cell(text: str) -> str:
    return f'<td class="wide">{escape(text)}</td>' if len(text) > 48 else f"<td>{escape(text)}</td>"
