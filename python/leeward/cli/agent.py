"""`leeward agent`: reports loads of a host's interfaces and disks to controllers."""

import json
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from leeward import _native
from leeward.cli.common import runs_until_stopped

EXAMPLES = """\b
Examples:
  leeward agent --controller http://127.0.0.1:7600 --host r0h1
  leeward agent --controller https://leeward:7600 --token-file /etc/leeward/agent.token
  leeward agent --controller https://10.0.0.5:7600 --token-file token --ca ca.pem --interface bond0
  leeward agent --controller https://leeward-1:7600 --controller https://leeward-2:7600 --disk sdb=disk0
  leeward agent --controller https://leeward:7600 --host node-1 --pods /host/proc
  leeward agent --controller https://leeward:7600 --token-file token --enforce net \\
      --enforce 'nfs --export nas:/vol --device ssd.json'
  leeward agent --controller https://leeward:7600 --volume /data/1/dfs --volume /data/2/dfs --dscp cs6

The agent runs until it is interrupted (Ctrl-C) or terminated, and retries while a controller is unavailable.
Enforcers are processes of their own: one that fails is started again, and they undo their work when the agent
ends. `leeward-agent` is the same program without Python.
"""


@runs_until_stopped
def agent(
    controller: Annotated[
        list[str],
        typer.Option(
            metavar="URL,...",
            help="URLs of controllers, http or https; several share a store.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST", help="Name of the host in the cluster.", show_default="the machine's name"
        ),
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            help="Interfaces to watch.",
            show_default="all physical interfaces",
        ),
    ] = None,
    disk: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DISK[=NAME],...",
            help="Disks to report, and their names in the cluster if these differ.",
            show_default="all physical disks",
        ),
    ] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR,...",
            help="Folders of volumes; their file systems count as the host's storage.",
            show_default="no storage is reported",
        ),
    ] = None,
    pods: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of processes, such as /proc: report the traffic of Kubernetes pods.",
            show_default="pods are not reported",
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Time between reports, the same as the controller's.", show_default="1s"
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with a token of role `report`.", show_default=False),
    ] = None,
    ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="PEM file with the certificate authorities of the controller.",
            show_default="the system's",
        ),
    ] = None,
    dscp: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="DSCP of packets to controllers: a name, such as cs6, or 0 to 63.",
            show_default="the system's, usually 0",
        ),
    ] = None,
    probe_listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address on which the agent listens for measurements.",
            show_default=False,
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with the secret that the hosts share for measurements.",
            show_default=False,
        ),
    ] = None,
    enforce: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="Enforcers to run beside, `net` or `nfs` with options of `leeward enforce`; the controllers,"
            " the token and the host are those of the agent.",
            show_default="none",
        ),
    ] = None,
) -> None:
    """Report the loads of this host's interfaces, disks and pods, and the storage of its volumes."""

    def print_line(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    if enforce:
        # Enforcers undo their work before the agent ends.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    else:
        # The default action ends the process at once; Python's own handler would wait until the agent ends.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = {
        "controllers": controller,
        "host": host,
        "interfaces": interface or [],
        "devices": disk or [],
        "volumes": volume or [],
        "pods": pods,
        "interval": interval,
        "token_file": token_file,
        "ca": ca,
        "dscp": dscp,
        "probe_listen": probe_listen,
        "secret": secret,
        "enforce": enforce or [],
        "enforcer_program": [str(Path(sys.executable).with_name("leeward")), "enforce"],
    }
    _native.run_agent(json.dumps(arguments), print_line)
