"""One self-contained HTML page about a comparison: what was run, the table and its words, the pictures."""

from collections.abc import Sequence
from html import escape
from os import PathLike

from leeward._native import Cluster, Run, Scenario, policies
from leeward.files import whole_file
from leeward.report.rows import Row, against, comparison_rows, glossary
from leeward.simulation import duration
from leeward.texts import oversubscription, rates, speed

CSS = """
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


WHAT = {"replicas": "copies of blocks", "cell": "tasks", "apps": "tasks"}
"""What policies of a kind place, in words."""


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
    names = [run.policy for run in runs]
    rows = comparison_rows(runs)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr><td>{escape(row.quantity)}</td>{cells(row)}</tr>\n" for row in rows)
    words = "".join(
        f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in glossary(rows, names[0])
    )
    figures = "".join(
        f"<figure><h2>{escape(title)}</h2>{svg}<figcaption>{escape(caption)}</figcaption></figure>\n"
        for title, svg, caption in drawn(runs)
    )
    counted = f"; the first {duration(scenario.warmup_s)} are not counted" if scenario.warmup_s else ""
    arrivals = "".join(f"<li>{escape(line)}</li>" for line in runs[0].provenance)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(scenario.name)}: {escape(" against ".join(names))}</title><style>{CSS}</style></head><body>
<h1>{escape(scenario.name)}: where {WHAT[scenario.kind]} go</h1>
<p class="lead">{duration(scenario.horizon_s)}, simulated under each policy with seed {runs[0].seed}{counted}.
Every policy saw the same arrivals.</p>
<h2>What was simulated</h2>
<p>{escape(facts(scenario.cluster))}</p>
<ul>{arrivals}</ul>
<h2>The policies</h2>
<dl>{policy_words(names)}</dl>
<h2>The comparison</h2>
<div class="table"><table><thead><tr><th></th>{head}</tr></thead><tbody>
{body}</tbody></table></div>
<h2>The words</h2>
<dl>{words}</dl>
<div class="pictures">{figures}</div>
</body></html>
"""


def drawn(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """The pictures: title, SVG and caption of each."""
    from leeward.report import pictures

    baseline = runs[0].policy
    slow = (
        "How many full blocks take longer than a time: lower and further left is better. Both axes are"
        " logarithmic. A steep step is made by blocks that only the disk held back."
    )
    gain = (
        f"For each block its {against(baseline)}: right of 1 it was faster than under {baseline}, left of it"
        " slower."
    )
    uneven = "Standard deviation over mean of the loads of all rack downlinks, for every interval."
    busy = (
        "The part of a line right of the mark is what operators call hotspots. The vertical axis is"
        " logarithmic."
    )
    if len(runs[0].apps()):
        took = (
            "How many apps take longer than a time, from their arrival on: lower and further left is better."
        )
        return [
            ("The slow apps", pictures.app_times(runs), took),
            ("How unevenly racks are loaded", pictures.imbalance(runs), uneven),
            ("How busy rack downlinks get", pictures.hot_links(runs), busy),
        ][: 3 if len(runs[0].links()) else 1]
    if runs[0].kind == "cell":
        return [
            ("How unevenly racks are loaded", pictures.imbalance(runs), uneven),
            ("How busy rack downlinks get", pictures.hot_links(runs), busy),
        ]
    found = [
        ("The slow writes", pictures.write_times(runs), slow),
        ("How unevenly racks are loaded", pictures.imbalance(runs), uneven),
        ("How busy rack downlinks get", pictures.hot_links(runs), busy),
    ]
    if len(runs) > 1:
        found.insert(1, (f"Each full block against the same under {baseline}", pictures.gains(runs), gain))
    return found


def facts(cluster: Cluster) -> str:
    """What a cluster is, in a sentence."""
    told = cluster.describe()
    parts = [f"{cluster.name}: {told['hosts']:,} hosts in {told['racks']:,} racks"]
    if told["pods"]:
        parts[0] += f" and {told['pods']:,} pods"
    for links in told["links"]:
        over = oversubscription(links)
        part = f"{links['kind'].replace('_', ' ')} {rates(links)}"
        parts.append(f"{part} (oversubscription {over})" if over else part)
    for device in told["devices"]:
        reads, writes = speed(device, "read"), speed(device, "write")
        parts.append(f"{device['count']:,} x {device['name']} that reads {reads} and writes {writes}")
    return "; ".join(parts) + "."


def policy_words(names: Sequence[str]) -> str:
    """What each policy does, and where it is from."""
    known = {policy["name"]: policy for policy in policies()}
    told = []
    for name in names:
        policy = known[name.partition(":")[0]]
        told.append(
            f"<dt>{escape(name)}</dt><dd>{escape(policy['summary'])}"
            f" <small>({escape(policy['source'])})</small></dd>"
        )
    return "".join(told)


def cells(row: Row) -> str:
    """The cells of a row of the table."""
    return "".join(f"<td>{escape(cell)}</td>" for cell in row.cells)
