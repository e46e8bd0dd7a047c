"""`leeward lab check`: the dilation that this machine can carry."""

import math
from dataclasses import asdict
from typing import Annotated

import typer

from leeward._quantities import rate_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import BoundOption
from leeward.cli.options import whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text

EXAMPLES = """\b
Examples:
  sudo leeward lab check
  sudo leeward lab check --racks 3 --bound 2us
"""


def check(
    racks: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(2, 64), help="Racks that send to each other.")
    ] = 8,
    bound: BoundOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Find the dilation that this machine can carry.

    Tries one dilation after another, for two seconds each, with all racks sending, until 99 % of the packets
    are within the bound. A day of the schedule has 180 us.
    """
    from leeward.lab import check as check_lab

    trials = check_lab(racks, bound=bound)
    data = [asdict(trial) for trial in trials]
    for row in data:
        row |= {
            key: None for key, value in row.items() if isinstance(value, float) and not math.isfinite(value)
        }
    if print_data(output, data, data, COLUMNS["lab check"]):
        return
    print_table(
        ("DILATION", "DAY", "DEVIATION", "PACKETS LATE P99", "CARRIED", "KEPT UP"),
        ">>>>>>",
        [
            (
                f"{trial.dilation}",
                *(
                    "-" if not math.isfinite(value) else time_text(value, 4)
                    for value in (trial.day_s, trial.day_deviation_s, trial.late_p99_s)
                ),
                rate_text(trial.rate_bps),
                "yes" if trial.kept_up else "no",
            )
            for trial in trials
        ],
    )
    if trials[-1].kept_up:
        print_text(f"\nThis machine carries {racks} racks at a dilation of {trials[-1].dilation}.")
    else:
        print_text(f"\nThis machine carries {racks} racks at none of these dilations: is it busy?")
