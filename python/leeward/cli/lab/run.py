"""`leeward lab run`: a scenario of the packet simulator on real kernels."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import time_text
from leeward.cli.circuits.results import check_out, print_summary, write_results
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import BoundOption, DilationOption
from leeward.cli.notes import print_note
from leeward.cli.options import parse_path
from leeward.cli.output import Format, FormatOption, print_data, print_text
from leeward.cli.progress import STEPS, progress, steps

if TYPE_CHECKING:
    from leeward.lab import LabRun

EXAMPLES = """\b
Examples:
  sudo leeward lab run examples/circuits/strobe.yaml
  sudo leeward lab run examples/circuits/strobe.yaml --dilation 60 --out results
  sudo leeward lab run examples/circuits/strobe.yaml -o json
"""


def run(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    dilation: DilationOption = None,
    bound: BoundOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Folder for tables (Parquet) and summary.json. An existing one must be empty or hold"
            " an earlier result, which is replaced.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Run a scenario on real kernels.

    The file is that of `leeward circuits simulate`, and so are the results. In addition, the command shows
    how late the lab was.
    """
    from leeward.lab import run as run_lab
    from leeward.packets import read, summary

    if out is not None:
        check_out(out)
    with progress(f"running {scenario}", STEPS) as advance:
        result = run_lab(read(scenario), dilation=dilation, bound=bound, progress=partial(steps(advance), 0))
    figures = summary(result.run) | lab_figures(result)
    totals = figures["totals"] | {"throughput_bps": figures["throughput_bps"]}
    if not print_data(output, figures, [totals], COLUMNS["lab run"]):
        print_summary(figures)
        print()
        print_lab(result)
    if out is not None:
        write_results(result.run, figures, out)


def lab_figures(result: "LabRun") -> dict[str, Any]:
    """Figures of a lab beside those of the run."""
    return {"timing": result.timing, "counters": result.counters, "notes": result.notes}


def print_lab(result: "LabRun") -> None:
    """Prints how late a lab was, and what its kernels did and did not do."""
    timing, packets = result.timing, result.timing["packets"]
    if packets["count"]:
        print_text(
            f"dilation {timing['dilation']}: packets were late by {time_text(packets['median_s'], 3)} in the"
            f" median and {time_text(packets['p99_s'], 3)} at p99, in virtual time"
        )
    for program in ("retcp", "tdtcp"):
        if counters := result.counters.get(program):
            print_text(f"{program}: circuits came {counters['ups']} times and went {counters['downs']} times")
    for note in result.notes:
        print_note(note, doubt=True)
