"""`leeward traces replay`: the requests of a trace as real calls of an NFS client, at their times."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward import _native
from leeward._files import check_file
from leeward._quantities import bytes_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_warning
from leeward.cli.options import parse_path, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import STEPS, progress, steps
from leeward.cli.slo.options import (
    NETWORK,
    DialectOption,
    EventOption,
    LargestOption,
    TraceFile,
    VolumeOption,
    open_trace_file,
)
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward traces replay mail.csv --nfs nas:/vol
  leeward traces replay mail.csv --nfs nas:/vol --nfsport 12049 --mountport 12049 --out requests.csv
  leeward traces replay mail.csv --nfs nas:/vol --at 1800000000 --from 0s --for 1min -o json
  leeward traces replay mail.csv --nfs nas:/vol --closed 4 --for 10s --keep-file

Through `leeward enforce nfs`, its port is that of NFS and of MOUNT.
"""
LATE_S = 0.005
"""Lateness at the 99th percentile from which a note warns of it."""


def replay(
    trace: TraceFile,
    nfs: Annotated[
        str,
        typer.Option(metavar="SERVER:PATH", help="Export with the file of the requests.", show_default=False),
    ],
    nfsport: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            parser=whole_number(1, 65_535),
            help="Port of the server's NFS.",
            show_default="2049",
        ),
    ] = None,
    mountport: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            parser=whole_number(1, 65_535),
            help="Port of the server's MOUNT.",
            show_default="from its port mapper",
        ),
    ] = None,
    reserved_port: Annotated[
        bool,
        typer.Option(
            "--reserved-port",
            help="Connect to the server from reserved ports, as exports with the option `secure` require.",
        ),
    ] = False,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="File in the export, made if it is not there. WRITES OF THE TRACE OVERWRITE IT.",
            show_default="a new one; with --keep-file, leeward-replay",
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep-file",
            help="Keep the file for the next replay. Otherwise a file that this replay made is removed at its"
            " end.",
        ),
    ] = False,
    file_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Size of the file. Offsets of requests beyond it begin again at 0."
        ),
    ] = "256MiB",
    at: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            help="Start, in seconds since 1970, so that several replays keep the times between their traces.",
            show_default="at once",
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DURATION",
            help="Time in the trace that is its start.",
            show_default="that of the first request",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="Time for which requests are sent.",
            show_default="to the end of the trace",
        ),
    ] = None,
    closed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 65_536),
            help="Ignore the times, and keep this number of requests open; with --for, repeat the trace.",
            show_default=False,
        ),
    ] = None,
    nconnect: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole_number(1, 64), help="Connections, which requests take in turn."
        ),
    ] = 1,
    wait: Annotated[
        str, typer.Option(metavar="DURATION", help="Longest time to wait for the last replies.")
    ] = "30s",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for a row of each request, as CSV.",
            show_default=False,
        ),
    ] = None,
    dialect: DialectOption = None,
    event: EventOption = "Q",
    volume: VolumeOption = None,
    largest: LargestOption = "1GiB",
    output: FormatOption = Format.table,
) -> None:
    """Send the requests of a trace to an NFSv3 server, each at its time.

    A request is sent at its time whether or not earlier ones are answered. Its latency counts from its time
    in the trace to the end of the reply. Lateness is the time by which requests were sent late: if it is not
    far below the latencies, this machine is too slow for the trace. Writes are synchronous.
    """
    if out is not None:
        check_file(out, "--out")
    if at is not None and not math.isfinite(at):
        raise InputError.about("--at", f"`{at}`: expected seconds since 1970")
    source = open_trace_file(
        trace,
        device=None,
        dialect=dialect,
        event=event,
        volume=volume,
        largest=largest,
        sort=False,
        seek=None,
        network=NETWORK,
    )
    arguments = {
        "nfs": nfs,
        "nfsport": nfsport,
        "mountport": mountport,
        "reserved_port": reserved_port,
        "file": file,
        "keep": keep,
        "file_size": file_size,
        "at": at,
        "from": origin,
        "duration": duration,
        "closed": closed,
        "connections": nconnect,
        "patience": wait,
        "out": None if out is None else str(out),
    }
    with progress("replaying", STEPS) as advance:
        report = steps(advance, steps_of_task=STEPS)
        summary = _native.replay_nfs(source, json.dumps(arguments), lambda share: report(0, share))
    if not print_data(output, summary, [summary], COLUMNS["traces replay"]):
        _print(summary)
    for line in _warnings(summary):
        print_warning(line)
    if summary["failed"] or summary["unanswered"]:
        raise typer.Exit(1)


def _print(summary: dict[str, Any]) -> None:
    seconds = summary["elapsed_s"]
    moved = summary["read_bytes"] + summary["written_bytes"]
    print_table(
        ("REQUESTS", "READS", "WRITES", "BYTES", "TIME", "RATE", "MOST OPEN"),
        "<>>>>>>",
        [
            (
                f"{summary['requests']:,}",
                f"{summary['reads']:,}",
                f"{summary['writes']:,}",
                bytes_text(moved),
                time_text(seconds),
                f"{bytes_text(moved / seconds)}/s" if seconds else "-",
                f"{summary['most_open']:,}",
            )
        ],
    )
    print()
    names = ("mean_s", "p50_s", "p99_s", "p999_s", "max_s")
    print_table(
        ("", "MEAN", "P50", "P99", "P99.9", "MAX"),
        "<>>>>>",
        [(part, *(_time(summary[part][name]) for name in names)) for part in ("latency", "lateness")],
    )


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else time_text(seconds)


def _warnings(summary: dict[str, Any]) -> list[str]:
    """What the user should know of a replay."""
    lines = []
    if summary["failed"]:
        lines.append(f"failed requests: {summary['failed']:,}; the first one: {summary['problem']}")
    if summary["unanswered"]:
        lines.append(f"requests without an answer: {summary['unanswered']:,}")
    if summary["short"]:
        lines.append(f"reads that ended before their last byte: {summary['short']:,}; the file was changed")
    if summary["left"] is not None:
        lines.append(f"the file of the replay is still there: {summary['left']}")
    late = summary["lateness"]["p99_s"]
    if late is not None and late > LATE_S:
        lines.append(f"requests were sent up to {time_text(late)} late (p99): this machine is busy")
    return lines
