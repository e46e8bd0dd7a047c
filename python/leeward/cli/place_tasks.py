"""`leeward place tasks`: hosts for the tasks of an app or a job, with reasons."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from leeward._age import MAX_AGE
from leeward._quantities import bytes_text, percent_text, time_text
from leeward.cli.app_options import (
    ApartOption,
    CrossTrafficOption,
    ExcludeOption,
    MaxAgeOption,
    PolicyOption,
    SeedOption,
    TagOption,
    TelemetryOption,
)
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import LabelOption, name_flags, read_labels
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import slow_notice
from leeward.decisions import TaskDecision

EXAMPLES = """\b
Examples:
  leeward place tasks --cluster examples/clusters/tenant.yaml --app examples/apps/wordcount.yaml --explain
  leeward place tasks --cluster examples/clusters/tenant.yaml --app examples/apps/wordcount.yaml \\
      --policy choreo-exact -o json
  leeward place tasks --cluster examples/clusters/tenant.yaml --matrix examples/apps/stencil.csv --cpus 2
  leeward place tasks --cluster examples/clusters/racks.yaml --job examples/apps/indexer.yaml \\
      --telemetry examples/telemetry/racks.csv --policy utp --explain

An app is placed as a whole, according to the traffic between its tasks. The tasks of a job are placed one by
one, according to the traffic of each task into and out of its rack. The telemetry file is CSV with the
columns link,load_bps.
"""
MOST_CANDIDATES = 8
"""Greatest number of candidates of each task in an explanation."""
MOST_RANGES = 4
"""Greatest number of ranges of task names in a line."""


def tasks(
    cluster: Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)],
    app: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="App file: tasks and their traffic matrix.", show_default=False),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File of a job, whose tasks are placed one by one.", show_default=False
        ),
    ] = None,
    matrix: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Traffic matrix as CSV (a square table of bytes, without a header) or NumPy file (.npy),"
            " instead of the transfers of the app file. Without an app file, each row is a task.",
            show_default=False,
        ),
    ] = None,
    cpus: Annotated[
        str | None,
        typer.Option(metavar="N", help="Processors of each task of a --matrix without --app; by default 1."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Memory of each task of a --matrix without --app; by default none."
        ),
    ] = None,
    telemetry: TelemetryOption = None,
    cross_traffic: CrossTrafficOption = None,
    max_age: MaxAgeOption = MAX_AGE,
    exclude: ExcludeOption = None,
    tag: TagOption = None,
    label: LabelOption = None,
    apart: ApartOption = None,
    policy: PolicyOption = "leeward",
    seed: SeedOption = 1,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show the limit of each transfer, or the candidates of each task."),
    ] = False,
    output: FormatOption = Format.table,
) -> None:
    """Choose the hosts for the tasks of an app or a job."""
    from leeward.placement import place_tasks

    app_file = app or job
    if (app_file is None and matrix is None) or (app and job):
        raise typer.BadParameter(
            "expected --app, --job or --matrix, and not both --app and --job",
            param_hint="--app, --job, --matrix",
        )
    network = read(cluster)
    with (
        slow_notice("deciding"),
        name_flags(
            tags="--tag",
            labels="--label",
            max_age="--max-age",
            exclude="--exclude",
            matrix="--matrix",
            cpus="--cpus",
            memory="--memory",
            policy="--policy",
        ),
    ):
        decision = place_tasks(
            network,
            app_file,
            policy=policy,
            matrix=matrix,
            cpus=cpus,
            memory=memory,
            telemetry=telemetry,
            cross_traffic=cross_traffic,
            max_age=max_age,
            exclude=exclude or (),
            tags=tag or (),
            labels=read_labels(label),
            apart=None if apart is None else apart.value,
            together=job is None,
            seed=seed,
            explain=MOST_CANDIDATES if explain else 0,
        )
    if not print_data(output, decision, "tasks", COLUMNS["place tasks"]):
        rows = [(task["task"], task["host"] or "-") for task in decision["tasks"]]
        if any(task["host"] for task in decision["tasks"]):
            print_table(("TASK", "HOST"), "<<", rows)
        if not decision["refused"]:
            _print_completion(decision)
            _print_cost(decision)
        if explain:
            _print_transfers(decision)
            print_reasons(decision["why"])
    for refusal in _refusals(decision):
        print_error(refusal)
    if decision["refused"]:
        if "telemetry" in decision["refused"][0] and not telemetry:
            print_note("hint: --telemetry FILE gives the loads of links")
        raise typer.Exit(1)


def _refusals(decision: TaskDecision) -> list[str]:
    """Reasons of refusals; tasks of a job that are refused for the same reason share a line."""
    names = [task["task"] for task in decision["tasks"]]
    unplaced = [at for at, task in enumerate(decision["tasks"]) if not task["host"]]
    refusals = decision["refused"] or []
    if len(refusals) != len(unplaced):
        return list(dict.fromkeys(refusals))
    reasons: dict[str, list[int]] = {}
    for at, refusal in zip(unplaced, refusals, strict=True):
        reasons.setdefault(refusal.replace(f"task {names[at]} fits", "fits", 1), []).append(at)
    result = []
    for reason, group in reasons.items():
        if not reason.startswith("fits "):
            result.append(reason)
        elif len(group) == 1:
            result.append(f"task {names[group[0]]} {reason}")
        else:
            result.append(
                f"{_ranges(names, group)} ({len(group):,} tasks) {reason.replace('fits', 'fit', 1)}"
            )
    return result


def _ranges(names: list[str], positions: list[int]) -> str:
    """Names of tasks; consecutive tasks appear as a range, with the first and the last name."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and position == runs[-1][-1] + 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    words = [" to ".join(names[at] for at in dict.fromkeys((run[0], run[-1]))) for run in runs]
    return ", ".join(words[:MOST_RANGES] + (["and others"] if len(words) > MOST_RANGES else []))


def _print_completion(decision: TaskDecision) -> None:
    if not decision["transfers"]:
        return
    end_s = decision["completion_s"]
    text = "never end: a link carries nothing" if end_s is None else f"end after {time_text(end_s)}"
    of = " of this cost" if decision["goal"] == "cost" and decision["cost"] is not None else ""
    if decision["time_gap"] == 0 and end_s is not None:
        text += f", and no placement{of} has a shorter forecast"
    elif decision["time_gap"]:
        text += f"; at most {percent_text(decision['time_gap'])} less is possible" + (of and " at this cost")
    print_text(f"\ntransfers {text}")
    gain = decision["gain"]
    if gain is None or end_s is None:
        return
    random = f"random placements end after {time_text(gain['random_s'])}"
    if gain["measurements"] == "uniform":
        print_note(f"hint: {random}, so this app needs no measurements of the network")
    elif gain["measurements"] == "short":
        survey = time_text(gain["survey_s"])
        print_note(f"hint: {random}; to measure the network takes longer than this saves, {survey}")


def _print_cost(decision: TaskDecision) -> None:
    if decision["cost"] is None:
        return
    text = f"hosts cost {decision['cost']:.6g} per hour"
    of = " with this forecast" if decision["goal"] == "time" else ""
    if decision["cost_gap"] == 0:
        text += f", and no placement{of} costs less"
    elif decision["cost_gap"]:
        text += f"; at most {percent_text(decision['cost_gap'])} less is possible{of}"
    print_text(text)


def _print_transfers(decision: TaskDecision) -> None:
    if not decision["transfers"]:
        return
    has_phases = any(one["phase"] for one in decision["transfers"])
    print()
    print_table(
        ((*(("PHASE",) if has_phases else ()), "FROM", "TO", "BYTES", "LIMITED BY", "ENDS AFTER")),
        ">" * has_phases + "<<><>",
        [
            (
                *((str(one["phase"]),) if has_phases else ()),
                f"{one['from']} ({one['from_host']})",
                f"{one['to']} ({one['to_host']})",
                bytes_text(one["bytes"], None),
                one["limit"] or "-",
                time_text(one["seconds"]),
            )
            for one in decision["transfers"]
        ],
    )


def print_reasons(why: Sequence[Mapping[str, Any]]) -> None:
    """Prints candidates of tasks, each with its `task` and `reason`."""
    if not why:
        return
    print()
    print_table(
        ("TASK", "CANDIDATE", "JOB'S TASKS IN RACK", "LOAD WITH TASK", "LIMITED BY", "VERDICT"),
        "<<>><<",
        [(one["task"], *_reason(one["reason"])) for one in why],
    )


def _reason(reason: Mapping[str, Any]) -> tuple[str, ...]:
    objectives = reason.get("objectives")
    in_rack = str(objectives["in_rack"]) if objectives else ""
    load = percent_text(objectives["balance"], 0) if objectives else ""
    verdict = ": ".join(part for part in (reason["verdict"], reason["because"]) if part)
    return reason["candidate"], in_rack, load, reason["limit"] or "-", verdict
