"""One self-contained HTML page about a comparison: what was run, the table, the pictures."""

from collections.abc import Sequence
from html import escape
from os import PathLike

from leeward._native import Run, Scenario
from leeward.cli.files import whole_file
from leeward.report.rows import Row, comparison_rows

CSS = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p, li { max-width: 46rem; } .lead { margin-top: 0; opacity: 0.8; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 1rem 0.25rem 0; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; white-space: pre; }
figure { margin: 0; } figcaption { font-size: 0.9rem; max-width: 30rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 2rem; }
.pictures svg { background: #fff; width: 100%; height: auto; border-radius: 4px; }
"""


def write_page(path: str | PathLike[str], scenario: Scenario, runs: Sequence[Run]) -> None:
    """Writes the page; the first run is what the others are compared with.

    Args:
        path: Where; whole or not at all.
        scenario: What was run.
        runs: Under one seed, one for each policy.
    """
    with whole_file(path) as temporary:
        temporary.write_text(page(scenario, runs), encoding="utf-8")


def page(scenario: Scenario, runs: Sequence[Run]) -> str:
    """The page as text."""
    from leeward.report import pictures

    names = [run.policy for run in runs]
    cluster = scenario.cluster
    drawn = [
        (
            "Write times of full blocks",
            pictures.write_times(runs),
            "Further left is faster. A step marks blocks that only the disk held back.",
        ),
        (
            "How unevenly racks are loaded",
            pictures.imbalance(runs),
            "Standard deviation over mean of the loads of all rack downlinks, for every interval.",
        ),
        (
            "How busy rack downlinks get",
            pictures.hot_links(runs),
            "The part of a line right of the mark is what operators call hotspots.",
        ),
    ]
    if len(runs) > 1:
        gain = (
            f"Each full block against the same under {names[0]}",
            pictures.gains(runs),
            f"The same full blocks of the same files. Left of 1 are those that {names[0]} wrote faster.",
        )
        drawn.insert(1, gain)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr><td>{escape(row.quantity)}</td>{cells(row)}</tr>\n" for row in comparison_rows(runs))
    figures = "".join(
        f"<figure><h2>{escape(title)}</h2>{svg}<figcaption>{escape(caption)}</figcaption></figure>\n"
        for title, svg, caption in drawn
    )
    arrivals = "".join(f"<li>{escape(line)}</li>" for line in runs[0].provenance)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(scenario.name)}: {escape(" against ".join(names))}</title><style>{CSS}</style></head><body>
<h1>{escape(scenario.name)}: where copies of blocks go</h1>
<p class="lead">{scenario.horizon_s:,.0f} simulated seconds on {cluster.hosts:,} hosts
in {cluster.racks:,} racks, seed {runs[0].seed}; every policy saw the same arrivals.</p>
<ul>{arrivals}</ul>
<table><thead><tr><th></th>{head}</tr></thead><tbody>
{body}</tbody></table>
<div class="pictures">{figures}</div>
</body></html>
"""


def cells(row: Row) -> str:
    """The cells of a row of the table."""
    return "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
