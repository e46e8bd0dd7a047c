"""`leeward probe mesh`: rates of every path between hosts, as a cluster file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, rate_text
from leeward.cli.controller import CaOption, TokenFileOption
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import choice_option, parse_path, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.probe.bottlenecks import (
    ExperimentOption,
    PairsOption,
    PairsSeedOption,
    print_bottlenecks,
)
from leeward.cli.probe.by_controller import (
    AT_ONCE,
    ByControllerOption,
    hosts_in_cluster,
    run_survey,
    train_of,
)
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
    hosts_of,
    remarks,
    report_failures,
    secret_of,
    survey_progress,
)
from leeward.errors import InputError
from leeward.probe import Train

EXAMPLES = """\b
Examples:
  leeward probe mesh --hosts 10.0.0.1,10.0.0.2,10.0.0.3
  leeward probe mesh --hosts a=10.0.0.1,b=10.0.0.2,c=10.0.0.3 --hops --bottlenecks --out measured.yaml
  leeward probe mesh --hosts a,b,c --controller https://leeward:7600 --token-file admin.token --keep

--out writes a cluster file for `leeward place tasks`. With --bottlenecks, the file also has the limits of
sources and the links that paths share; experiments with two transfers at a time find them.
"""


def mesh(
    hosts: HostsOption,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=parse_path, help="Cluster file to write.", show_default=False),
    ] = None,
    shape: Annotated[
        Shape | None,
        choice_option(
            Shape,
            description="Shape of the cluster: a rate for each pair of hosts (pipe), or also a limit of each"
            " source (hose). By default the shape that --bottlenecks finds, or pipe.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")] = "measured",
    hops: Annotated[
        bool, typer.Option("--hops", help="Count hops too, so that the cluster file has racks.")
    ] = False,
    bottlenecks: Annotated[
        bool,
        typer.Option(
            "--bottlenecks",
            help="Search for shared bottlenecks too, so that the cluster file has shared links.",
        ),
    ] = False,
    pairs: PairsOption = 20,
    duration: ExperimentOption = "3s",
    seed: PairsSeedOption = 1,
    at_once: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(1, MOST),
            help="Greatest number of trains at once, each between different hosts; 1 avoids shared links.",
        ),
    ] = 1_000,
    bursts: BurstsOption = 10,
    packets: PacketsOption = 200,
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    secret: SecretOption = None,
    controller: ByControllerOption = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="With --controller: store the rates in its cluster, which must be a mesh."
        ),
    ] = False,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure every path between hosts."""
    from leeward import probe
    from leeward._files import atomic_file, check_file

    if out:
        check_file(out, "--out")
    keep_error: str | None = None
    if controller:
        options: dict[str, Any] = {"hops": hops, "name": name, "keep": keep}
        options["shape"] = shape.value if shape else None
        if bottlenecks:
            options["bottlenecks"] = {"duration": duration, "pairs": pairs, "seed": seed}
        options["at_once"] = min(at_once, AT_ONCE)
        train, names = train_of(bursts, packets, payload, gap), hosts_in_cluster(hosts)
        access = (controller, token_file, ca, secret)
        survey = run_survey(*access, "measuring paths", "mesh", names, train=train, **options)
        result, keep_error = survey["result"], survey["error"]
    elif keep:
        raise InputError.about("--keep", "requires --controller, which stores the rates")
    else:
        targets, key = hosts_of(hosts), secret_of(secret)
        with survey_progress("measuring paths") as on_progress:
            result = probe.mesh(
                targets,
                train=Train(bursts, packets, payload, gap),
                at_once=at_once,
                hops=hops,
                bottlenecks=bottlenecks,
                duration=duration,
                pairs=pairs,
                seed=seed,
                shape=shape.value if shape else None,
                name=name,
                secret=key,
                progress=on_progress,
            )
    if not print_data(output, result, "paths", COLUMNS["probe mesh"]):
        _print(result)
    if result["bottlenecks"]:
        report_failures(result["bottlenecks"]["errors"], "transfers failed; their experiments are left out")
    failures = [one for one in result["paths"] if one["error"]]
    if failures:
        print_error(f"{len(failures)} of {len(result['paths'])} paths could not be measured")
        raise typer.Exit(1)
    if keep_error:
        print_error(keep_error)
        raise typer.Exit(1)
    if keep:
        print_note(f"\nthe rates are in version {survey['cluster_version']} of the cluster")
    if out:
        with atomic_file(out) as temporary:
            temporary.write_text(result["cluster"], encoding="utf-8")
        print_note(f"\nwrote {out}")
        print_note("hint: the file has no processors; to place tasks, add those of each host: `cpus: 4`")


def _print(result: dict[str, Any]) -> None:
    print_table(
        ("FROM", "TO", "RATE", "LOSS", "NOTE"),
        "<<>><",
        [
            (one["from"], one["to"], rate_text(one["rate_bps"]), percent_text(one["loss"]), remarks(one))
            for one in result["paths"]
        ],
    )
    if result["topology"]:
        print()
        print_topology(result["topology"])
    if result["bottlenecks"]:
        print()
        print_bottlenecks(result["bottlenecks"])
