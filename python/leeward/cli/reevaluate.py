"""`leeward reevaluate`: whether the tasks of a running app should move to other hosts."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

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
from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
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
  leeward reevaluate --decision 42 --dry-run
"""
FOR_FILES = ("telemetry", "cross_traffic", "max_age", "exclude", "tag", "label", "apart", "policy", "seed")
"""Options that a controller takes from the stored decision and from its own telemetry."""
PATIENCE_S = 1.0
"""Time during which a request to an unavailable controller is retried."""


def reevaluate(
    context: typer.Context,
    cluster: Annotated[
        str | None, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="App file: tasks and their traffic matrix.", show_default=False),
    ] = None,
    placed: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Current hosts of the tasks, as JSON: the output of `leeward place tasks -o json`, or an"
            " object with the host of each task.",
            show_default=False,
        ),
    ] = None,
    decision: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Decision of a controller that placed the app, instead of --cluster, --app and --placed.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --decision: decide, and move nothing.")
    ] = False,
    remaining: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE,...",
            help="Bytes that each task still has to send to each, as CSV or NumPy file, like --matrix of"
            " `place tasks`, and one file for each phase that is left; by default all bytes of the app.",
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
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Decide if the tasks of a running app should move.

    Shows the moves, or the reason why the app stays. With files, the command moves nothing. With --decision,
    the controller moves the app in its ledger, and the scheduler of the app has to move the tasks.
    """
    from leeward._matrices import read_remaining
    from leeward.placement import reevaluate as decide

    if decision is not None:
        if cluster or app or placed:
            message = "expected --decision, or --cluster, --app and --placed"
            raise typer.BadParameter(message, param_hint="--decision")
        _reject_options_for_files(context)
        with name_flags(move_cost="--move-cost", margin="--margin"), controller_errors():
            service = client(controller, token_file, ca, PATIENCE_S)
            left = None
            if remaining is not None:
                tasks = [task["name"] for task in service.decision(decision)["request"].get("tasks", [])]
                files = enumerate(remaining)
                left = [one for phase, file in files for one in read_remaining(file, tasks, phase)]
            share = read_share("margin", margin, 0, 1)
            record = service.reevaluate(
                decision, remaining=left, move_cost=move_cost, margin=share, dry_run=dry_run
            )
        _print(record["reevaluation"], output)
        return
    if cluster is None or app is None or placed is None:
        message = "expected --cluster, --app and --placed, or --decision"
        raise typer.BadParameter(message, param_hint="--cluster, --app, --placed")
    if dry_run:
        raise typer.BadParameter("files are never changed; use it with --decision", param_hint="--dry-run")
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
            remaining=remaining if remaining and len(remaining) > 1 else remaining and remaining[0],
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
    _print(asdict(answer), output)


def _reject_options_for_files(context: typer.Context) -> None:
    for name in FOR_FILES:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            message = "the controller knows it; use it with --cluster, --app and --placed"
            raise typer.BadParameter(message, param_hint=f"--{name.replace('_', '-')}")


def _print(answer: Mapping[str, Any], output: Format) -> None:
    if print_data(output, answer, "moves", COLUMNS["reevaluate"]):
        return
    if answer["moves"]:
        print_table(
            ("MOVE", "FROM", "TO"),
            "<<<",
            [(move["task"], move["from"], move["to"]) for move in answer["moves"]],
        )
        print_text("")
    print_text(f"{'move' if answer['worth_it'] else 'stay'}: {answer['reason']}")
