"""`leeward reproduce`: the command, a plug-in of `leeward`. Heavy modules load when the command runs."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import STEPS, progress, steps
from leeward.cli.sweep import remarks_to_stderr, resumable

SHORT_HELP = "Measure a paper's figures again and compare them with the published values."
EXAMPLES = """\b
Examples:
  leeward reproduce sinbad                           all figures; a stopped run continues
  leeward reproduce sinbad --figure 8,10             two figures
  leeward reproduce sinbad --figure 12 -o json
  leeward reproduce choreo                           placements of apps; as root, also measurements
  leeward reproduce choreo --lab                     apps that send real bytes, as root
  leeward reproduce etalon --lab                     the kernel's TCP beside the simulator, as root
  leeward reproduce sinbad --real                    files of a real HDFS beside the simulator, as root
  leeward reproduce hotspots --real --figure 14      chunks of HDFS on uneven uplinks, before and after CCP
  leeward reproduce etalon --real                    TestDFSIO of Hadoop over circuits, as root
  leeward reproduce slo --real                       promises on file servers with real disks, as root
  leeward reproduce hotspots --kubernetes            kube-scheduler with UTP and without it; needs Go
  leeward reproduce hotspots                         tasks and chunks of a cell, and incidents
  leeward reproduce slo                              rate limits and admission for tail latency
  leeward reproduce etalon                           reconfigurable circuits and TCP
  leeward reproduce sinbad --seeds 2 --horizon 5min --out look       a first look
"""

FIGURES = {
    "sinbad": "4 5 5-links 6 6.3 7 7.2 7.2-load 7.2-flows 7.2-sources 7.4 7.6 7.6-machines 8 9 10 11 12"
    " equations failures limits load reports large traces leeward",
    "choreo": "2 4 6 7 8 4.3 10a 10a-even 10a-hose 10b 10b-hose exact exact-large exact-hose accuracy"
    " predictor",
    "hotspots": "3 4 5 6 7 8 9 11 table-1 12b 13 14 15 table-2 table-3 windows 19 20 21 22 23 objectives"
    " incidents leeward",
    "slo": "2.3 3.1 3.1-correlated 3.1-released 3.2 3.2-correlated 3.2-released 3.3 3.3-correlated"
    " 3.3-released 3.5 3.5-correlated 3.5-released 3.6 3.6-correlated 3.6-released 3.7 3.7-correlated 3.8"
    " 3.8-correlated 3.8-released 3.9 3.9-correlated 3.9-released gaps 4.2 4.7 4.8 4.9 4.10 4.11 4.12"
    " 4.12-long 4.13 4.14 4.15 4.16 4.17 4.19 5.4 5.4-average 5.5 5.6 5.7 5.8 5.9 5.10 5.11 5.12 heuristics"
    " 3.4 4.4 4.18 5.1",
    "etalon": "1 5a 5b 6a 6b 7a 7b 8 9 10 12 16 hosts 19 leeward scale rotor transport 5 6 7 13 14 15 2 20 21"
    " 22 beyond",
}
"""Figure names for `--figure`, as in the papers. They are here because the modules of papers load slowly."""

EXAMPLES += "\n\n\b\nFigures:\n" + "".join(
    f"{line}\n"
    for paper, known in FIGURES.items()
    for line in textwrap.wrap(
        known, 76, initial_indent=f"  {paper:<10}", subsequent_indent=" " * 12, break_on_hyphens=False
    )
)


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="sinbad, choreo, hotspots, slo or etalon.", show_default=False),
    ],
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Figures and sections of the list below; by default all.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 100_000),
            help="Number of seeds; they are numbered from 1. [default: 10; 3 for slo --real, 1 for etalon"
            " --lab and --real]",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1024),
            help="Number of runs at once, 1 to 1024; by default one for each processor.",
        ),
    ] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Length of each run; by default the paper's, and shorter with --lab. A short length gives a"
            " first look.",
            show_default=False,
        ),
    ] = None,
    lab: Annotated[
        bool,
        typer.Option(
            "--lab",
            help="Run the figures between kernels of this machine, as root, instead of in the simulator: 10a,"
            " 10b and even of choreo; 1 to 19 of etalon.",
        ),
    ] = False,
    real: Annotated[
        bool,
        typer.Option(
            "--real",
            help="Run figures on real bytes, beside the simulator: HDFS or file servers in a lab of this"
            " machine, as root. Figures 6, 7, 7.4, 7.6, 8, 9, 11 and reports of sinbad, 14 and 20 of"
            " hotspots, 19 of etalon, and 3.2, 3.3, 3.5, 3.6, 3.7, 3.9, 4.10, 5.5, 5.6, within and overhead"
            " of slo.",
        ),
    ] = False,
    kubernetes: Annotated[
        bool,
        typer.Option(
            "--kubernetes",
            help="Run figures under kube-scheduler on a control plane of this machine, beside the simulator."
            " Tables 2 and 3 of hotspots. Needs Go and the sources.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Folder for rows, pictures and runs; a stopped reproduction continues from it. The default"
            " is reproduce-PAPER.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure a paper's figures again, and print them beside the paper's values.

    Every row has the paper's value, the measured value with its 95 % confidence interval over seeds, and a
    note where the two differ. A figure that cannot be measured is marked NOT MEASURED.
    """
    from leeward_reproduce import perform, results_folder, table

    figures = split_list(figure)
    places = {"lab": lab, "real": real, "kubernetes": kubernetes}
    flags = {name: f"--{name}" for name in ("seeds", "jobs", "horizon", "out", *places)}
    folder = out or Path("-".join(["reproduce", paper, *(name for name, holds in places.items() if holds)]))
    seeds = seeds or perform.default_seeds(paper, **places)
    with remarks_to_stderr(), name_flags(figures="--figure", paper="PAPER", **flags), resumable(folder):
        inputs = perform.check(paper, figures, seeds, jobs, folder, horizon, **places)
        print_note(inputs.summary)
        count = max(perform.runs(paper, figures, seeds, **places), 1)
        with progress(f"reproducing {paper}", STEPS * count) as advance:
            report = steps(advance, steps_of_task=STEPS * count)
            rows = perform.reproduce(
                paper,
                figures,
                seeds=seeds,
                jobs=jobs,
                out=folder,
                horizon=horizon,
                **places,
                progress=lambda share: report(0, share),
            )
    records = [asdict(row) for row in rows]
    if not print_data(output, records, records, COLUMNS["reproduce"]):
        text = table.table(rows, inputs.measured)
        print_table(text.headers, text.sides, text.cells)
        print("".join(f"\n{number}. {note}" for number, note in text.notes), end="\n" if text.notes else "")
    pictures = [row for row in rows if (folder / results_folder.PICTURES / f"{row.figure}.svg").is_file()]
    files = [
        results_folder.ROWS,
        results_folder.RESULTS,
        results_folder.RUN,
        *([results_folder.PICTURES] if pictures else []),
    ]
    print_note(f"\nwrote {folder}/{', '.join(files[:-1])} and {files[-1]}")
