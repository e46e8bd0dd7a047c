"""`leeward migrate`: tasks that should leave hot racks."""

from typing import Annotated

import typer

from leeward._age import MAX_AGE
from leeward._quantities import percent_text, read_share
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import name_flags, parse_seed
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import slow_notice
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward migrate --cluster examples/clusters/racks.yaml --telemetry examples/telemetry/racks.csv \\
      --running examples/apps/running.yaml
  leeward migrate --cluster examples/clusters/racks.yaml --telemetry examples/telemetry/racks.csv \\
      --running examples/apps/running.yaml --hot 60% -o json
"""


def migrate(
    cluster: Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)],
    telemetry: Annotated[
        str, typer.Option(metavar="FILE", help="Loads of links, as CSV: link,load_bps.", show_default=False)
    ],
    running: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="File of running tasks, and the moves that their jobs accept.",
            show_default=False,
        ),
    ],
    max_age: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Greatest age of a link's latest load, if telemetry has times (column t_s).",
        ),
    ] = MAX_AGE,
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="Policy for moves; settings follow colons: utp:margin=0.1.")
    ] = "utp",
    hot: Annotated[
        str,
        typer.Option(metavar="SHARE", help="Utilization above which a link is hot, such as 75% or 0.75."),
    ] = "75%",
    seed: Annotated[
        int, typer.Option(metavar="N", parser=parse_seed, help="Seed of tie-breaking, from 0.")
    ] = 1,
    output: FormatOption = Format.table,
) -> None:
    """Choose tasks that should leave hot racks.

    Shows the moves in order, and the reason why each other task stays. The command moves nothing.
    """
    from leeward.placement import migrate as decide

    network = read(cluster)
    with slow_notice("deciding"), name_flags(policy="--policy", hot="--hot", max_age="--max-age"):
        decision = decide(
            network, running, telemetry, max_age=max_age, policy=policy, hot=_hot(hot), seed=seed
        )
    is_printed = print_data(output, decision, "moves", COLUMNS["migrate"])
    if decision["refused"]:
        print_error(decision["refused"])
        raise typer.Exit(1)
    if is_printed:
        return
    if not decision["hot"]:
        print_note("no link of a rack is hot")
        return
    print_table(
        ("HOT LINK", "LOAD", "AFTER"),
        "<>>",
        [
            (link["link"], percent_text(link["utilization"], 0), percent_text(link["after"], 0))
            for link in decision["hot"]
        ],
    )
    if decision["moves"]:
        print()
        print_table(
            ("MOVE", "FROM", "TO", "OFF"),
            "<<<<",
            [(move["task"], move["from"], move["to"], move["link"]) for move in decision["moves"]],
        )
    if decision["kept"]:
        print()
        print_table(
            ("KEPT", "HOST", "ON", "BECAUSE"),
            "<<<<",
            [(task["task"], task["host"], task["link"], task["because"]) for task in decision["kept"]],
        )


def _hot(text: str) -> float:
    """Reads a share, in percent or as a fraction.

    Raises:
        InputError: The text is neither; the error names `hot`.
    """
    if text.strip().endswith("%"):
        return read_share("hot", text)
    try:
        return float(text)
    except ValueError:
        raise InputError.about("hot", f"`{text}`: expected a percentage, such as 75%") from None
