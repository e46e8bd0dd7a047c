"""`leeward circuits simulate`: a network of packets and circuits, packet by packet."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.circuits.results import check_out, print_summary, write_results
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import parse_path
from leeward.cli.output import Format, FormatOption, print_data
from leeward.cli.progress import STEPS, progress, steps
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward circuits simulate examples/circuits/strobe.yaml
  leeward circuits simulate examples/circuits/rotorlb.yaml
  leeward circuits simulate examples/circuits/strobe.yaml --out results --picture sequence.svg
  leeward circuits simulate examples/circuits/strobe.yaml -o json
"""


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
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
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for sequence plots and queue lengths of the rack pairs under `sample`, as SVG.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Simulate hosts, TCP and the hybrid switch.

    Runs a scenario packet by packet, and shows the completion times of flows, the use of circuits, and the
    time that packets spend in the switch. Packets take only the circuit between their own two racks; with a
    `routing` in the scenario, they may also take circuits of other racks.
    """
    from leeward._files import atomic_file, check_file
    from leeward.packets import picture as draw
    from leeward.packets import read, summary

    if out is not None:
        check_out(out)
    if picture is not None:
        if picture.suffix != ".svg":
            raise InputError.about("--picture", f"`{picture}`: expected a name that ends in .svg")
        check_file(picture, "--picture")
    network = read(scenario)
    if picture is not None and not network.sampled:
        message = f"`{scenario}` samples no queue: expected `sample` with `every` and `pairs`"
        raise InputError.about("--picture", message)
    with progress(f"simulating {scenario}", STEPS) as advance:
        run = network.run(partial(steps(advance), 0))
    figures = summary(run)
    totals = figures["totals"] | {"throughput_bps": figures["throughput_bps"]}
    if not print_data(output, figures, [totals], COLUMNS["circuits simulate"]):
        print_summary(figures)
    if out is not None:
        write_results(run, figures, out)
    if picture is not None:
        with atomic_file(picture) as temporary:
            temporary.write_text(draw(network, run), encoding="utf-8")
        print_note(f"wrote {picture}")
