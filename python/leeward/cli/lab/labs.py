"""`leeward lab list`: labs on this machine."""

from dataclasses import asdict

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import print_failures, time_of_day
from leeward.cli.notes import print_note, print_warning
from leeward.cli.output import Format, FormatOption, print_data, print_table

EXAMPLES = """\b
Examples:
  leeward lab list
  leeward lab list -o json
"""


def labs(output: FormatOption = Format.table) -> None:
    """List the labs on this machine.

    A lab is up if no process owns it, or if its process runs. `leeward lab down` removes labs whose process
    was killed. Errors that ended labs are shown until `leeward lab down`, or the next lab of the name.
    """
    from leeward import lab

    known = lab.labs()
    for each in known:
        if each.problem:
            print_warning(each.problem)
    print_failures()
    rows = [asdict(each) for each in known]
    document = {"labs": rows, "failures": [asdict(each) for each in lab.failures()]}
    if print_data(output, document, "labs", COLUMNS["lab list"]):
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
                "broken" if each.problem else "up" if each.up else "killed",
                time_of_day(each.since_s),
                "-" if each.hosts is None else str(each.hosts),
                "-" if each.process is None else str(each.process),
            )
            for each in known
        ],
    )
