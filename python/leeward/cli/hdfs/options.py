"""Options of the commands that read the state of a NameNode."""

from typing import Annotated

import typer

from leeward.hdfs.namenode import URL

NameNodeOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="LEEWARD_NAMENODE",
        show_envvar=True,
        help="Address of the NameNode's web interface.",
    ),
]
NAMENODE = URL
"""Default address of a NameNode."""
