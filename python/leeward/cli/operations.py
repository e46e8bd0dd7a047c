"""`leeward operations`: reads, writes and queries over TCP, packet by packet."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import percent_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import parse_path
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import STEPS, progress, steps

if TYPE_CHECKING:
    from leeward._native import OperationsRun

EXAMPLES = """\b
Examples:
  leeward operations examples/operations/rack.yaml
  leeward operations examples/operations/rack.yaml --out rack && \\
      leeward impact --cluster examples/operations/cluster.yaml --latency rack/latencies.parquet \\
      --telemetry rack/telemetry.parquet --interval 2s --least 20
  leeward operations examples/operations/query.yaml -o json
"""
SUMMARY = "summary.json"
MOST_LINKS = 20
"""Greatest number of links in a table."""
_WORDS = (
    ("network", "mean of the part of the latency that is not in the server"),
    (
        "used",
        "mean utilization of the link by this class, and the largest of a window, by the file's capacity",
    ),
)


def operations(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Folder for tables (Parquet), summary.json, and the latencies and telemetry for impact. An"
            " existing one must be empty or hold an earlier result, which is replaced.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Simulate reads, writes and queries over TCP.

    Runs jobs on the racks of a cluster packet by packet: their operations cross the ports of hosts and racks,
    with classes of service, and wait for disks and caches. Shows the latency of operations with its part on
    the network, the time of jobs, and the utilization of racks' links.
    """
    from leeward.operations import read, summary

    if out is not None:
        _check_out(out)
    plan = read(scenario)
    with progress(f"simulating {scenario}", STEPS) as advance:
        run = plan.run(partial(steps(advance), 0))
    figures = summary(run)
    if not print_data(output, figures, "operations", COLUMNS["operations"]):
        _print(figures)
    if out is not None:
        _write(run, figures, out)


def _check_out(out: Path) -> None:
    from leeward._files import check_replaced

    check_replaced(out, "--out", "an earlier result of this command", _find_foreign)


def _find_foreign(out: Path) -> str | None:
    """First entry of a folder that is not part of an earlier result; None in a valid or empty folder."""
    names = sorted(path.name for path in out.iterdir())
    foreign = [name for name in names if name != SUMMARY and not name.endswith(".parquet")]
    if not names or (SUMMARY in names and not foreign):
        return None
    return f"`{(foreign or names)[0]}`"


def _write(run: "OperationsRun", figures: dict[str, Any], out: Path) -> None:
    from pyarrow import parquet

    from leeward._files import atomic_folder
    from leeward.operations import latencies, queries, stages, tables, telemetry

    files = tables(run) | {
        "latencies": latencies(run),
        "queries": queries(run),
        "stages": stages(run),
        "telemetry": telemetry(run),
    }
    if len(run.classes) > 1:
        files |= {f"telemetry-{name}": telemetry(run, name) for name in run.classes}
    with atomic_folder(out) as folder:
        for name, table in files.items():
            parquet.write_table(table, folder / f"{name}.parquet")
        (folder / SUMMARY).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print_note(f"wrote {out}")


def _print(figures: dict[str, Any]) -> None:
    totals = figures["totals"]
    print_text(
        f"{totals['operations']:,} operations and {totals['jobs']:,} jobs ended;"
        f" {totals['retransmitted']:,} of {totals['segments']:,} segments were sent again,"
        f" {totals['timeouts']:,} timers expired\n"
    )
    times = ("mean_s", "p50_s", "p95_s", "p99_s")
    print_table(
        ("JOB", "OPERATION", "NUMBER", "MEAN", "MEDIAN", "P95", "P99", "NETWORK"),
        "<<>>>>>>",
        [
            (
                *(one["job"], one["operation"], f"{one['count']:,}"),
                *(time_text(one[name], 4) for name in (*times, "network_mean_s")),
            )
            for one in figures["operations"]
        ],
    )
    if figures["jobs"]:
        print()
        print_table(
            ("JOB", "NUMBER", "MEAN", "MEDIAN", "P95", "P99"),
            "<>>>>>",
            [
                (one["job"], f"{one['count']:,}", *(time_text(one[name], 4) for name in times))
                for one in figures["jobs"]
            ],
        )
    if figures["links"]:
        print()
        _print_links(figures["links"])
    print_words(_WORDS)


def _print_links(links: list[dict[str, Any]]) -> None:
    busiest = sorted(links, key=lambda one: -one["most_utilization"])
    print_table(
        ("LINK", "CLASS", "USED", "MOST", "DROPPED", "MARKED"),
        "<<>>>>",
        [
            (
                *(one["link"], one["class"]),
                *(percent_text(one[name]) for name in ("mean_utilization", "most_utilization")),
                *(f"{one[name]:,}" for name in ("dropped", "marked")),
            )
            for one in busiest[:MOST_LINKS]
        ],
    )
    if len(links) > MOST_LINKS:
        print_text(f"... and {len(links) - MOST_LINKS:,} more: -o json has all")
