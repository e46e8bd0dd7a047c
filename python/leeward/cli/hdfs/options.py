"""Options of the commands that read the state of a NameNode."""

from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.options import parse_path
from leeward.hdfs.namenode import URL

NameNodeOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="LEEWARD_NAMENODE",
        show_envvar=True,
        help="Address of the NameNode's web interface, such as http://namenode:9870.",
    ),
]
NameNodeCaOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        help="PEM file with the certificate authorities of the NameNode; by default the system's.",
        show_default=False,
    ),
]
NAMENODE = URL
"""Default address of a NameNode."""
