"""`leeward simulate`: compares policies on a simulated datacenter."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from leeward._extras import require
from leeward._figures import flatten_summary
from leeward._native import Run, Scenario
from leeward.cli.notes import print_note
from leeward.cli.options import (
    choice_option,
    name_flags,
    parse_path,
    parse_seed,
    split_list,
    whole_number,
)
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_words
from leeward.cli.progress import STEPS, progress, simulated_time_text, slow_notice, steps
from leeward.cli.scenario_runs import note_unfinished, read, summary, warn_of_refusals
from leeward.report.rows import comparison_rows, glossary

EXAMPLES = """\b
Examples:
  leeward simulate examples/scenarios/first.yaml
  leeward simulate examples/scenarios/first.yaml --policy uniform,sinbad:remote_racks=2,leeward
  leeward simulate examples/scenarios/first.yaml --policy uniform,my_module:my_policy
  leeward simulate examples/scenarios/first.yaml --out results
  leeward simulate examples/scenarios/first.yaml -o json

\b
A sweep over ten seeds and two delays of telemetry; after an interruption, the same command resumes it:
  leeward simulate examples/scenarios/first.yaml --seeds 10 --set telemetry.delay=0s,2s --out sweep
"""


class Backend(StrEnum):
    """Backends that run a sweep."""

    threading = "threading"
    loky = "loky"
    ray = "ray"


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY,...",
            help="Policies; the first is the baseline, and settings follow colons: sinbad:remote_racks=2. One"
            " of your own is my_module:my_policy. By default the policies of the scenario.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", parser=parse_seed, help="First seed, from 0; by default the scenario's."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 100_000),
            help="Number of consecutive seeds; more than one gives means and confidence intervals.",
        ),
    ] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUES",
            help="Values to try in the scenario, such as telemetry.delay=0s,2s.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1024),
            help="Number of parallel runs, 1 to 1024; by default one for each processor.",
        ),
    ] = None,
    backend: Annotated[
        Backend | None,
        choice_option(Backend, description="Backend of a sweep; by default threads."),
    ] = None,
    tables: Annotated[bool, typer.Option("--tables", help="Keep the tables of a sweep's runs.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Folder for tables (Parquet), summary.json and report.html. A sweep stores its cells there,"
            " and resumes from them. An existing folder must be empty or hold a result of the same kind: a"
            " simulation replaces the result, a sweep adds to it.",
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Run a scenario under several policies and compare them.

    All policies see the same arrivals. Several seeds, or --set, make a sweep.
    """
    names = split_list(policy)
    if seeds > 1 or set_:
        if tables and not out:
            raise typer.BadParameter("requires --out", param_hint="--tables")
        from leeward.cli.sweep import sweep

        sweep(
            scenario, names, seed, seeds, set_ or [], jobs, backend or Backend.threading, tables, out, output
        )
        return
    for option, value in (("--backend", backend), ("--tables", tables)):
        if value:
            raise typer.BadParameter("requires a sweep: --seeds or --set", param_hint=option)
    from leeward.cli import results

    if out:
        require("plot", "--out")
        results.check(out, "--out")
    model = read(scenario)
    runs = run(model, names, seed, jobs)
    show(runs, output)
    if out:
        results.write(out, model, runs)


def run(scenario: Scenario, policies: list[str] | None, seed: int | None, jobs: int | None) -> list[Run]:
    """Runs policies, or those of the scenario, with progress on stderr."""
    from leeward.simulation import simulate as simulate_all

    seeds = None if seed is None else [seed]
    names = scenario.policies if policies is None else policies
    title, total = f"simulating {', '.join(names)}", scenario.horizon_s * len(names)
    with (
        name_flags(policies="--policy"),
        progress(title, STEPS * len(names), amount=simulated_time_text(total)) as advance,
        slow_notice(f"reading the workloads of {scenario.name}") as on_begin,
    ):
        return simulate_all(scenario, policies, seeds, jobs=jobs, progress=steps(advance, on_begin))


def show(runs: list[Run], output: Format) -> None:
    """Prints the comparison on stdout; the arrivals and the meanings of words in the comparison on stderr."""
    summaries = [{"policy": run.policy} | flatten_summary(run.summary()) for run in runs]
    if not print_data(output, summary(runs), summaries, list(summaries[0])):
        for line in runs[0].provenance:
            print_note(line)
        rows = comparison_rows(runs)
        headers = ("", *(run.policy for run in runs))
        print_table(headers, "<" + ">" * len(runs), [(row.quantity, *row.cells) for row in rows])
        print_words(glossary(rows, runs[0].policy))
    note_unfinished(runs)
    warn_of_refusals(summaries)
