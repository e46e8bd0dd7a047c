"""`leeward probe cross`: cross traffic on a path."""

from typing import Annotated

import typer

from leeward._quantities import rate_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.options import (
    DestinationArgument,
    SecretOption,
    SourceArgument,
    TransferOption,
    secret_of,
    survey_progress,
)

EXAMPLES = """\b
Examples:
  leeward probe cross 10.0.0.1 10.0.0.2
  leeward probe cross 10.0.0.1 10.0.0.2 --rate 1Gbps --for 5s
  leeward probe cross here 127.0.0.1 --for 1s -o json
"""


def cross(
    source: SourceArgument,
    destination: DestinationArgument,
    duration: TransferOption = "10s",
    rate_given: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="Rate of the path; by default a second transfer measures it.",
            show_default=False,
        ),
    ] = None,
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Estimate the number of competing connections on a path.

    The estimate is in units of a connection that always sends.
    """
    from leeward import probe

    key = secret_of(secret)
    with survey_progress("measuring") as on_progress:
        result = probe.cross(
            source, destination, duration=duration, rate=rate_given, secret=key, progress=on_progress
        )
    if print_data(output, result, [result], COLUMNS["probe cross"]):
        return
    each = "" if result["each_bps"] is None else f", each of two {rate_text(result['each_bps'])}"
    print_text(f"one connection gets {rate_text(result['one_bps'])}{each}")
    if result["connections"] is None:
        print_text("\nA second connection did not slow the first: the competing connections are unknown.")
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
