"""`leeward lab compare`: the simulator beside the lab."""

from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from leeward._quantities import percent_text, rate_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import BoundOption, DilationOption
from leeward.cli.lab.run import lab_figures, print_lab
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import STEPS, progress, steps

EXAMPLES = """\b
Examples:
  sudo leeward lab compare examples/circuits/strobe.yaml --dilation 60
  sudo leeward lab compare examples/circuits/strobe.yaml -o json
"""


def compare(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    dilation: DilationOption = None,
    bound: BoundOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Show the figures of the simulator beside those of real kernels.

    Runs a scenario in the packet simulator and in the lab. A difference is that of the lab as a share of the
    simulator's figure.
    """
    from leeward import lab, packets

    network = packets.read(scenario)
    # The lab first: it may be rejected at once.
    with progress(f"running {scenario}", STEPS) as advance:
        measured = lab.run(network, dilation=dilation, bound=bound, progress=partial(steps(advance), 0))
    simulated = network.run()
    rows = lab.compare(simulated, measured.run)
    data = [asdict(row) | {"difference": row.difference} for row in rows]
    if print_data(output, {"figures": data} | lab_figures(measured), data, COLUMNS["lab compare"]):
        return
    print_table(
        ("FIGURE", "SIMULATOR", "LAB", "DIFFERENCE"),
        "<>>>",
        [
            (
                row.figure,
                _text(row.simulator, row.unit),
                _text(row.lab, row.unit),
                "-" if row.difference is None else f"{100 * row.difference:+.0f} %",
            )
            for row in rows
        ],
    )
    print()
    print_lab(measured)


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "bps":
        return rate_text(value)
    if unit == "share":
        return percent_text(value)
    return time_text(value, 4) if unit == "s" else f"{value:,.0f}"
