"""One self-contained HTML page about the impact of hot links: numbers, curves, words, what was left out."""

from collections.abc import Sequence
from html import escape
from os import PathLike

from leeward.files import whole_file
from leeward.impact import pictures, rows
from leeward.impact.analysis import Impact
from leeward.impact.curves import Curve
from leeward.report.page import CSS


def write_page(path: str | PathLike[str], made: Impact) -> None:
    """Writes the page, whole or not at all."""
    text = page(made)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def page(made: Impact) -> str:
    """The page as text."""
    warned = "".join(f"<li>{escape(warning)}</li>" for warning in made.warnings)
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(said)}</dd>" for word, said in rows.glossary(made))
    dropped = "".join(f"<li>{escape(line)}</li>" for line in rows.discarded(made)) or "<li>nothing</li>"
    details = "".join(
        f"<details><summary>{escape(_title(curve))}</summary>{_table(*rows.buckets(made, curve))}</details>\n"
        for curve in made.curves
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Impact of utilization on latency</title><style>{CSS}</style></head><body>
<h1>What hot links cost</h1>
<p class="lead">{made.latencies:,} of {made.rows:,} latencies, each beside the utilization of its busiest
link. What grows with utilization need not be caused by it.</p>
{f"<h2>Before you believe it</h2><ul>{warned}</ul>" if warned else ""}
<h2>Load-tolerance and hotspot-inflation</h2>
{_table(*rows.summary(made))}
<div class="pictures">{_figures(made)}</div>
<h2>Bucket by bucket</h2>
{details}
<h2>The words</h2>
<dl>{words}</dl>
<h2>What was left out</h2>
<ul>{dropped}</ul>
</body></html>
"""


def _figures(made: Impact) -> str:
    """Pictures of p95: of as many curves each as can be told apart, those of the network by themselves."""
    drawn = []
    for part, title in (("total", "Inflation of latency"), ("network", "Inflation of time on the network")):
        of = [curve for curve in made.curves if curve.part == part and len(curve.judged) > 1]
        for first in range(0, len(of), pictures.TOGETHER):
            drawn.append(_figure(title, of[first : first + pictures.TOGETHER], made))
    return "".join(drawn)


def _figure(title: str, curves: Sequence[Curve], made: Impact) -> str:
    svg = pictures.inflation(curves, made.settings)
    band = " The band is the interval." if made.settings.resamples else ""
    caption = f"The 95th percentile over that of the lowest bucket.{band} A gap has too few latencies."
    return f"<figure><h2>{title}</h2>{svg}<figcaption>{caption}</figcaption></figure>\n"


def _title(curve: Curve) -> str:
    return curve.name if curve.part == "total" else f"{curve.name}, {curve.part}"


def _table(headers: Sequence[str], of: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header.lower())}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in of)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'
