"""`leeward place`: one decision with its reasons."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from leeward._age import MAX_AGE
from leeward._quantities import rate_text, read_share
from leeward.cli import place_tasks
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.groups import Commands
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import LabelOption, name_flags, parse_seed, read_labels, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import slow_notice
from leeward.decisions import ReplicaDecision

EXAMPLES = """\b
Examples:
  leeward place replicas --cluster examples/clusters/reference.yaml \\
      --telemetry examples/telemetry/loads.csv --writer r3h7 --size 256MiB --explain
  leeward place replicas --cluster examples/clusters/reference.yaml \\
      --telemetry examples/telemetry/loads.csv --size 1GiB --policy leeward --exclude r4 -o json
  leeward place replicas --cluster examples/clusters/reference.yaml \\
      --size 256MiB --policy uniform
  leeward place replicas --cluster examples/clusters/reference.yaml \\
      --telemetry examples/telemetry/loads.csv --size 1GiB --policy leeward --coding 6+3
  leeward place tasks --cluster examples/clusters/tenant.yaml --app examples/apps/wordcount.yaml --explain

The telemetry file is CSV with the columns link,load_bps and one line for each link, such as
r3:downlink,350e6
"""
MOST_CANDIDATES = 8
"""Greatest number of candidates of each level in an explanation."""
SIGHT = {None: "", "counter": "its counter", "derived": "sum of hosts", "unseen": "unseen"}
"""Words for the source of a link's load."""

app = Commands()


@app.callback(epilog=EXAMPLES)
def place() -> None:
    """Ask a policy for one decision.

    The policy reads a cluster file and a telemetry file, and gives the reasons for its decision.
    `leeward serve` makes such decisions on live telemetry, for replicas and for the tasks of a job.
    """


@app.command(epilog=EXAMPLES)
def replicas(
    cluster: Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)],
    size: Annotated[
        str, typer.Option(metavar="SIZE", help="Size of the block, such as 256MiB.", show_default=False)
    ],
    telemetry: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Loads of links, as CSV; by default, all loads are unknown."),
    ] = None,
    max_age: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Greatest age of a link's latest load, if telemetry has times (column t_s).",
        ),
    ] = MAX_AGE,
    writer: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="Host that writes; by default the writer is outside the cluster."),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 255),
            help="Number of copies, the writer's included, 1 to 255.",
            show_default="3",
        ),
    ] = None,
    coding: Annotated[
        str | None,
        typer.Option(
            metavar="DATA+PARITY",
            help="Erasure code, such as 6+3: instead of copies, each host holds a chunk.",
            show_default=False,
        ),
    ] = None,
    fault_domains: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(0, 255),
            help="Number of fault domains, besides that of the first copy, that must hold a copy, 0 to 255;"
            " by default 1, and 0 for a single copy. With --coding, number of fault domains that may be lost."
            " Each rack is a fault domain unless the cluster file"
            " names others.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Hosts, racks or pods that must hold no copy."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG,...", help="Tags that hosts must have.")
    ] = None,
    collocate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST,...",
            help="Hosts of a related file; with this option, no other host may hold a copy.",
        ),
    ] = None,
    max_imbalance: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Largest amount by which a host's used share of storage may exceed the average, such as 5%.",
            show_default=False,
        ),
    ] = None,
    existing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST,...",
            help="Hosts that have a copy already; --replicas counts the new copies only, and without"
            " --writer, one of these hosts sends them. With --coding, hosts that have a chunk: only the"
            " others are placed.",
        ),
    ] = None,
    prefer: Annotated[
        list[str] | None, typer.Option(metavar="HOST,...", help="Hosts to try first, in this order.")
    ] = None,
    label: LabelOption = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="Type of storage that holds the copies, as `type` of devices in the cluster file.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="Policy; settings follow colons: sinbad:remote_racks=2.")
    ] = "sinbad",
    seed: Annotated[
        int, typer.Option(metavar="N", parser=parse_seed, help="Seed of tie-breaking, from 0.")
    ] = 1,
    explain: Annotated[bool, typer.Option("--explain", help="Show the candidates and the reasons.")] = False,
    output: FormatOption = Format.table,
) -> None:
    """Choose the hosts for the copies of a block, or for the chunks of its stripe."""
    from leeward.placement import place_replicas

    network = read(cluster)
    flags = (
        "size",
        "writer",
        "replicas",
        "coding",
        "exclude",
        "collocate",
        "existing",
        "prefer",
        "storage",
        "policy",
    )
    with (
        slow_notice("deciding"),
        name_flags(
            tags="--tag",
            labels="--label",
            max_age="--max-age",
            max_imbalance="--max-imbalance",
            **{flag: f"--{flag}" for flag in flags},
        ),
    ):
        decision = place_replicas(
            network,
            size,
            policy=policy,
            telemetry=telemetry,
            max_age=max_age,
            writer=writer,
            replicas=replicas,
            coding=coding,
            fault_domains=fault_domains,
            exclude=exclude or (),
            tags=tag or (),
            collocate=collocate or (),
            existing=existing or (),
            prefer=prefer or (),
            storage=storage,
            labels=read_labels(label),
            max_imbalance=None
            if max_imbalance is None
            else read_share("--max-imbalance", max_imbalance, 0, 1),
            seed=seed,
            explain=MOST_CANDIDATES if explain else 0,
        )
    rows = [{"copy": copy, "host": host} for copy, host in enumerate(decision["hosts"] or ())]
    if not print_data(output, decision, rows, COLUMNS["place replicas"]) and decision["hosts"]:
        print(" ".join(decision["hosts"]))
        if explain:
            print_reasons(decision, size)
    if decision["refused"]:
        print_error(decision["refused"])
        if "telemetry" in decision["refused"]:
            if not telemetry:
                print_note("hint: --telemetry FILE gives the loads of links")
            print_note(f"hint: --policy {policy}:without_telemetry=default places without load information")
        raise typer.Exit(1)


def print_reasons(decision: ReplicaDecision, size: str) -> None:
    """Prints the candidates, best first, and the reason if the policy left the choice to another policy."""
    if note := decision["note"]:
        print_text(f"\n{size} is {note}" if note.startswith("smaller") else f"\n{note}")
    print_candidates(decision["why"])


def print_candidates(why: Sequence[Mapping[str, Any]]) -> None:
    """Prints candidates in their order: the best first, level by level."""
    # A policy that considers no load has only names and verdicts.
    has_loads = any(reason["value_bps"] is not None for reason in why)
    print()
    print_table(
        ("CANDIDATE", *(("EXPECTED", "LIMITED BY", "LOAD KNOWN BY") if has_loads else ()), "VERDICT"),
        "<><<<" if has_loads else "<<",
        [(reason["candidate"], *(_load(reason) if has_loads else ()), _verdict(reason)) for reason in why],
    )


def _load(reason: Mapping[str, Any]) -> tuple[str, str, str]:
    rate = reason["value_bps"]
    return "" if rate is None else rate_text(rate), reason["limit"] or "", SIGHT[reason["sight"]]


def _verdict(reason: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (reason["verdict"], reason["because"]) if part)


app.command("tasks", epilog=place_tasks.EXAMPLES)(place_tasks.tasks)
