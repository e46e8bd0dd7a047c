"""`leeward lab list`: labs on this machine."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note, print_warning
from leeward.cli.output import Format, FormatOption, print_data, print_table

EXAMPLES = """\b
Examples:
  leeward lab list
  leeward lab list -o json
"""


def labs(output: FormatOption = Format.table) -> None:
    """List the labs on this machine.

    A lab is up if no process owns it, or if its process runs. `leeward lab down` removes the others.
    """
    from leeward import lab

    known = lab.labs()
    for each in known:
        if each.problem:
            print_warning(each.problem)
    rows = [asdict(each) for each in known]
    if print_data(output, {"labs": rows}, rows, COLUMNS["lab list"]):
        return
    if not known:
        print_note("no lab")
        return
    print_table(
        ("LAB", "STATE", "SINCE", "HOSTS", "PROCESS"),
        "<<<>>",
        [
            (
                each.name,
                "broken" if each.problem else "up" if each.up else "left",
                _time(each.since_s),
                "-" if each.hosts is None else str(each.hosts),
                "-" if each.process is None else str(each.process),
            )
            for each in known
        ],
    )


def _time(seconds: float) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
