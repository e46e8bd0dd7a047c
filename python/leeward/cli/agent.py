"""`leeward agent`: reports loads of a host's interfaces and disks to controllers."""

import signal
import sys
from typing import Annotated

import typer

from leeward import _native

EXAMPLES = """\b
Examples:
  leeward agent --controller http://127.0.0.1:7600 --host r0h1
  leeward agent --controller https://leeward:7600 --token-file /etc/leeward/agent.token
  leeward agent --controller https://10.0.0.5:7600 --token-file token --ca ca.pem --interface bond0
  leeward agent --controller https://leeward-1:7600 --controller https://leeward-2:7600 --device sdb=disk0

It runs until it is interrupted (Ctrl-C) or terminated, and goes on trying while a controller is away.
`leeward-agent` is the same program without Python.
"""


def agent(
    controller: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            help="A controller's URL, http or https; repeat it for each of several that share a store.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The host's name in the cluster.", show_default="the machine's name"
        ),
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An interface to watch; may be given several times.",
            show_default="all that are physical",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DISK[=NAME]",
            help="A disk to report, with its name in the cluster if different; may be given several times.",
            show_default="all that are physical",
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time between reports, the controller's.", show_default="1s"),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with a token of role `report`.", show_default=False),
    ] = None,
    ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="PEM file of the authority of the controller's certificate.",
            show_default="the system's",
        ),
    ] = None,
    probe_listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Take part in measurements here.", show_default=False),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File with the secret that hosts share for measurements.", show_default=False
        ),
    ] = None,
) -> None:
    """Report the loads of this host's interfaces and disks."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    # The default action ends it at a signal; Python's own handler would wait until it ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings: dict[str, str | list[str] | None] = {
        "controllers": controller,
        "host": host,
        "interfaces": interface or [],
        "devices": device or [],
        "interval": interval,
        "token_file": token_file,
        "ca": ca,
        "probe_listen": probe_listen,
        "secret": secret,
    }
    _native.run_agent(settings, tell)
