"""`leeward hotspots`: hot links, their times, durations and causes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import read_milliseconds, read_share, some
from leeward.cli.analysis_output import OutOption, ReportOption, check, write
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags, parse_path, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import progress
from leeward.cli.telemetry_options import FLAGS, Telemetry, takes_telemetry
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.hotspots import Analysis, Settings, Tables
    from leeward.telemetry import Samples

EXAMPLES = """\b
Examples:
  leeward hotspots examples/telemetry/fabric.parquet --cluster examples/clusters/fabric.yaml
  leeward hotspots examples/telemetry/fabric.parquet --cluster examples/clusters/fabric.yaml \\
      --tasks examples/telemetry/fabric-tasks.csv --report hotspots.html --out hotspots
  leeward hotspots examples/telemetry/fabric.parquet --cluster examples/clusters/fabric.yaml \\
      --interval 10min --hot 80% -o json
"""
FAILED = 4
"""Exit code of a condition of --fail-on."""
PICTURE_TABLES = ("utilization", "heat", "cv")
"""Tables for pictures, which `--out` writes and JSON output omits."""
RUN_TABLES = ("runs", "changes")
"""Tables with a row for every run, which `--out` writes and JSON output omits."""


@takes_telemetry(interval="5min")
def hotspots(
    telemetry: Telemetry,
    hot: Annotated[str, typer.Option(metavar="SHARE", help="Utilization above which a link is hot.")] = "75%",
    bridge: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(0, 1000),
            help="Greatest number of consecutive intervals without telemetry inside a hotspot.",
        ),
    ] = 0,
    ahead: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Time that the forecast of hot links looks ahead; by default three intervals.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Loads of racks by storage and compute (rack, t_ms, storage_bps, compute_bps).",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Tasks on racks (rack, t_ms, job, cpus, tx_bps, rx_bps).",
            show_default=False,
        ),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Storage requests to racks (rack, t_ms, requests, operation).",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1_000_000),
            help="Greatest number of rows of a table.",
        ),
    ] = 10,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="hot|partial|unseen,...",
            help=f"Exit with code {FAILED} for alerts: hot (a link was hot), partial (readings or answers are"
            " lost), unseen (a link has no telemetry).",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print the meanings of the words too.")] = False,
    out: OutOption = None,
    report: ReportOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Find hot racks and links, since when, why, and what to do.

    A link is hot in an interval of five minutes if its mean utilization is above 75 %. The two directions of
    a link count separately. Reads telemetry from files or from Prometheus, and changes nothing.

    The first ten lines answer which racks are hot, since when, why, and what to do. The tables below have
    the details: rates by cross-section and kind of rack; durations; changes of load and capacity at the start
    of a hotspot; imbalance of links; a forecast; and the telemetry that the analysis leaves out.
    """
    check(out, report, "hotspots")
    settings = _settings(telemetry, hot, bridge, ahead)
    wanted = [_failure(text) for text in fail_on or ()]
    files = {"split": split, "tasks": tasks, "requests": requests}
    for name, path in files.items():
        if path is not None and not path.is_file():
            raise InputError.about(f"--{name}", f"`{path}`: no such file")
    samples = telemetry.read()
    result = _analyze(samples, settings, files)
    if not print_data(output, _record(result), "hot_places", COLUMNS["hotspots"]):
        _print(result, top, explain)
    if out is not None:
        write(out, "hotspots", result.tables(), result.summary())
    if report is not None:
        from leeward.hotspots.report import write_page

        write_page(report, result)
        print_note(f"wrote {report}")
    failures = [reason for what in wanted if (reason := FAILURES[what](result))]
    for reason in failures:
        print_warning(reason)
    if failures:
        raise typer.Exit(FAILED)


def _failure(text: str) -> str:
    if text not in FAILURES:
        raise InputError.about("--fail-on", f"`{text}`: expected {', '.join(FAILURES)}")
    return text


def _hot(result: "Analysis") -> str:
    """Hot places in a sentence; empty without any."""
    places = result.hot_places["place"].to_pylist()
    return f"hot: {some(places)}" if places else ""


def _partial(result: "Analysis") -> str:
    """What the analysis lost in a sentence; empty if nothing."""
    answers, links = result.discards.counts.get("partial", 0), len(result.discards.links)
    lost = [f"{answers:,} answers of Prometheus"] * (answers > 0) + [f"readings of {links:,} links"] * (
        links > 0
    )
    return f"partial: {' and '.join(lost)} are incomplete" if lost else ""


def _unseen(result: "Analysis") -> str:
    """Links without telemetry in a sentence; empty without any."""
    return f"unseen: {some(result.unseen)}" if result.unseen else ""


FAILURES = {"hot": _hot, "partial": _partial, "unseen": _unseen}
"""Reasons of the exit code `FAILED`, each with the sentence that names it."""


def _settings(telemetry: Telemetry, hot: str, bridge: int, ahead: str | None) -> "Settings":
    from leeward.hotspots import Settings

    with name_flags(**FLAGS, hot="--hot", bridge="--bridge", ahead="--ahead"):
        interval_ms = telemetry.interval_ms
        return Settings(
            interval_ms=interval_ms,
            hot_ppm=round(1e6 * read_share("hot", hot)),
            coverage=telemetry.least_covered,
            bridge=bridge,
            ahead_ms=3 * interval_ms if ahead is None else read_milliseconds("ahead", ahead),
        )


def _analyze(samples: "Samples", settings: "Settings", files: dict[str, Path | None]) -> "Analysis":
    from leeward.hotspots import Tables, analyze
    from leeward.hotspots.analysis import STEPS

    flags = FLAGS | {name: f"--{name}" for name in files}
    with name_flags(**flags), progress("looking for hotspots", STEPS) as advance:
        return analyze(samples, settings, _tables(samples, files, Tables), advance)


def _tables(samples: "Samples", files: dict[str, Path | None], kind: type["Tables"]) -> "Tables":
    from leeward.hotspots.causes.tables import REQUESTS, SPLIT, TASKS, read

    racks = samples.racks["rack"].to_pylist()
    columns = {"split": SPLIT, "tasks": TASKS, "requests": REQUESTS}
    return kind(
        **{
            name: read(samples.engine, path, columns[name], racks, samples.discards)
            for name, path in files.items()
            if path is not None
        }
    )


def _record(result: "Analysis") -> dict[str, Any]:
    """The analysis as JSON."""
    left_out = (*PICTURE_TABLES, *RUN_TABLES)
    return result.summary() | {
        name: table.to_pylist() for name, table in result.tables().items() if name not in left_out
    }


def _print(result: "Analysis", top: int, explain: bool) -> None:
    """Prints the answer in at most ten lines, then the tables behind it."""
    from leeward.hotspots.report import answer, heading, sections

    print_text("\n".join(heading(result)))
    blocks = sections(result, top)
    for section in [*answer(result), *blocks]:
        print_text(f"\n{section.title}" if section in blocks else "")
        print_table(section.headers, section.sides, section.rows)
        for line in section.more:
            print_text(line)
    if explain:
        print_words(dict.fromkeys(word for section in [*answer(result), *blocks] for word in section.words))
    else:
        print_note("leeward hotspots --explain prints the meanings of the words")
