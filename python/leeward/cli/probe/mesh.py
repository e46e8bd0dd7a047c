"""`leeward probe mesh` and `hops`: every path between hosts."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.cli.options import one_of, place, whole
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.probe.options import (
    MOST,
    NONE,
    BurstsOption,
    GapOption,
    HostsOption,
    PacketsOption,
    PayloadOption,
    SecretOption,
    Shape,
    flags_of,
    hosts_of,
    percent,
    rate,
    secret_of,
    surveying,
)
from leeward.probe import Train

MESH_EXAMPLES = """\b
Examples:
  leeward probe mesh --hosts 10.0.0.1,10.0.0.2,10.0.0.3
  leeward probe mesh --hosts a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --shape hose --hops --out measured.yaml

What --out writes is a cluster file; `leeward place tasks` takes it, with --policy choreo too.
"""
HOPS_EXAMPLES = """\b
Examples:
  leeward probe hops --hosts 10.0.0.1,10.0.0.2,10.0.0.3
"""


def mesh(
    hosts: HostsOption,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=place, help="Cluster file to write.", show_default=False),
    ] = None,
    shape: Annotated[
        Shape,
        typer.Option(
            metavar="|".join(Shape),
            parser=one_of(Shape),
            help="Of the cluster: a rate for each pair, or for each source.",
        ),
    ] = Shape.pipe,
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the cluster.")] = "measured",
    hops: Annotated[
        bool, typer.Option("--hops", help="Count hops too, so that the cluster has racks.")
    ] = False,
    at_once: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole(1, MOST),
            help="Trains at a time. No host is in two; with 1 they cannot meet elsewhere either.",
        ),
    ] = 1_000,
    bursts: BurstsOption = 10,
    packets: PacketsOption = 200,
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure every path between hosts."""
    from leeward import probe

    chosen, known = hosts_of(hosts), secret_of(secret)
    with surveying("measuring paths") as tell:
        made = probe.mesh(
            chosen,
            train=Train(bursts, packets, payload, gap),
            at_once=at_once,
            hops=hops,
            shape=shape.value,
            name=name,
            secret=known,
            progress=tell,
        )
    if output is Format.json:
        print_json(made)
    else:
        print_table(
            ("FROM", "TO", "RATE", "LOSS", "NOTE"),
            "<<>><",
            [
                (one["from"], one["to"], rate(one["rate_bps"]), percent(one["loss"]), flags_of(one))
                for one in made["paths"]
            ],
        )
        if made["topology"]:
            print()
            _print_topology(made["topology"])
    failed = [one for one in made["paths"] if one["error"]]
    if failed:
        print(f"error: {len(failed)} of {len(made['paths'])} paths could not be measured", file=sys.stderr)
        raise typer.Exit(1)
    if out:
        out.write_text(made["cluster"], encoding="utf-8")
        print(f"\nwrote {out}", file=sys.stderr)


def hops(hosts: HostsOption, secret: SecretOption = None, output: FormatOption = Format.table) -> None:
    """Count the hops between hosts, and say which are in one rack."""
    from leeward import probe

    chosen, known = hosts_of(hosts), secret_of(secret)
    with surveying("counting hops") as tell:
        made = probe.hops(chosen, secret=known, progress=tell)
    if output is Format.json:
        print_json(made)
        return
    rows = zip(made["hosts"], made["hops"], strict=True)
    print_table(
        ("FROM", *made["hosts"]),
        "<" + ">" * len(made["hosts"]),
        [(name, *(NONE if one is None else str(one) for one in counted)) for name, counted in rows],
    )
    print()
    _print_topology(made)


def _print_topology(topology: dict[str, Any]) -> None:
    print_table(
        ("RACK", "HOSTS"),
        "<<",
        [(f"r{number}", ", ".join(rack)) for number, rack in enumerate(topology["racks"])],
    )
    if topology["misfits"]:
        print()
        print_table(
            ("FROM", "TO", "HOPS", "FITS NO TREE"),
            "<<><",
            [
                (one["from"], one["to"], NONE if one["hops"] is None else str(one["hops"]), one["why"])
                for one in topology["misfits"]
            ],
        )
