"""`leeward probe mesh`: rates of every path between hosts, as a cluster file."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, rounded_rate_text
from leeward.cli.controller import CaOption, TokenFileOption
from leeward.cli.options import one_of, place, whole
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.probe.hops import print_topology
from leeward.cli.probe.options import (
    MOST,
    BurstsOption,
    GapOption,
    HostsOption,
    PacketsOption,
    PayloadOption,
    SecretOption,
    Shape,
    flags_of,
    hosts_of,
    secret_of,
    surveying,
)
from leeward.cli.probe.through import AT_ONCE, ThroughOption, hosts_in_cluster, measured, train_of
from leeward.errors import InputError
from leeward.probe import Train

EXAMPLES = """\b
Examples:
  leeward probe mesh --hosts 10.0.0.1,10.0.0.2,10.0.0.3
  leeward probe mesh --hosts a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --shape hose --hops --out measured.yaml
  leeward probe mesh --hosts a,b,c --controller https://leeward:7600 --token-file admin.token --keep

What --out writes is a cluster file; `leeward place tasks` takes it, with --policy choreo too.
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
            help="Shape of the cluster: a rate for each pair, or for each source.",
        ),
    ] = Shape.pipe,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")] = "measured",
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
    controller: ThroughOption = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="With --controller: the rates become those of its cluster, a mesh."),
    ] = False,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure every path between hosts."""
    from leeward import probe
    from leeward._files import check_file, whole_file

    if out:
        check_file(out, "--out")
    unkept: str | None = None
    if controller:
        how: dict[str, Any] = {"hops": hops, "shape": shape.value, "name": name, "keep": keep}
        how["at_once"] = min(at_once, AT_ONCE)
        train, named = train_of(bursts, packets, payload, gap), hosts_in_cluster(hosts)
        through = (controller, token_file, ca, secret)
        asked = measured(*through, "measuring paths", "mesh", named, train=train, **how)
        made, unkept = asked["result"], asked["error"]
    elif keep:
        raise InputError("--keep", None, None, None, "it is a controller that keeps it: give --controller")
    else:
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
                (
                    one["from"],
                    one["to"],
                    rounded_rate_text(one["rate_bps"]),
                    percent_text(one["loss"]),
                    flags_of(one),
                )
                for one in made["paths"]
            ],
        )
        if made["topology"]:
            print()
            print_topology(made["topology"])
    failed = [one for one in made["paths"] if one["error"]]
    if failed:
        print(f"error: {len(failed)} of {len(made['paths'])} paths could not be measured", file=sys.stderr)
        raise typer.Exit(1)
    if unkept:
        print(f"error: {unkept}", file=sys.stderr)
        raise typer.Exit(1)
    if keep:
        print(f"\nthe cluster is of version {asked['cluster_version']} with it", file=sys.stderr)
    if out:
        with whole_file(out) as temporary:
            temporary.write_text(made["cluster"], encoding="utf-8")
        print(f"\nwrote {out}", file=sys.stderr)
        print(
            "hint: it has no processors; `cpus: 4` in it says what each host has for tasks", file=sys.stderr
        )
