"""`leeward mode`: who decides, Leeward or the default policy."""

from typing import Annotated

import typer

from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note, print_warning
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.client.types import ModesInForce
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward mode                                        who decides now
  leeward mode off --reason "incident 4711"           the default policy decides everything, at once
  leeward mode shadow                                 Leeward's choices are stored beside the decisions
  leeward mode canary:10%:client --only replicas      Leeward decides for a tenth of the clients
  leeward mode on --dry-run                           what would change

Modes: off, shadow, on, canary:SHARE, canary:SHARE:PROPERTY. A canary draws requests by the hash of the
request, of its client or of its writer's rack (request, client, rack). It leaves out requests without a
client, or without a writer in the cluster.
"""


KINDS = ("replicas", "tasks", "moves", "workload", "volumes")
"""Kinds of decisions."""


def mode(
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODE]", help="New mode; without it, the modes are shown.", show_default=False
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="replicas|tasks|moves|workload|volumes,...",
            help="Change only decisions of these kinds.",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Reason of the change, shown beside the modes.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the modes after the change, and change nothing.")
    ] = False,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Show or change who decides: Leeward, or the default policy.

    A change takes effect at once, loses no telemetry, and stays over restarts until the modes of the settings
    file change. The event log records who made it.
    """
    unknown = [one for one in kind or () if one not in KINDS]
    if unknown:
        raise InputError.about("--only", f"`{unknown[0]}`: expected one of {', '.join(KINDS)}")
    if new is None and (kind or reason is not None or dry_run):
        raise InputError.about("MODE", "missing; --only, --reason and --dry-run need a new mode")
    service = client(controller, token_file, ca, 0.0)
    with controller_errors():
        if new is None:
            modes = service.modes()
        elif kind:
            modes = service.set_modes(None, reason=reason, dry_run=dry_run, **dict.fromkeys(kind, new))
        else:
            modes = service.set_modes(new, reason=reason, dry_run=dry_run)
    rows = [
        {"kind": one, "mode": word, "set": modes["set"][one], "settings": modes["settings"][one]}
        for one, word in modes["in_force"].items()
    ]
    if not print_data(output, modes, rows, COLUMNS["mode"]):
        print_table(
            ("KIND", "MODE", "SET", "SETTINGS FILE"),
            "<<<<",
            [(row["kind"], row["mode"], row["set"], row["settings"]) for row in rows],
        )
    _explain(modes, dry_run)


def _explain(modes: ModesInForce, dry_run: bool) -> None:
    """Says who set the modes, and warns while the off file holds them."""
    if dry_run:
        print_note("dry run: nothing changed")
    else:
        why = f": {modes['reason']}" if modes["reason"] else ""
        print_note(f"set by {modes['by']} at {modes['changed']}{why}")
    if modes["off_file_exists"]:
        print_warning(f"every mode is off while the file {modes['off_file']} exists")
