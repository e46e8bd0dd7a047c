"""`leeward slo prioritize`: priorities of workloads."""

from typing import Annotated

import typer

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error
from leeward.cli.options import name_flags, whole_number
from leeward.cli.output import Format, FormatOption, print_data
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
  leeward slo prioritize examples/slo/w.yaml --cluster examples/slo/cluster.yaml
  leeward slo prioritize examples/slo/w.yaml --cluster examples/slo/cluster.yaml --by-slo
  leeward slo prioritize examples/slo/w.yaml --cluster examples/slo/cluster.yaml --method priority-meister

The exit code is 1 if an SLO is not guaranteed. Priorities in the file are ignored.
"""


def prioritize(
    file: WorkloadsArgument,
    cluster: ClusterOption,
    by_slo: Annotated[
        bool, typer.Option("--by-slo", help="Order by SLO, the tightest first, instead of searching.")
    ] = False,
    levels: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1_000_000),
            help="Number of priorities of the network; by default as in the file, or else 7.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="Method of the bounds in the search: dnc, priority-meister, plp, snc or best.",
        ),
    ] = "best",
    stages: StagesOption = False,
    output: FormatOption = Format.table,
) -> None:
    """Find priorities under which workloads keep their SLOs.

    Runs the search of PriorityMeister, from the lowest level upwards: a workload gets a level if it keeps its
    SLO after all workloads that have no level yet.
    """
    workloads = load_workloads(file, cluster)
    with slow_notice("looking for priorities"), name_flags(method="--method", levels="--levels"):
        record = workloads.prioritize(by_slo=by_slo, levels=levels, method=method)
    if not print_data(output, record, "workloads", COLUMNS["slo prioritize"]):
        print_guarantees(record, stages)
        print_settings(record)
    if output is Format.csv:
        print_notes(record["notes"])
    failures = unmet_objectives(record)
    for miss in failures:
        print_error(miss)
    if failures:
        raise typer.Exit(1)
