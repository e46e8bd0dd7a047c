"""`leeward probe cross`: cross traffic on a path."""

from enum import StrEnum
from typing import Annotated

import typer

from leeward._quantities import rate_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import choice_option
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.options import (
    DestinationArgument,
    SecretOption,
    SourceArgument,
    secret_of,
    survey_progress,
)

EXAMPLES = """\b
Examples:
  leeward probe cross 10.0.0.1 10.0.0.2
  leeward probe cross 10.0.0.1 10.0.0.2 --rate 1Gbps --for 5s
  leeward probe cross here 127.0.0.1 --for 1s -o json
  leeward probe cross 10.0.0.1 10.0.0.2 --rate 1Gbps --congestion cubic
"""


class Congestion(StrEnum):
    """Congestion controls of TCP."""

    cubic = "cubic"
    reno = "reno"
    bbr = "bbr"


def cross(
    source: SourceArgument,
    destination: DestinationArgument,
    duration: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="Time with one connection, and then with a second one, 100ms to 30s.",
        ),
    ] = "10s",
    rate_given: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Rate of the path; by default two connections measure it.",
            show_default=False,
        ),
    ] = None,
    congestion: Annotated[
        Congestion | None,
        choice_option(
            Congestion,
            description="Congestion control of the connections; by default that of FROM's system. Connections"
            " of the same control are counted best.",
        ),
    ] = None,
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Estimate the number of competing connections on a path.

    The estimate is in units of a connection that always sends. A new connection may get more or less than one
    that runs for longer. So a second connection begins later, and the first, no longer new, is the unit.
    """
    from leeward import probe

    key = secret_of(secret)
    with survey_progress("measuring") as on_progress:
        result = probe.cross(
            source,
            destination,
            duration=duration,
            rate=rate_given,
            congestion=congestion.value if congestion else None,
            secret=key,
            progress=on_progress,
        )
    if print_data(output, result, [result], COLUMNS["probe cross"]):
        return
    print_text(
        f"one connection gets {rate_text(result['one_bps'])}; with a second one that begins later, the first"
        f" gets {rate_text(result['earlier_bps'])} and the second {rate_text(result['later_bps'])}"
    )
    if result["connections"] is None:
        print_text("\nThe second connection took no rate from others: the competing connections are unknown.")
        print_note("hint: --rate sets the rate of the path")
        return
    path_rate = f"of {rate_text(result['path_bps'])}"
    plausible = result["plausible"]
    over_time = ", {:.1f} to {:.1f} over time".format(*plausible) if plausible else ""
    print_text(f"{result['connections']:.2f} competing connections on a path {path_rate}{over_time}\n")
    print_table(
        ("OWN CONNECTIONS", "EACH GETS"),
        ">>",
        [(str(one["connections"]), rate_text(one["each_bps"])) for one in result["expected"]],
    )
