"""One self-contained HTML page about a comparison: scenario, table with its words, pictures."""

from collections.abc import Sequence
from os import PathLike

from leeward._native import Cluster, Run, Scenario
from leeward._quantities import duration_text
from leeward._texts import oversubscription_text, rates_text, speed_text
from leeward.placement import policies
from leeward.report import document
from leeward.report.document import Html, Picture
from leeward.report.rows import against, comparison_rows, glossary

SUBJECTS = {
    "replicas": "where copies of blocks go",
    "cell": "where tasks go",
    "apps": "where tasks go",
    "coflows": "how coflows share links",
}
"""Decisions of the policies of each kind of run, in words."""
OWN_POLICY = "a policy that is not part of Leeward"
"""Meaning of the name of a policy of the user."""
POLICIES = {"replicas": "replicas", "cell": "tasks", "apps": "tasks", "coflows": "coflows"}
"""Kind of the policies of each kind of run: policies of different kinds may share a name."""


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
    warmup_note = (
        f"; the first {duration_text(scenario.warmup_s)} are not counted" if scenario.warmup_s else ""
    )
    length = duration_text(scenario.horizon_s)
    lead = f"{length}, simulated under each policy with seed {runs[0].seed}{warmup_note}."
    arrivals = document.listing(runs[0].provenance)
    cells = ([row.quantity, *row.cells] for row in rows)
    return document.document(
        f"{scenario.name}: {' against '.join(names)}",
        f"{scenario.name}: {SUBJECTS[scenario.kind]}",
        [lead, "Every policy saw the same arrivals."],
        [
            document.section("What was simulated", document.paragraph(facts(scenario.cluster)), arrivals),
            document.section("The policies", policy_words(scenario.kind, names)),
            document.section("The comparison", document.table(["", *names], cells)),
            document.section("The words", document.words(glossary(rows, names[0]))),
            document.pictures(page_pictures(runs)),
        ],
    )


def page_pictures(runs: Sequence[Run]) -> list[Picture]:
    """The pictures."""
    from leeward.report import pictures

    baseline = runs[0].policy
    slow = (
        "Share of full blocks that take longer than a time: lower and further left is better. Both axes are"
        " logarithmic. A steep step consists of blocks that only the disk limited."
    )
    gain = (
        f"For each block its {against(baseline)}: right of 1 it was faster than under {baseline}, left of it"
        " slower."
    )
    balance = "Standard deviation over mean of the loads of all rack downlinks, for every interval."
    busy = "Intervals right of the mark are hot. The vertical axis is logarithmic."
    if runs[0].kind == "coflows":
        times = (
            "Share of coflows that take longer than a time, from their arrival to the end of their last flow:"
            " lower and further left is better. Both axes are logarithmic."
        )
        return [
            ("The slow coflows", pictures.coflow_times(runs), times),
            ("How busy rack downlinks get", pictures.hot_links(runs), busy),
        ][: 2 if len(runs[0].links()) else 1]
    if len(runs[0].apps()):
        times = (
            "Share of apps that take longer than a time, from their arrival on: lower and further left is"
            " better."
        )
        return [
            ("The slow apps", pictures.app_times(runs), times),
            ("How unevenly racks are loaded", pictures.imbalance(runs), balance),
            ("How busy rack downlinks get", pictures.hot_links(runs), busy),
        ][: 3 if len(runs[0].links()) else 1]
    if runs[0].kind == "cell":
        return [
            ("How unevenly racks are loaded", pictures.imbalance(runs), balance),
            ("How busy rack downlinks get", pictures.hot_links(runs), busy),
        ]
    result = [
        ("The slow writes", pictures.write_times(runs), slow),
        ("How unevenly racks are loaded", pictures.imbalance(runs), balance),
        ("How busy rack downlinks get", pictures.hot_links(runs), busy),
    ]
    if len(runs) > 1:
        result.insert(
            1, (f"Each full block, compared with the same block under {baseline}", pictures.gains(runs), gain)
        )
    return result


def facts(cluster: Cluster) -> str:
    """A cluster in a sentence."""
    description = cluster.describe()
    parts = [f"{cluster.name}: {description['hosts']:,} hosts in {description['racks']:,} racks"]
    if description["pods"]:
        parts[0] += f" and {description['pods']:,} pods"
    for links in description["links"]:
        over = oversubscription_text(links)
        part = f"{links['kind'].replace('_', ' ')} {rates_text(links)}"
        parts.append(f"{part} (oversubscription {over})" if over else part)
    for device in description["devices"]:
        reads, writes = speed_text(device, "read"), speed_text(device, "write")
        parts.append(f"{device['count']:,} x {device['name']} that reads {reads} and writes {writes}")
    return "; ".join(parts) + "."


def policy_words(kind: str, names: Sequence[str]) -> Html:
    """The summary and the source of each policy.

    Args:
        kind: Kind of the runs.
        names: Names of policies, with their settings.
    """
    policy_of = {(policy["kind"], policy["name"]): policy for policy in policies()}
    found = {name: policy_of.get((POLICIES[kind], name.partition(":")[0])) for name in names}
    meanings = [(name, policy["summary"] if policy else OWN_POLICY) for name, policy in found.items()]
    return document.words(meanings, {name: policy["source"] for name, policy in found.items() if policy})
