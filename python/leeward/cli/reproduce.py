"""`leeward reproduce`: what a paper reports, measured again."""

import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.files import check_folder
from leeward.cli.options import listed
from leeward.cli.output import Format, FormatOption, print_json, print_table, print_words
from leeward.cli.progress import progress
from leeward.cli.simulate import STEPS
from leeward.cli.sweep import resumable, told

EXAMPLES = """\b
Examples:
  leeward reproduce sinbad                           all of it; killed and started again, it does what is left
  leeward reproduce sinbad --figure 8,10             two of its figures
  leeward reproduce sinbad --figure 12 -o json
  leeward reproduce sinbad --seeds 2 --horizon 5min --out look       a first look
"""


def reproduce(
    paper: Annotated[str, typer.Argument(help="Which paper: sinbad.", show_default=False)],
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Figures and sections, separated by commas; by default all.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds, from 1 on.", min=1)] = 10,
    jobs: Annotated[int | None, typer.Option(help="Runs at once; by default one a processor.", min=1)] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long every run is, for a first look; not the paper's then.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for rows, pictures and runs, from which a stopped reproduction goes on; by default"
            " reproduce- and the paper's name.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure a paper's figures again, and print them beside the paper's own.

    Every row has the paper's value, ours with its 95 % confidence interval over seeds, and a note where they
    differ. What cannot be simulated says so.
    """
    from leeward.reproduce import perform, table

    figures = listed(figure)
    count = perform.runs(paper, figures, seeds)
    folder = out or Path(f"reproduce-{paper}")
    check_folder(folder, "--out")
    lock, told_steps = threading.Lock(), 0
    with told(), resumable(folder), progress(f"reproducing {paper}", STEPS * max(count, 1)) as advance:

        def tell(share: float) -> None:
            nonlocal told_steps
            with lock:
                now = int(share * STEPS * count)
                if now > told_steps:
                    advance(now - told_steps)
                    told_steps = now

        rows = perform.reproduce(
            paper, figures, seeds=seeds, jobs=jobs, out=folder, horizon=horizon, progress=tell
        )
    if output is Format.json:
        print_json([asdict(row) for row in rows])
    else:
        shown, notes = table.cells(rows)
        print_table(table.HEADERS, table.SIDES, shown)
        print_words(notes)
    print(f"\nwrote {folder}/rows.json, results.md and pictures", file=sys.stderr)
