"""`leeward simulate`: try policies on a simulated datacenter."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from leeward._native import Run, Scenario
from leeward.cli.files import whole_file
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.progress import progress
from leeward.report.rows import comparison_rows

EXAMPLES = """\b
Examples:
  leeward simulate scenario.yaml
  leeward simulate scenario.yaml --policy uniform,sinbad
  leeward simulate scenario.yaml --policy uniform:remote_racks=2,sinbad:remote_racks=2
  leeward simulate scenario.yaml -o json --out results/
"""
TABLES = ("blocks", "files", "jobs", "links", "balance", "hotspots", "hosts")
STEPS = 1000


def simulate(
    scenario: Annotated[str, typer.Argument(help="Scenario file.", show_default=False)],
    policy: Annotated[
        str | None,
        typer.Option(
            help="Policies, separated by commas, with settings after colons; the first is what the others are"
            " compared with. By default those of the scenario."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed; by default the scenario's.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Runs at once; by default one a processor.", min=1)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables (Parquet), summary.json and report.html.")
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Run a scenario under several policies, on the same arrivals, and compare them."""
    from leeward.simulation import read_scenario

    read = read_scenario(scenario)
    policies = policy.split(",") if policy else read.policies
    runs = run(read, policies, seed, jobs)
    if out:
        write(out, read, runs)
    show(runs, output)


def run(scenario: Scenario, policies: list[str], seed: int | None, jobs: int | None) -> list[Run]:
    """Runs policies, with progress on stderr."""
    from leeward.simulation import simulate as simulate_all

    seeds = None if seed is None else [seed]
    done = [0] * len(policies)
    with progress(f"simulating {', '.join(policies)}", STEPS * len(policies)) as advance:

        def tell(task: int, share: float) -> None:
            steps = int(share * STEPS)
            if steps > done[task]:
                advance(steps - done[task])
                done[task] = steps

        return simulate_all(scenario, policies, seeds, jobs=jobs, progress=tell)


def show(runs: list[Run], output: Format) -> None:
    """Prints the comparison on stdout, and what arrived on stderr."""
    if output is Format.json:
        print_json(summary(runs))
        return
    for line in runs[0].provenance:
        print(line, file=sys.stderr)
    columns = {"": "left"} | {run.policy: "right" for run in runs}
    print_table(columns, [(row.quantity, *row.cells) for row in comparison_rows(runs)])  # type: ignore[arg-type]


def summary(runs: list[Run]) -> dict[str, object]:
    """The comparison for programs."""
    return {
        "seed": runs[0].seed,
        "arrivals": runs[0].provenance,
        "baseline": runs[0].policy,
        "runs": [
            {
                "policy": run.policy,
                "summary": run.summary(),
                "against_baseline": run.compare(runs[0]) if run is not runs[0] else None,
            }
            for run in runs
        ],
    }


def write(out: Path, scenario: Scenario, runs: list[Run]) -> None:
    """Writes tables, summary and page into a folder, each file whole or not at all."""
    import json
    import re

    from pyarrow import parquet

    from leeward.report import write_page

    out.mkdir(parents=True, exist_ok=True)
    for made in runs:
        folder = out / re.sub(r"[^A-Za-z0-9._=-]+", ",", made.policy)
        folder.mkdir(exist_ok=True)
        for name in TABLES:
            with whole_file(folder / f"{name}.parquet") as temporary:
                parquet.write_table(getattr(made, name)(), temporary)
    with whole_file(out / "summary.json") as temporary:
        temporary.write_text(json.dumps(summary(runs), indent=2, allow_nan=False) + "\n")
    write_page(out / "report.html", scenario, runs)
    print(f"wrote {out}/report.html, summary.json, and tables by policy", file=sys.stderr)
