"""`leeward serve`: the service."""

import signal
import sys
from typing import Annotated

import typer

from leeward import _native
from leeward.cli.cluster import read

EXAMPLES = """\b
Examples:
  leeward serve --cluster c.yaml
  leeward serve --cluster c.yaml --policy sinbad:remote_racks=2 --listen 0.0.0.0:7600
  curl localhost:7600/v1/health

It runs until it is interrupted (Ctrl-C) or terminated, and then finishes the requests under way.
"""


def serve(
    cluster: Annotated[str, typer.Option(help="Cluster file.", show_default=False)],
    policy: Annotated[str, typer.Option(help="A policy, with settings after colons.")] = "sinbad",
    listen: Annotated[
        str, typer.Option(help="Address and port; port 0 finds a free one.")
    ] = "127.0.0.1:7600",
    interval: Annotated[str, typer.Option(help="Time between reports of a link.")] = "1s",
    seed: Annotated[int, typer.Option(help="Seed of ties.", min=0)] = 1,
) -> None:
    """Take in telemetry and place replicas over HTTP."""
    network = read(cluster)
    # The service stops by itself when it is told to. Python's own handler would end it with an exception.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _native.serve(network, policy, listen, interval, seed, _tell_where)


def _tell_where(address: str) -> None:
    print(f"listening on http://{address}", file=sys.stderr, flush=True)
