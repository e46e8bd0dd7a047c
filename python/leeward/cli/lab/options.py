"""Options that the commands of the lab share."""

from typing import Annotated

import typer

from leeward.cli.options import whole_number

DilationOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_number(1, 100_000),
        help="Real seconds for each virtual second. [default: 30 for each rack, at least 40]",
        show_default=False,
    ),
]
BoundOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Largest lateness of 99 % of the packets, in virtual time. A run that is later is refused."
        " [default: 5us]",
        show_default=False,
    ),
]
