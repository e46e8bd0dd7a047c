"""`leeward place`: one decision, and why."""

import sys
from typing import Annotated, Any

import typer

from leeward import _native
from leeward._native import rate_text
from leeward.cli.cluster import read
from leeward.cli.output import Format, FormatOption, print_json, print_table

EXAMPLES = """\b
Examples:
  leeward place replicas --cluster c.yaml --writer r3h7 --size 256MiB --telemetry loads.csv
  leeward place replicas --cluster c.yaml --writer r3h7 --size 256MiB --telemetry loads.csv --explain
  leeward place replicas --cluster c.yaml --size 1GiB --policy uniform --exclude r4 -o json

The telemetry file is CSV with the columns link,load_bps and a line a link: r3:downlink,350e6
"""
SHOWN = 8
"""Candidates of each level in an explanation."""

app = typer.Typer(rich_markup_mode=None)


@app.callback()
def place() -> None:
    """Ask where work should go."""


@app.command(epilog=EXAMPLES)
def replicas(
    cluster: Annotated[str, typer.Option(help="Cluster file.", show_default=False)],
    size: Annotated[str, typer.Option(help="Size of the block, such as 256MiB.", show_default=False)],
    telemetry: Annotated[str | None, typer.Option(help="What links carry, as CSV.")] = None,
    writer: Annotated[str | None, typer.Option(help="The host that writes; none if outside.")] = None,
    replicas: Annotated[int, typer.Option(help="Copies, the writer's included.", min=1, max=255)] = 3,
    fault_domains: Annotated[
        int, typer.Option(help="Fault domains besides the first copy's that must hold one.", min=0, max=255)
    ] = 1,
    exclude: Annotated[
        list[str] | None, typer.Option(help="A host, rack or pod that must hold none; repeatable.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag that hosts must have; repeatable.")] = None,
    policy: Annotated[str, typer.Option(help="A policy, with settings after colons.")] = "sinbad",
    seed: Annotated[int, typer.Option(help="Seed of ties.", min=0)] = 1,
    explain: Annotated[bool, typer.Option("--explain", help="Say what was considered, and why.")] = False,
    output: FormatOption = Format.table,
) -> None:
    """Choose the hosts of the copies of a block."""
    decision: dict[str, Any] = _native.place_replicas(
        read(cluster),
        policy,
        size,
        telemetry=telemetry,
        writer=writer,
        replicas=replicas,
        fault_domains=fault_domains,
        exclude=exclude or [],
        tags=tag or [],
        seed=seed,
        explain=SHOWN if explain else 0,
    )
    if output is Format.json:
        print_json(decision)
    elif decision["hosts"]:
        print(" ".join(decision["hosts"]))
        if explain and decision["why"]:
            print_reasons(decision["why"])
        elif explain:
            print("\nThe policy looked at no load.")
    if decision["refused"]:
        print("error:", decision["refused"], file=sys.stderr)
        if not telemetry:
            print("hint: --telemetry FILE says what links carry", file=sys.stderr)
        if "telemetry" in decision["refused"]:
            print(f"hint: --policy {policy}:without_telemetry=default places blindly then", file=sys.stderr)
        raise typer.Exit(1)


def print_reasons(reasons: list[dict[str, Any]]) -> None:
    """Prints what was considered, level by level, the best first."""
    print()
    print_table(
        {"CANDIDATE": "left", "EXPECTED": "right", "AT": "left", "VERDICT": "left"},
        [
            (
                reason["candidate"],
                "" if reason["value_bps"] is None else rate_text(reason["value_bps"]),
                reason["limit"] or "",
                ": ".join(part for part in (reason["verdict"], reason["because"]) if part),
            )
            for reason in reasons
        ],
    )
