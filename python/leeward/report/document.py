"""One self-contained HTML page, made of a few kinds of parts.

Parts escape their texts, so that callers pass plain text. Pictures are SVG.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from os import PathLike
from typing import NewType

from leeward._files import atomic_file

Html = NewType("Html", str)
"""A part of a page, its texts escaped."""
Picture = tuple[str, str, str]
"""Title, SVG and caption."""
_WIDE = 48
"""Characters of a cell above which its text wraps."""
_CSS = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p, li, dl { max-width: 46rem; } .lead { margin-top: 0; opacity: 0.8; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0 0.25rem 1rem; text-align: right; border-bottom: 1px solid #8884;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: pre; padding-left: 0; }
th.text, td.text { text-align: left; } td.wide { white-space: normal; min-width: 24rem; }
dt { font-weight: 600; } dd { margin: 0 0 0.5rem 0; } dd small { opacity: 0.8; }
figure { margin: 0; min-width: 0; } figcaption { font-size: 0.9rem; max-width: 36rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: 1rem 2rem; }
@media (max-width: 40rem) {
  table { font-size: 0.85rem; } th, td { padding-left: 0.6rem; }
  th:first-child, td:first-child { white-space: pre-wrap; min-width: 7.5rem; }
}
.pictures svg { background: #fff; width: 100%; height: auto; border-radius: 4px; }
"""


def write(path: str | PathLike[str], text: str) -> None:
    """Writes a page, completely or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def document(title: str, heading: str, lead: Sequence[str], parts: Iterable[Html]) -> str:
    """A page as text.

    Args:
        title: Title of the window.
        heading: Heading at the top of the page.
        lead: Lines below the heading.
        parts: Parts below these lines, in order.
    """
    lines = "<br>".join(escape(line) for line in lead)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_CSS}</style></head><body>
<h1>{escape(heading)}</h1>
<p class="lead">{lines}</p>
{"".join(parts)}</body></html>
"""


def section(title: str, *parts: Html) -> Html:
    """Parts under a heading."""
    return Html(f"<h2>{escape(title)}</h2>\n{''.join(parts)}")


def details(title: str, *parts: Html) -> Html:
    """Parts that show when their title is clicked."""
    return Html(f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>\n")


def paragraph(text: str) -> Html:
    """A text."""
    return Html(f"<p>{escape(text)}</p>\n")


def listing(lines: Iterable[str]) -> Html:
    """Lines with a dot before each."""
    return Html(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>\n")


def words(meanings: Iterable[tuple[str, str]], sources: Mapping[str, str] | None = None) -> Html:
    """Words and their meanings.

    Args:
        meanings: Meaning of each word; without words, the part is empty.
        sources: Sources of some of the words.
    """
    entries = []
    for word, meaning in meanings:
        source = (sources or {}).get(word)
        small = f" <small>({escape(source)})</small>" if source else ""
        entries.append(f"<dt>{escape(word)}</dt><dd>{escape(meaning)}{small}</dd>")
    return Html(f"<dl>{''.join(entries)}</dl>\n" if entries else "")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], sides: str | None = None) -> Html:
    """A table.

    Args:
        headers: Headers of the columns.
        rows: A cell for each column.
        sides: For each column `<` or `>`, its alignment; by default the first one to the left and all others
            to the right.
    """
    alignment = sides or "<" + ">" * (len(headers) - 1)
    head = "".join(
        f"<th{_class(side, '')}>{escape(one)}</th>" for side, one in zip(alignment, headers, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_class(side, one)}>{escape(one)}</td>" for side, one in zip(alignment, row, strict=True)
        )
        + "</tr>\n"
        for row in rows
    )
    return Html(
        f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n'
    )


def _class(side: str, text: str) -> str:
    names = [name for name, is_so in (("text", side == "<"), ("wide", len(text) > _WIDE)) if is_so]
    return f' class="{" ".join(names)}"' if names else ""


def pictures(entries: Iterable[Picture]) -> Html:
    """Pictures side by side, as many as fit."""
    figures = "".join(
        f"<figure><h2>{escape(title)}</h2>{svg}<figcaption>{escape(caption)}</figcaption></figure>\n"
        for title, svg, caption in entries
    )
    return Html(f'<div class="pictures">{figures}</div>\n')
