"""Options of commands that place the tasks of an app: the network, constraints on hosts, the policy."""

from enum import StrEnum
from typing import Annotated

import typer

from leeward.cli.options import choice, parse_seed


class Level(StrEnum):
    """Level at which tasks are apart."""

    host = "host"
    rack = "rack"


TelemetryOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Loads of links, as CSV; by default, all loads are unknown."),
]
"""Option `--telemetry`."""
CrossTrafficOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Connections of others on links, as CSV with the columns link,connections; by default those"
        " of the cluster file.",
        show_default=False,
    ),
]
"""Option `--cross-traffic`."""
MaxAgeOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Greatest age of a link's latest load, if telemetry has times (column t_s).",
    ),
]
"""Option `--max-age`."""
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME,...", help="Hosts, racks or pods that must have no task."),
]
"""Option `--exclude`."""
TagOption = Annotated[list[str] | None, typer.Option(metavar="TAG,...", help="Tags that hosts must have.")]
"""Option `--tag`."""
ApartOption = Annotated[
    Level | None,
    typer.Option(
        metavar="host|rack",
        parser=choice(Level),
        help="Level at which the tasks are apart: no two share a host, or a rack.",
    ),
]
"""Option `--apart`."""
PolicyOption = Annotated[
    str, typer.Option(metavar="POLICY", help="Policy; settings follow colons: leeward:effort=1.")
]
"""Option `--policy`."""
SeedOption = Annotated[
    int, typer.Option(metavar="N", parser=parse_seed, help="Seed of tie-breaking, from 0.")
]
"""Option `--seed`."""
