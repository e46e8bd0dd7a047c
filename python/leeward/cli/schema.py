"""`leeward schema`: the JSON schemas of the files that Leeward reads."""

from typing import Annotated

import typer

from leeward import _native

EXAMPLES = """\b
Examples:
  leeward schema cluster > cluster.schema.json
  leeward schema scenario
"""

Kind = Annotated[
    str, typer.Argument(metavar="KIND", help=f"One of: {', '.join(_native.schemas())}.", show_default=False)
]


def schema(kind: Kind) -> None:
    """Print the JSON schema of a kind of file.

    An editor that checks YAML completes fields with it and marks mistakes.
    """
    if kind not in _native.schemas():
        raise typer.BadParameter(f"`{kind}`: expected one of {', '.join(_native.schemas())}")
    print(_native.schema(kind))
