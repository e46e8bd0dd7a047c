"""`leeward lab down`: removes labs."""

from typing import Annotated

import typer

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import NameOption
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
        bool, typer.Option("--all", help="Remove all labs that no running process owns.")
    ] = False,
    output: FormatOption = Format.table,
) -> None:
    """Remove a lab, and what killed labs left.

    Programs in the lab end, and everything that it made is removed. Without --name, the command removes the
    only lab that is up, and what labs left whose processes were killed. It touches nothing that no lab made,
    and no lab whose process runs.
    """
    from leeward import lab

    known = [] if name is not None else lab.labs()
    left = [each.name for each in known if not each.up and not each.problem]
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
            print_note(f"removed lab {one}")
    print_data(output, {"removed": removed}, [{"name": one} for one in removed], COLUMNS["lab down"])
    if failures:
        raise failures[0]
    if is_unclear:
        raise InputError.about("name", f"labs {', '.join(kept)} are up: name one, or use --all")
    if not names:
        print_note("no lab to remove")
