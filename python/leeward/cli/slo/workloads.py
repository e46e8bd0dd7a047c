"""Files of workloads and tables of bounds, which several commands share."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import percent_text, time_text, work_rate_text, work_text
from leeward.cli.cluster import read
from leeward.cli.notes import print_note
from leeward.cli.options import hint_schema
from leeward.cli.output import print_table
from leeward.cli.progress import slow_notice

if TYPE_CHECKING:
    from leeward.slo import Workloads

WorkloadsArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Workloads and their SLOs, YAML or JSON.", show_default=False)
]
_MOST_NAMES = 3
"""Greatest number of workloads or files that a note names."""
ClusterOption = Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)]


def load_workloads(file: str, cluster: str) -> "Workloads":
    """Reads a file of workloads for a command."""
    from leeward.slo import load

    network = read(cluster)
    with hint_schema("slo", file), slow_notice(f"reading {file} and its traces"):
        return load(file, network)


StagesOption = Annotated[
    bool, typer.Option("--stages", help="Print the queues, limits and bounds of each stage too.")
]


def print_guarantees(record: dict[str, Any], stages: bool) -> None:
    """Prints workloads with their bounds.

    Args:
        record: Workloads with their bounds, as JSON.
        stages: True to print the stages of each workload too.
    """
    print_table(
        ("WORKLOAD", "CLIENT", "SERVER", "SLO", "BOUND", "BY", "MET"),
        "<<<>><<",
        [
            (
                one["workload"],
                one["client"],
                one["server"] or "-",
                objective_text(one),
                time_text(one["bound_s"]),
                one["by"] or "-",
                {True: "yes", False: "no", None: "-"}[one["met"]],
            )
            for one in record["workloads"]
        ],
    )
    if not stages:
        return
    print()
    print_table(
        ("WORKLOAD", "STAGE", "QUEUES", "PRIORITY", "MEAN", "LIMITS", "UNLOADED", "BOUND"),
        "<<<>>>>>",
        [
            (
                one["workload"],
                stage["stage"],
                ", ".join(stage["queues"]),
                "last" if stage["priority"] is None else str(stage["priority"]),
                work_rate_text(stage["mean_rate"], stage["unit"]),
                _limits(stage),
                time_text(stage["unloaded_s"]) if stage["unloaded_s"] else "-",
                time_text(stage["bound_s"]),
            )
            for one in record["workloads"]
            for stage in one["stages"]
        ],
    )


def objective_text(one: dict[str, Any]) -> str:
    """An SLO in words."""
    if one["slo"] is None:
        return "best effort"
    target = f"{percent_text(one['slo']['percentile'] / 100, None)} in {time_text(one['slo']['latency_s'])}"
    return f"best effort, asked {target}" if one["best_effort"] else target


def _limits(stage: dict[str, Any]) -> str:
    buckets, unit = stage["limits"], stage["unit"]
    last = buckets[-1]
    text = f"{work_rate_text(last['rate'], unit)} + {work_text(last['burst'], unit)}"
    return text if len(buckets) == 1 else f"{text}, {len(buckets)} buckets"


def print_settings(record: dict[str, Any]) -> None:
    """Prints on stderr the settings under which bounds hold."""
    print_note()
    margin = percent_text(record["margin"], None)
    print_note(f"margin: curves are {margin} above those of the files; models are unchanged")
    arriving = record.get("margin_of_arriving", record["margin"])
    if arriving != record["margin"]:
        print_note(f"margin: {percent_text(arriving, None)} for arriving workloads")
    where = {"everywhere": "all links of a path", "hosts": "only the links of hosts, as set in the file"}
    print_note(f"congestion: {where[record['congestion']]}")
    latencies = [queue["latency_s"] for queue in record["queues"] if queue["latency_s"]]
    if latencies:
        most = time_text(max(latencies))
        print_note(f"latency: {len(latencies)} of {len(record['queues'])} queues have one, at most {most}")
    order = {
        "by-slo": "the tightest SLO first",
        "file": "as in the file",
        "search": "by PriorityMeister's search",
    }
    text = order.get(record["priorities"], f"by {record['priorities']}")
    if record["merged_ranks"]:
        text += f"; {record['merged_ranks']} ranks merged into {record['levels']} levels on networks"
    print_note(f"priorities: {text}")
    print_notes(record["notes"])


def print_notes(notes: Iterable[str]) -> None:
    """Prints notes on stderr; equal notes about several workloads or files share a line, with their names."""
    alike: dict[str, list[str]] = {}
    for note in notes:
        subject, colon, text = note.partition(": ")
        alike.setdefault(f"{colon}{text}", []).append(subject)
    for text, subjects in alike.items():
        more = len(subjects) - _MOST_NAMES
        rest = f" and {more:,} more" if more > 0 else ""
        print_note(f"note: {', '.join(subjects[:_MOST_NAMES])}{rest}{text}", doubt=True)


def unmet_objectives(record: dict[str, Any]) -> list[str]:
    """Errors about unmet objectives."""
    lines = []
    for one in record["workloads"]:
        if one["met"] is False and one["why"]:
            lines.append(f"no bound: {one['why']}")
        elif one["met"] is False:
            target = time_text(one["slo"]["latency_s"])
            lines.append(
                f"{one['workload']}: a bound of {time_text(one['bound_s'])}, above its SLO of {target}"
            )
    return lines
