"""`leeward probe bottlenecks`: paths that share a bottleneck."""

from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, rate_text
from leeward.cli.controller import CaOption, TokenFileOption
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import parse_seed, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.by_controller import ByControllerOption, hosts_in_cluster, run_survey
from leeward.cli.probe.options import (
    HostsOption,
    SecretOption,
    hosts_of,
    report_failures,
    secret_of,
    survey_progress,
)

EXAMPLES = """\b
Examples:
  leeward probe bottlenecks --hosts 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4
  leeward probe bottlenecks --hosts 10.0.0.1,10.0.0.2,10.0.1.1,10.0.1.2 --hops --pairs 5 -o json

An experiment runs a transfer alone, and then the same transfer beside another one. Experiments run one at a
time; with the defaults and four hosts they take about two minutes.
"""
PairsOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=whole_number(1, 10_000),
        help="Number of pairs of paths between four hosts, and number of pairs from one source.",
    ),
]
ExperimentOption = Annotated[
    str, typer.Option("--for", metavar="DURATION", help="Length of a transfer, 1.5s to 59.5s.")
]
PairsSeedOption = Annotated[
    int, typer.Option(metavar="N", parser=parse_seed, help="Seed of the draw of pairs.")
]
KINDS = {
    "hose": "a hose: each source has a rate that its paths share",
    "pipe": "pipes: each path has a rate of its own",
    "inside": "limited inside: paths without a common end take from each other",
    "mixed": "mixed: the experiments do not agree",
}


def bottlenecks(
    hosts: HostsOption,
    pairs: PairsOption = 20,
    duration: ExperimentOption = "3s",
    seed: PairsSeedOption = 1,
    hops: Annotated[
        bool, typer.Option("--hops", help="Count hops too, and measure the links out of racks and subtrees.")
    ] = False,
    secret: SecretOption = None,
    controller: ByControllerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Find paths that share a bottleneck, such as a hose."""
    from leeward import probe

    if controller:
        options: dict[str, Any] = {"duration": duration, "pairs": pairs, "seed": seed, "hops": hops}
        access, names = (controller, token_file, ca, secret), hosts_in_cluster(hosts)
        result = run_survey(*access, "measuring", "bottlenecks", names, **options)["result"]
    else:
        targets, key = hosts_of(hosts), secret_of(secret)
        with survey_progress("measuring") as on_progress:
            result = probe.bottlenecks(
                targets,
                duration=duration,
                pairs=pairs,
                seed=seed,
                hops=hops,
                secret=key,
                progress=on_progress,
            )
    if not print_data(output, result, _experiments(result), COLUMNS["probe bottlenecks"]):
        print_bottlenecks(result)
    report_failures(result["errors"], "transfers failed; their experiments are left out")


def _experiments(result: dict[str, Any]) -> list[dict[str, Any]]:
    uplinks = [one["experiment"] for one in (*result["uplinks"], *result["subtrees"])]
    return [*result["between_four"], *result["from_one"], *uplinks]


def print_bottlenecks(result: dict[str, Any]) -> None:
    """Prints the experiments, the shared links, and the kind of network."""
    print_table(
        ("PATH", "BESIDE", "ALONE", "THEN", "FELL BY", "TOGETHER", "SHARE"),
        "<<>>>><",
        [_row(one) for one in _experiments(result)],
    )
    print()
    for words, key in (("between four hosts", "between_four"), ("from one source", "from_one")):
        print_text(f"{words}: {result[f'{key}_share']} of {len(result[key])} take from each other")
    for group, key, letter in (("rack", "uplinks", "r"), ("subtree", "subtrees", "s")):
        for one in result[key]:
            found = "a bottleneck" if one["bottleneck"] else "no bottleneck"
            print_text(f"link out of {group} {letter}{one[group]}: {found}")
    for one in result["shared_links"]:
        print_text(f"paths out of {', '.join(one['hosts'])} share {rate_text(one['rate_bps'])}")
    if result["kind"]:
        print_text(f"the network is {KINDS[result['kind']]}")
    else:
        print_note("hint: with at least four hosts, the kind of network can be determined")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    path, beside = one["path"], one["beside"]
    return (
        f"{path['from']} > {path['to']}",
        f"{beside['from']} > {beside['to']}",
        rate_text(one["alone_bps"]),
        rate_text(one["beside_bps"]),
        percent_text(one["fall"], 0),
        percent_text(one["sum"], 0),
        "yes" if one["shares"] else "no",
    )
