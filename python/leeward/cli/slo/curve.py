"""`leeward slo curve`: burstiness of a trace, stage by stage."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import (
    bytes_text,
    percent_text,
    read_seconds,
    read_share,
    time_text,
    work_rate_text,
    work_text,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_words
from leeward.cli.progress import slow_notice
from leeward.cli.slo.options import (
    MOST_MARGIN,
    NETWORK,
    DeviceOption,
    DialectOption,
    EventOption,
    LargestOption,
    NetworkOption,
    SeekOption,
    SortOption,
    StageOption,
    TraceFile,
    VolumeOption,
    number,
    open_trace_file,
    stages,
)
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward slo curve examples/slo/mail.csv.gz
  leeward slo curve examples/slo/mail.csv.gz --device examples/slo/ssd.json --percentile 99.9 --slo 20ms
  leeward slo curve examples/slo/mail.csv.gz --stage network-out --error 1% -o csv
  leeward slo curve examples/slo/mail.csv.gz --device examples/slo/ssd.json --picture curve.svg
"""
MOST_BUCKETS = 12
"""Default number of buckets of a curve in a table, as in the thesis' released code."""
_WORDS = (
    ("mean", "work divided by the time from first to last request; for storage, as a share of the device"),
    ("peak", "work of the busiest window divided by the mean work of a window"),
    ("burst at", "the least burst at this multiple of the mean rate that delays no request"),
    ("knee", "the bucket with the least sum of rate and burst"),
    ("effective", "the least rate that delays no request by more than --slo"),
)


def curve(
    trace: TraceFile,
    stage: StageOption = None,
    device: DeviceOption = None,
    percentile: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Show the device's latency without queueing at this percentile.",
            show_default=False,
        ),
    ] = None,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Show the effective bandwidth at this delay.", show_default=False
        ),
    ] = None,
    multiple: Annotated[
        float, typer.Option(metavar="N", help="Show the burst at this multiple of the mean rate.")
    ] = 1.5,
    prune: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1_000_000),
            help=f"Greatest number of buckets; {MOST_BUCKETS} in a table, else all.",
            show_default=False,
        ),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Keep the fewest buckets that exceed the curve by at most this share, such as 1%.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        str, typer.Option(metavar="SHARE", help="Share added to the work of each request, such as 10%.")
    ] = "0%",
    window: Annotated[str, typer.Option(metavar="DURATION", help="Length of the windows for peaks.")] = "1s",
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for a picture of the curves, as SVG.",
            show_default=False,
        ),
    ] = None,
    dialect: DialectOption = None,
    event: EventOption = "Q",
    volume: VolumeOption = None,
    largest: LargestOption = "1GiB",
    sort: SortOption = False,
    seek: SeekOption = None,
    network: NetworkOption = NETWORK,
    output: FormatOption = Format.table,
) -> None:
    """Show how bursty a trace is: its r-b curves.

    A point of the curve is a rate r and the least burst b of a token bucket that delays no request. The curve
    is computed exactly, for each stage of a request's path. Also shows the buckets that other methods choose
    from the curve.
    """
    from leeward._files import check_file

    if picture is not None:
        if picture.suffix != ".svg":
            raise InputError.about("--picture", f"`{picture}`: expected a name that ends in .svg")
        check_file(picture, "--picture")
    if percentile is not None and device is None:
        raise InputError.about("--percentile", "requires --device")
    if prune is not None and error is not None:
        raise InputError.about("--prune", "expected one of --prune and --error, not both")
    names = stages(stage, device)
    excess = None if error is None else read_share("--error", error, 0)
    growth = read_share("--margin", margin, 0, MOST_MARGIN)
    deadline = None if slo is None else read_seconds("--slo", slo)
    source = open_trace_file(
        trace,
        device=device,
        dialect=dialect,
        event=event,
        volume=volume,
        largest=largest,
        sort=sort,
        seek=seek,
        network=network,
    )
    if output is Format.table and prune is None and error is None:
        prune = MOST_BUCKETS
    flags = {name: f"--{name}" for name in ("percentile", "prune", "error", "multiple")}
    with slow_notice(f"reading {trace}"), name_flags(window_s="--window", deadline_s="--slo", **flags):
        statistics = source.statistics(window_s=read_seconds("--window", window), percentile=percentile)
        curves = [
            source.curve(
                one, prune=prune, error=excess, margin=growth, multiple=multiple, deadline_s=deadline
            )
            for one in names
        ]
    document = {"trace": statistics, "percentile": percentile, "curves": curves}
    rows = [
        {"stage": one["stage"], "unit": one["unit"]} | bucket for one in curves for bucket in one["buckets"]
    ]
    if not print_data(output, document, rows, COLUMNS["slo curve"]):
        _print(statistics, curves, percentile)
    if picture is not None:
        _draw(picture, curves)


def _print(statistics: dict[str, Any], curves: list[dict[str, Any]], percentile: float | None) -> None:
    print_table(
        ("TRACE", ""),
        "<>",
        [
            ("requests", f"{statistics['requests']:,}"),
            ("length", time_text(statistics["seconds"])),
            ("requests a second", number(statistics["requests_per_s"])),
            ("C^2 of gaps", number(statistics["gap_c2"])),
            (f"peak over mean, {time_text(statistics['window_s'])}", number(statistics["peak_over_mean"])),
            ("reads", percent_text(statistics["read_share"])),
            ("mean size", bytes_text(statistics["mean_size_bytes"])),
            ("largest size", bytes_text(statistics["largest_size_bytes"])),
            *_left_out(statistics),
            *_unloaded(statistics, percentile),
        ],
    )
    peaks = {one["stage"]: one["peak_over_mean"] for one in statistics["stages"]}
    multiple, deadline = curves[0]["multiple"], curves[0]["deadline_s"]
    headers = ["STAGE", "MEAN", "PEAK", "LARGEST", f"BURST AT {multiple:g} MEAN", "KNEE", "BUCKETS", "ABOVE"]
    rows = []
    for one in curves:
        unit, knee, at_mean = one["unit"], one["knee"], one["at_mean"]
        cells = [
            one["stage"],
            work_rate_text(one["mean_rate"], unit),
            number(peaks.get(one["stage"])),
            work_text(one["largest"], unit),
            work_text(at_mean and at_mean["burst"], unit),
            f"{work_rate_text(knee['rate'], unit)}, {work_text(knee['burst'], unit)}" if knee else "-",
            f"{len(one['buckets'])} of {one['vertices']}",
            percent_text(one["error"]),
        ]
        if deadline is not None:
            cells.append(work_rate_text(one["effective_bandwidth"], unit))
        rows.append(cells)
    if deadline is not None:
        headers.append(f"EFFECTIVE AT {time_text(deadline)}")
    print()
    print_table(headers, "<" + ">" * (len(headers) - 1), rows)
    print()
    print_table(
        ("STAGE", "RATE", "BURST"),
        "<>>",
        [
            (
                one["stage"],
                work_rate_text(bucket["rate"], one["unit"]),
                work_text(bucket["burst"], one["unit"]),
            )
            for one in curves
            for bucket in one["buckets"]
        ],
    )
    print_words(_WORDS)


def _left_out(statistics: dict[str, Any]) -> list[tuple[str, str]]:
    """Lines of the file that are no requests, and events that the tracer lost."""
    rows = []
    if left := [f"{one['lines']:,} {one['reason']}" for one in statistics["left_out"]]:
        rows.append(("lines that are no request", ", ".join(left)))
    if lost := statistics["lost_events"]:
        rows.append(("EVENTS LOST by the tracer", f"{lost:,}: the trace is incomplete"))
    if rounded := statistics["rounded"]:
        rows.append(("sizes with a fraction of a byte", f"{rounded:,}, rounded up"))
    if moved := statistics["moved"]:
        disorder = time_text(statistics["disorder_s"])
        requests = "1 request" if moved == 1 else f"{moved:,} requests"
        rows.append(("sorted", f"{requests} before the one above, by {disorder} at most"))
    return rows


def _unloaded(statistics: dict[str, Any], percentile: float | None) -> list[tuple[str, str]]:
    if percentile is None:
        return []
    seconds = statistics["unloaded_s"]
    text = "not in the device file" if seconds is None else time_text(seconds)
    return [(f"latency without queueing, {percent_text(percentile / 100, None)}", text)]


def _draw(path: Path, curves: list[dict[str, Any]]) -> None:
    """Draws curves over multiples of their mean rates, so that stages are comparable."""
    from leeward._files import atomic_file
    from leeward.report.pictures import figure
    from leeward.report.style import decades, plain

    colours = {"network-in": "#0b62a4", "storage": "#c4411d", "network-out": "#2f7d32"}

    def draw(axes: Any) -> None:
        for one in curves:
            if one["mean_rate"]:
                # The range ends where the burst equals the largest request.
                points = [(bucket["rate"], bucket["burst"]) for bucket in reversed(one["buckets"])]
                rates = [rate / one["mean_rate"] for rate, _ in points]
                bursts = [burst / one["largest"] for _, burst in points]
                axes.plot(rates, bursts, color=colours[one["stage"]], label=one["stage"])
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain(axes.xaxis, decades(0, 7))
        plain(axes.yaxis, decades(0, 9))
        axes.set_xlabel("rate, in mean rates of the trace")
        axes.set_ylabel("least burst, in largest requests")

    picture = figure(draw)
    with atomic_file(path) as temporary:
        temporary.write_text(picture, encoding="utf-8")
    print_note(f"wrote {path}")
