"""`leeward lab down`: removes labs."""

from typing import Annotated

import typer

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import NameOption, print_failures
from leeward.cli.notes import print_note, print_warning
from leeward.cli.output import Format, FormatOption, print_data
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  sudo leeward lab down
  sudo leeward lab down --name four
  sudo leeward lab down --all
"""


def down(
    name: NameOption = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Remove all labs that are up, except those that belong to a running program."
        ),
    ] = False,
    output: FormatOption = Format.table,
) -> None:
    """Remove a lab, and the remains of killed labs.

    Programs in the lab end, and the command removes everything that the lab made. Without --name, it
    removes the only lab that is up, and the remains of labs whose processes were killed. With --name, it
    also removes the remains of a lab without a state file, as after a reboot. A lab of a running program
    stays.
    """
    from leeward import lab

    known = [] if name is not None else lab.labs()
    print_failures(name)
    ended = {each.name for each in lab.failures()} - {each.name for each in known} if name is None else set()
    left = [each.name for each in known if not each.up and not each.problem] + sorted(ended)
    kept = [each.name for each in known if each.up and (each.process is None or each.stands)]
    is_unclear = len(kept) > 1 and not every
    for each in known:
        if each.problem:
            print_warning(each.problem)
    names = [name] if name is not None else left + ([] if is_unclear else kept)
    removed: list[str] = []
    failures = []
    for one in names:
        try:
            lab.remove(one)
        except OSError as error:
            failures.append(error)
        else:
            removed.append(one)
            print_note(f"removed {'the error of ' if one in ended else ''}lab {one}")
    print_data(output, {"removed": removed}, [{"name": one} for one in removed], COLUMNS["lab down"])
    if failures:
        raise failures[0]
    if is_unclear:
        raise InputError.about("name", f"labs {', '.join(kept)} are up: name one, or use --all")
    if not names:
        print_note("no lab to remove")
