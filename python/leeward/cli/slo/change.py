"""`leeward slo change`: another decision on a promised workload whose requests have changed."""

from typing import Annotated, Any

import typer

from leeward._quantities import rate_text, time_text
from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import slow_notice
from leeward.cli.slo.options import DeviceOption, DialectOption, TraceFile, VolumeOption
from leeward.cli.slo.workloads import print_notes
from leeward.client.promise_types import CopyPlan, Redecision
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward slo change mail mail.csv.gz --device ssd.json --dry-run
  leeward slo change mail mail.csv.gz --device ssd.json --volume-size 200GiB
  leeward slo change mail mail.csv.gz --device ssd.json --server r0h2
"""
OUTCOMES = {
    "keeps": "the server keeps the SLO, and priorities and limits stay",
    "limits": "the server keeps the SLO with other limits",
    "priority": "the server keeps the SLO with other priorities",
    "moved": "the promise is now at {server}",
    "move": "the server cannot keep the SLO, and {server} can; the promise stays until the volume moves",
    "nowhere": "no server can keep the SLO; the promise stays as it was",
}
"""Meanings of outcomes."""


def change(
    name: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="Name of the workload.", show_default=False)
    ],
    trace: TraceFile,
    device: DeviceOption = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Host to which the volume has moved, or its device; by default that of the promise.",
            show_default=False,
        ),
    ] = None,
    volume_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Size of the volume, for a plan of its copy.", show_default=False),
    ] = None,
    dialect: DialectOption = None,
    volume: VolumeOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the decision, and change nothing.")
    ] = False,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Decide again on a promised workload, with a new trace of its requests.

    Curves and models are computed here; the controller gets them with the SHA-256 of the trace. If the server
    keeps the SLO, the workload has its new limits and priorities at once. If not, the promise stays, and the
    command shows a server for the volume and a plan of its copy.
    """
    from leeward.traces import workload_fields

    service = client(controller, token_file, ca, 0.0)
    with controller_errors():
        present = service.workload(name)
        if present["released"] is not None:
            raise InputError.about("WORKLOAD", f"`{name}`: its promise ended at {present['released']}")
        form: dict[str, Any] = dict(service.decision(present["decision"])["request"]["workload"])
    flags = {one: f"--{one}" for one in ("device", "dialect", "volume")}
    with slow_notice(f"reading {trace}"), name_flags(path="TRACE", **flags):
        fields, source = workload_fields(
            trace, device=device, percentile=present["slo"]["percentile"], dialect=dialect, volume=volume
        )
    # Such as a load that changes over the trace: a bound on it may be too low.
    print_notes(note for stage in fields["model"] for note in stage["notes"])
    form |= fields
    form["server"] = server
    with controller_errors():
        decision = service.change_workload(form, trace=source, size=volume_size, dry_run=dry_run)
    stages = decision.get("promise", {}).get("stages", [])
    if not print_data(output, decision, stages, COLUMNS["slo change"]):
        _print(name, decision["redecision"], stages)
    if dry_run:
        print_note("dry run: nothing changed")


def _print(name: str, redecision: Redecision, stages: list[dict[str, Any]]) -> None:
    server = redecision["volume"] or redecision["server"] or "the new server"
    print_text(f"{name}: {OUTCOMES[redecision['outcome']].format(server=server)}")
    if redecision["reason"] is not None:
        print_text(f"reason: {redecision['reason']}")
    if redecision["bound_s"] is not None:
        print_text(f"bound there: {time_text(redecision['bound_s'])}")
    if redecision["copy"] is not None:
        print_text(_copy_text(redecision["copy"]))
    print_table(
        ("STAGE", "PRIORITY", "LIMITS", "BOUND"),
        "<>>>",
        [
            (stage["stage"], str(stage["priority"]), str(len(stage["limits"])), time_text(stage["bound_s"]))
            for stage in stages
        ],
    )


def _copy_text(copy: CopyPlan) -> str:
    """The plan of a copy in a sentence."""
    head = f"copy of {copy['bytes']} from {copy['from']} to {copy['to']}"
    if copy["rate_bps"] is None:
        return f"{head}: the promises leave no room for it; copy as best effort"
    pace = f"{rate_text(copy['rate_bps'])}, {time_text(copy['seconds'])}"
    if copy["guaranteed"]:
        names = ", ".join(workload["name"] for workload in copy["workloads"])
        return f"{head}: at {pace}, all promises hold beside it; grant {names} first (-o json has them)"
    return f"{head}: as best effort at most at {pace}"
