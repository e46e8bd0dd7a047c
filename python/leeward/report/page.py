"""One self-contained HTML page about a comparison: scenario, table with its words, pictures."""

from collections.abc import Sequence
from os import PathLike

from leeward._native import Cluster, Run, Scenario, policies
from leeward._quantities import duration_text
from leeward._texts import oversubscription_text, rates_text, speed_text
from leeward.report import document
from leeward.report.document import Html, Picture
from leeward.report.rows import against, comparison_rows, glossary

WHAT = {"replicas": "copies of blocks", "cell": "tasks", "apps": "tasks"}
"""Objects that runs of a kind place, in words."""
POLICIES = {"replicas": "replicas", "cell": "tasks", "apps": "tasks"}
"""Kind of the policies of each kind of run: a name alone may stand for a policy of each kind."""


def write_page(path: str | PathLike[str], scenario: Scenario, runs: Sequence[Run]) -> None:
    """Writes the page; the other runs are compared with the first.

    Args:
        path: Path, written completely or not at all.
        scenario: The scenario.
        runs: Runs under one seed, one for each policy.
    """
    document.write(path, page(scenario, runs))


def page(scenario: Scenario, runs: Sequence[Run]) -> str:
    """The page as text."""
    names = [run.policy for run in runs]
    rows = comparison_rows(runs)
    counted = f"; the first {duration_text(scenario.warmup_s)} are not counted" if scenario.warmup_s else ""
    simulated = (
        f"{duration_text(scenario.horizon_s)}, simulated under each policy with seed {runs[0].seed}{counted}."
    )
    arrivals = document.listing(runs[0].provenance)
    cells = ([row.quantity, *row.cells] for row in rows)
    return document.document(
        f"{scenario.name}: {' against '.join(names)}",
        f"{scenario.name}: where {WHAT[scenario.kind]} go",
        [simulated, "Every policy saw the same arrivals."],
        [
            document.section("What was simulated", document.paragraph(facts(scenario.cluster)), arrivals),
            document.section("The policies", policy_words(scenario.kind, names)),
            document.section("The comparison", document.table(["", *names], cells)),
            document.section("The words", document.words(glossary(rows, names[0]))),
            document.pictures(drawn(runs)),
        ],
    )


def drawn(runs: Sequence[Run]) -> list[Picture]:
    """The pictures."""
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
    """A cluster in a sentence."""
    told = cluster.describe()
    parts = [f"{cluster.name}: {told['hosts']:,} hosts in {told['racks']:,} racks"]
    if told["pods"]:
        parts[0] += f" and {told['pods']:,} pods"
    for links in told["links"]:
        over = oversubscription_text(links)
        part = f"{links['kind'].replace('_', ' ')} {rates_text(links)}"
        parts.append(f"{part} (oversubscription {over})" if over else part)
    for device in told["devices"]:
        reads, writes = speed_text(device, "read"), speed_text(device, "write")
        parts.append(f"{device['count']:,} x {device['name']} that reads {reads} and writes {writes}")
    return "; ".join(parts) + "."


def policy_words(kind: str, names: Sequence[str]) -> Html:
    """The summary and the source of each policy.

    Args:
        kind: Kind of the runs.
        names: Names of policies, with their settings.
    """
    registered = {(policy["kind"], policy["name"]): policy for policy in policies()}
    of = {name: registered[POLICIES[kind], name.partition(":")[0]] for name in names}
    sources = {name: policy["source"] for name, policy in of.items()}
    return document.words([(name, of[name]["summary"]) for name in names], sources)
