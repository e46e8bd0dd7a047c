"""`leeward hotspots`: which links are hot, since when, how long, and why."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.options import given_by, milliseconds, place, share, whole
from leeward.cli.output import Format, FormatOption, print_json, print_table, print_words
from leeward.cli.progress import progress
from leeward.cli.telemetry_options import (
    CadenceOption,
    ClusterOption,
    EngineOption,
    HttpOption,
    KeepOption,
    MapOption,
    PrometheusOption,
    SinceOption,
    TelemetryArgument,
    UntilOption,
    gather,
)
from leeward.engines import EngineName
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
DRAWN = ("utilization", "heat", "cv")
"""Tables that pictures are drawn from; JSON leaves them to `--out`."""
BY_RUN = ("runs", "changes")
"""Tables of every run, likewise."""
SUMMARY = "summary.json"


def hotspots(
    telemetry: TelemetryArgument = None,
    cluster: ClusterOption = "",
    prometheus: PrometheusOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    map_file: MapOption = None,
    cadence: CadenceOption = None,
    http: HttpOption = None,
    keep: KeepOption = None,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Length of the intervals in which a link is hot or not.")
    ] = "5min",
    hot: Annotated[str, typer.Option(metavar="PERCENT", help="Above which utilization it is.")] = "75%",
    coverage: Annotated[
        str, typer.Option(metavar="PERCENT", help="How much of an interval must be seen for it to be judged.")
    ] = "50%",
    bridge: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            parser=whole(0, 1000),
            help="Unseen intervals in a row that do not end a hotspot.",
        ),
    ] = 0,
    ahead: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How far ahead it is asked whether a link will still be hot; by default three intervals.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=place,
            help="What storage and compute of racks carried (rack, t_ms, storage_bps, compute_bps).",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=place,
            help="Tasks on racks (rack, t_ms, job, cpus, tx_bps, rx_bps).",
            show_default=False,
        ),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=place,
            help="Storage requests to racks (rack, t_ms, requests, operation).",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(metavar="NUMBER", parser=whole(1, 1_000_000), help="Rows of a long table, at most."),
    ] = 10,
    engine: EngineOption = EngineName.DUCKDB,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=place,
            help="Folder for all tables, as Parquet, and a summary.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=place, help="Where a page with pictures goes (.html).", show_default=False
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Say which links are hot, since when, how long, and why.

    A link is hot in an interval of five minutes if its mean utilization is above 75 %, each direction by
    itself. From telemetry in files or in Prometheus: hotspot rates by cross-section and kind of rack,
    durations and the remedy for each, what changed when a link became hot, how uneven links are, and whether
    what is hot will stay so. Nothing is changed anywhere, and nothing dropped in silence.
    """
    from leeward.files import check_file

    if not cluster:
        raise InputError("--cluster", None, None, None, "expected a cluster file, whose links are looked at")
    if out is not None:
        _check_out(out)
    if report is not None:
        check_file(report, "--report")
    settings = _settings(interval, hot, coverage, bridge, ahead)
    files = {"split": split, "tasks": tasks, "requests": requests}
    for name, path in files.items():
        if path is not None and not path.is_file():
            raise InputError(f"--{name}", None, None, None, f"`{path}`: no such file")
    samples = gather(cluster, telemetry, prometheus, since, until, map_file, engine, cadence, http, keep)
    made = _analyze(samples, settings, files)
    if output is Format.json:
        print_json(_described(made))
    else:
        _print(made, top)
    if out is not None:
        _write_out(out, made)
    if report is not None:
        from leeward.hotspots.report import write_page

        write_page(report, made)
        print(f"wrote {report}", file=sys.stderr)


def _settings(interval: str, hot: str, coverage: str, bridge: int, ahead: str | None) -> "Settings":
    from leeward.hotspots import Settings

    flags = {name: f"--{name}" for name in ("interval", "hot", "coverage", "bridge", "ahead")}
    with given_by(**flags):
        interval_ms = milliseconds("interval", interval)
        return Settings(
            interval_ms=interval_ms,
            hot_ppm=round(1e6 * share("hot", hot)),
            coverage=share("coverage", coverage),
            bridge=bridge,
            ahead_ms=3 * interval_ms if ahead is None else milliseconds("ahead", ahead),
        )


def _analyze(samples: "Samples", settings: "Settings", files: dict[str, Path | None]) -> "Analysis":
    from leeward.hotspots import Tables, analyze
    from leeward.hotspots.analysis import STEPS

    with given_by(telemetry="TELEMETRY"), progress("looking for hotspots", STEPS) as advance:
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


def _described(made: "Analysis") -> dict[str, Any]:
    """The analysis for programs."""
    left_out = (*DRAWN, *BY_RUN)
    return made.summary() | {
        name: table.to_pylist() for name, table in made.tables().items() if name not in left_out
    }


def _print(made: "Analysis", top: int) -> None:
    from leeward.hotspots.report import heading, sections

    shown = sections(made, top)
    print("\n".join(heading(made)))
    for section in shown:
        print(f"\n{section.title}")
        print_table(section.headers, section.sides, section.rows)
        for line in section.more:
            print(line)
    print_words(dict.fromkeys(word for section in shown for word in section.words))


def _check_out(out: Path) -> None:
    """Refuses a folder that holds anything but an earlier result."""
    from leeward.files import check_folder

    check_folder(out, "--out")
    if not out.is_dir():
        return
    here = sorted(path.name for path in out.iterdir())
    strange = [name for name in here if name != SUMMARY and not name.endswith(".parquet")]
    if here and (strange or SUMMARY not in here):
        message = f"`{out}`: holds `{(strange or here)[0]}`; expected an empty folder or an earlier result"
        raise InputError("--out", None, None, None, message)


def _write_out(out: Path, made: "Analysis") -> None:
    from pyarrow import parquet

    from leeward.files import whole_folder

    with whole_folder(out) as folder:
        for name, table in made.tables().items():
            parquet.write_table(table, folder / f"{name}.parquet")
        text = json.dumps(made.summary(), indent=2, allow_nan=False) + "\n"
        (folder / SUMMARY).write_text(text, encoding="utf-8")
    print(f"wrote {out}/{SUMMARY} and {len(made.tables())} tables", file=sys.stderr)
