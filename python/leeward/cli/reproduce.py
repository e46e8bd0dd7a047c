"""`leeward reproduce`: what a paper reports, measured again."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.options import given_by, listed, place, whole
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.progress import progress
from leeward.cli.simulate import STEPS, steps
from leeward.cli.sweep import resumable, told

EXAMPLES = """\b
Examples:
  leeward reproduce sinbad                           all of it; killed and started again, it does what is left
  leeward reproduce sinbad --figure 8,10             two of its figures
  leeward reproduce sinbad --figure 12 -o json
  leeward reproduce choreo                           placements of apps
  leeward reproduce hotspots                         a cell's tasks, chunks, and incidents
  leeward reproduce slo                              limits and admission for tail latency
  leeward reproduce etalon                           circuits that change, and TCP
  leeward reproduce sinbad --seeds 2 --horizon 5min --out look       a first look
"""


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="sinbad, choreo, hotspots, slo or etalon.", show_default=False),
    ],
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Figures and sections, separated by commas; by default all.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", parser=whole(1, 100_000), help="How many seeds, from 1 on.")
    ] = 10,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", parser=whole(1, 1024), help="Runs at once, 1 to 1024; by default one a processor."
        ),
    ] = None,
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
            parser=place,
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
    from leeward.reproduce import kept, perform, table

    figures = listed(figure)
    flags = {name: f"--{name}" for name in ("seeds", "jobs", "horizon", "out")}
    folder = out or Path(f"reproduce-{paper}")
    with told(), given_by(figures="--figure", paper="PAPER", **flags), resumable(folder):
        by = perform.check(paper, figures, seeds, jobs, folder, horizon)
        print(by.words, file=sys.stderr)
        count = max(perform.runs(paper, figures, seeds), 1)
        with progress(f"reproducing {paper}", STEPS * count) as advance:
            tell = steps(advance, each=STEPS * count)
            rows = perform.reproduce(
                paper,
                figures,
                seeds=seeds,
                jobs=jobs,
                out=folder,
                horizon=horizon,
                progress=lambda share: tell(0, share),
            )
    if output is Format.json:
        print_json([asdict(row) for row in rows])
    else:
        shown, notes = table.cells(rows)
        print_table(table.HEADERS, table.SIDES, shown)
        print("".join(f"\n{number}. {note}" for number, note in notes), end="\n" if notes else "")
    drawn = [row for row in rows if (folder / kept.PICTURES / f"{row.figure}.svg").is_file()]
    files = [kept.ROWS, kept.RESULTS, kept.RUN, *([kept.PICTURES] if drawn else [])]
    print(f"\nwrote {folder}/{', '.join(files[:-1])} and {files[-1]}", file=sys.stderr)
