"""`leeward schema`: the JSON schemas of the files that Leeward reads."""

from typing import Annotated

import typer

from leeward import _native
from leeward.cli.output import print_json

EXAMPLES = """\b
Examples:
  leeward schema cluster > cluster.schema.json
  leeward schema scenario
  leeward schema telemetry-map
"""

MAP = "telemetry-map"
KINDS = [*_native.schemas(), MAP]
Kind = Annotated[str, typer.Argument(metavar="KIND", help=f"One of: {', '.join(KINDS)}.", show_default=False)]


def schema(kind: Kind) -> None:
    """Print the JSON schema of a kind of file.

    Editors use it to complete fields in YAML and to mark errors.
    """
    if kind not in KINDS:
        raise typer.BadParameter(f"`{kind}`: expected one of {', '.join(KINDS)}")
    if kind == MAP:
        from leeward.telemetry.schema import schema as map_schema

        print_json(map_schema())
    else:
        print(_native.schema(kind))
