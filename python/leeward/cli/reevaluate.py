"""`leeward reevaluate`: whether the tasks of a running app should move to other hosts."""

from dataclasses import asdict
from typing import Annotated

import typer

from leeward._age import MAX_AGE
from leeward._quantities import read_share
from leeward.cli.app_options import (
    ApartOption,
    CrossTrafficOption,
    ExcludeOption,
    MaxAgeOption,
    PolicyOption,
    SeedOption,
    TagOption,
    TelemetryOption,
)
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.options import LabelOption, name_flags, read_labels
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import slow_notice

EXAMPLES = """\b
Examples:
  leeward place tasks --cluster examples/clusters/tenant.yaml --app examples/apps/wordcount.yaml \\
      -o json > placed.json
  leeward reevaluate --cluster examples/clusters/tenant.yaml --app examples/apps/wordcount.yaml \\
      --placed placed.json
  leeward reevaluate --cluster examples/clusters/tenant.yaml --app examples/apps/wordcount.yaml \\
      --placed placed.json --move-cost 30s --margin 20% -o json
"""


def reevaluate(
    cluster: Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)],
    app: Annotated[
        str,
        typer.Option(metavar="FILE", help="App file: tasks and their traffic matrix.", show_default=False),
    ],
    placed: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Current hosts of the tasks, as JSON: the output of `leeward place tasks -o json`, or an"
            " object with the host of each task.",
            show_default=False,
        ),
    ],
    remaining: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Bytes that each task still has to send to each, as CSV or NumPy file, like --matrix of"
            " `place tasks`; by default all bytes of the app.",
            show_default=False,
        ),
    ] = None,
    move_cost: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE|DURATION",
            help="State that each task which moves carries over the network, such as 2GiB; or time for which"
            " the app stands still instead, such as 30s. By default each task carries its memory.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Share of the remaining time that moves must save, their cost included."
        ),
    ] = "10%",
    telemetry: TelemetryOption = None,
    cross_traffic: CrossTrafficOption = None,
    max_age: MaxAgeOption = MAX_AGE,
    exclude: ExcludeOption = None,
    tag: TagOption = None,
    label: LabelOption = None,
    apart: ApartOption = None,
    policy: PolicyOption = "leeward",
    seed: SeedOption = 1,
    output: FormatOption = Format.table,
) -> None:
    """Decide if the tasks of a running app should move.

    Shows the moves, or the reason why the app stays. The command moves nothing.
    """
    from leeward.placement import reevaluate as decide

    network = read(cluster)
    with (
        slow_notice("deciding"),
        name_flags(
            where="--placed",
            move_cost="--move-cost",
            margin="--margin",
            tags="--tag",
            labels="--label",
            max_age="--max-age",
            exclude="--exclude",
            matrix="--remaining",
            policy="--policy",
        ),
    ):
        answer = decide(
            app,
            network,
            placed,
            remaining=remaining,
            move_cost=move_cost,
            margin=read_share("margin", margin, 0, 1),
            policy=policy,
            telemetry=telemetry,
            cross_traffic=cross_traffic,
            max_age=max_age,
            exclude=exclude or (),
            tags=tag or (),
            labels=read_labels(label),
            apart=None if apart is None else apart.value,
            seed=seed,
        )
    if print_data(output, asdict(answer), "moves", COLUMNS["reevaluate"]):
        return
    if answer.moves:
        print_table(
            ("MOVE", "FROM", "TO"),
            "<<<",
            [(move["task"], move["from"], move["to"]) for move in answer.moves],
        )
        print_text("")
    print_text(f"{'move' if answer.worth_it else 'stay'}: {answer.reason}")
