"""`leeward lab down`: removes labs whose processes have ended."""

from typing import Annotated

import typer

from leeward.cli.notes import print_note

EXAMPLES = """\b
Examples:
  sudo leeward lab down
  sudo leeward lab down --name run-4711
"""


def down(
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Lab to remove. [default: all that are not up]", show_default=False
        ),
    ] = None,
) -> None:
    """Remove what killed labs left.

    A lab removes everything that it made when it ends. A lab that was killed leaves namespaces, which this
    command removes. It touches nothing that no lab made, and no lab that is up.
    """
    from leeward import lab

    known = lab.labs()
    names = [name] if name is not None else [each.name for each in known if not (each.up or each.problem)]
    for each in known:
        if name is None and each.problem:
            print_note(f"warning: {each.problem}")
    failures = []
    for left in names:
        try:
            lab.remove(left)
        except OSError as error:
            failures.append(error)
        else:
            print_note(f"removed lab {left}")
    if failures:
        raise failures[0]
    if not names:
        print_note("no lab to remove")
