"""`leeward slo admit`: admission of arriving workloads."""

from typing import Annotated, Any

import typer

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import hint_schema, name_flags
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import slow_notice
from leeward.cli.slo.workloads import (
    ClusterOption,
    StagesOption,
    WorkloadsArgument,
    load_workloads,
    print_guarantees,
    print_notes,
    print_settings,
    unmet_objectives,
)

EXAMPLES = """\b
Examples:
  leeward slo admit examples/slo/w.yaml --cluster examples/slo/cluster.yaml --arriving examples/slo/new.yaml
  leeward slo admit examples/slo/w.yaml --cluster examples/slo/cluster.yaml \\
      --arriving examples/slo/new.yaml --method dnc:search=false

The exit code is 1 if a workload is refused, or if a present workload has no bound within its SLO.
"""


def admit(
    file: WorkloadsArgument,
    cluster: ClusterOption,
    arriving: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="File of arriving or changed workloads, admitted in its order.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="snc, dnc, best, silo++, qjump++ or none; settings follow colons: dnc:search=false.",
        ),
    ] = "best",
    stages: StagesOption = False,
    output: FormatOption = Format.table,
) -> None:
    """Decide which workloads to admit with their SLOs.

    Workloads arrive one after another, in addition to the present workloads in FILE. A workload that would
    break the SLO of a present one is refused. The methods silo++ and qjump++ also decide again on the present
    workloads, and may refuse them.

    A refused workload runs as best effort, after all others. If it would even then break the SLO of another
    workload, it does not run.

    A workload with the name of a present workload replaces this workload on its servers.
    """
    workloads = load_workloads(file, cluster)
    with slow_notice("deciding"), name_flags(method="--method"), hint_schema("slo", arriving):
        record = workloads.admit(arriving, method)
    rows = [one | {"present": True} for one in record["residents"]]
    rows += [one | {"present": False} for one in record["arrivals"]]
    if not print_data(output, record, rows, COLUMNS["slo admit"]):
        print_table(("WORKLOAD", "COMES", "ADMITTED", "WHY NOT"), "<<<<", _outcome_rows(record))
        print()
        print_guarantees(record, stages)
        print_settings(record)
    if output is Format.csv:
        print_notes(record["notes"])
    if output is not Format.json:
        _print_doubts(record)
    refusals = [line for kind in ("residents", "arrivals") for line in _refusals(record[kind])]
    refusals += unmet_objectives(record)
    for line in refusals:
        print_error(line)
    if refusals:
        raise typer.Exit(1)


def _print_doubts(record: dict[str, Any]) -> None:
    """Prints notes on the bounds to stderr."""
    if record["method"] == "none":
        note = "the method none computes no bounds; leeward slo bound computes them for a workload file"
        print_note(f"note: {note}", doubt=True)
    if record["paced"]:
        admission = record["admission"]
        note = f"{admission} bounds the frames of admitted workloads, paced at the rates of the method"
        print_note(f"note: {note}", doubt=True)


def _outcome_rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    """Rows of arriving workloads, and of refused present workloads."""
    outcomes = [(one, "present") for one in record["residents"] if one["refused"]]
    outcomes += [(one, "changed" if one["changed"] else "arrives") for one in record["arrivals"]]
    return [
        (one["workload"], state, "yes" if one["admitted"] else "no", _why_not(one)) for one, state in outcomes
    ]


def _why_not(one: dict[str, Any]) -> str:
    others: str = ", ".join(one["disturbed"])
    return _refused(one) or (f"it would disturb {others}" if others else "")


def _refused(one: dict[str, Any]) -> str:
    """Reason of a refusal; it names a workload only if that is another one."""
    return str(one["refused"] or "").removeprefix(f"{one['workload']}: ")


def _refusals(outcomes: list[dict[str, Any]]) -> list[str]:
    """Errors about refused workloads, with their treatment."""
    lines = []
    for one in outcomes:
        if one["refused"]:
            treatment = "it runs as best effort" if one["runs"] else "it does not run"
            if one["changed"]:
                treatment += "; its volume should move to a server that can keep its SLO"
            lines.append(f"{one['workload']} is refused: {_refused(one)}; {treatment}")
        if one["disturbed"]:
            others = ", ".join(one["disturbed"])
            lines.append(f"{one['workload']}: even as best effort it would disturb {others}")
    return lines
