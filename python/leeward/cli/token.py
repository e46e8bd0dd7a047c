"""`leeward token`: tokens of a service's clients."""

from typing import Annotated

import typer

from leeward import _native
from leeward.cli.groups import Commands
from leeward.cli.notes import print_note

EXAMPLES = """\b
Examples:
  leeward token new --name namenode --role place --tokens tokens
  leeward token new --name r0h1 --role report --host r0h1 --tokens tokens
  leeward serve --cluster c.yaml --listen 0.0.0.0:7600 --tokens tokens
"""

app = Commands()


@app.command("new", epilog=EXAMPLES)
def new(
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the client.", show_default=False)],
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="Role: `read`, `report`, `place` or `admin`.",
            show_default=False,
        ),
    ],
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST,...",
            help="With --role report: limits the token to reports of these hosts.",
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File to append the token's line to; by default the line goes to stderr.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Create a token and print it once.

    The file stores only a hash of the token.
    """
    token, line = _native.new_token(name, role, host or [], tokens)
    if tokens is None:
        print_note(line)
    print(token)


@app.callback(epilog=EXAMPLES)
def token() -> None:
    """Manage tokens of a service's clients."""
