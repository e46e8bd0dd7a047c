"""`leeward slo bound`: bounds on latency."""

from typing import Annotated

import typer

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_data, print_words
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
  leeward slo bound examples/slo/w.yaml --cluster examples/slo/cluster.yaml
  leeward slo bound examples/slo/w.yaml --cluster examples/slo/cluster.yaml --method dnc
  leeward slo bound examples/slo/w.yaml --cluster examples/slo/cluster.yaml --method plp
  leeward slo bound examples/slo/w.yaml --cluster examples/slo/cluster.yaml --method snc -o json

The exit code is 1 if an SLO is not guaranteed.
"""
MethodOption = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        help="Method of bounds. dnc (curves), priority-meister and plp (linear programs) bound every request"
        " within the limits; plp assumes arrival order at equal priorities. snc (models) bounds the SLO's"
        " percentile. best takes the least bound of all methods.",
    ),
]
_WORDS = (
    ("bound", "largest latency of requests: at limits, in queues and at the device without queueing"),
    ("limits", "the enforced token bucket with the lowest rate, and the number of buckets"),
)


def bound(
    file: WorkloadsArgument,
    cluster: ClusterOption,
    method: MethodOption = "best",
    stages: StagesOption = False,
    output: FormatOption = Format.table,
) -> None:
    """Bound the tail latency of workloads on a cluster.

    A request waits in queues at each stage of its path. With arrival curves, no request exceeds the bound;
    with models, at most the share of requests above the SLO's percentile exceeds it.
    """
    workloads = load_workloads(file, cluster)
    with slow_notice("bounding latencies"), name_flags(method="--method"):
        record = workloads.bound(method)
    if not print_data(output, record, "workloads", COLUMNS["slo bound"]):
        print_guarantees(record, stages)
        print_words(_WORDS)
        print_settings(record)
    if output is Format.csv:
        print_notes(record["notes"])
    failures = unmet_objectives(record)
    for miss in failures:
        print_error(miss)
    if failures:
        raise typer.Exit(1)
