"""`leeward probe cross`: cross traffic on a path."""

import sys
from typing import Annotated

import typer

from leeward._quantities import rounded_rate_text
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.probe.options import (
    DestinationArgument,
    SecretOption,
    SourceArgument,
    TransferOption,
    secret_of,
    surveying,
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
    """Count competing connections.

    The unit is a connection that always sends.
    """
    from leeward import probe

    known = secret_of(secret)
    with surveying("measuring") as tell:
        made = probe.cross(
            source, destination, duration=duration, rate=rate_given, secret=known, progress=tell
        )
    if output is Format.json:
        print_json(made)
        return
    print(f"one connection gets {rounded_rate_text(made['one_bps'])}", end="")
    print("" if made["each_bps"] is None else f", each of two {rounded_rate_text(made['each_bps'])}")
    if made["connections"] is None:
        print("\nA second connection did not slow the first: the competing connections are unknown.")
        print("hint: --rate says what the path carries", file=sys.stderr)
        return
    of = f"of {rounded_rate_text(made['path_bps'])}"
    print(f"{made['connections']:.2f} competing connections on a path {of}", end="")
    if made["plausible"]:
        print(", {:.1f} to {:.1f} over time".format(*made["plausible"]), end="")
    print("\n")
    print_table(
        ("OWN CONNECTIONS", "EACH GETS"),
        ">>",
        [(str(one["connections"]), rounded_rate_text(one["each_bps"])) for one in made["expected"]],
    )
