"""Options that describe a trace."""

from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import read_seconds
from leeward.cli.options import name_flags, split_list
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.traces import Trace

TraceFile = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="Trace of requests: text of any --dialect, plain or compressed with gzip, bzip2 or zstd,"
        " or Parquet; data:SET/FILE is a file of `leeward data`.",
        show_default=False,
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Device file, JSON or YAML, for the storage stage.",
        show_default=False,
    ),
]
StageOption = Annotated[
    str | None,
    typer.Option(
        metavar="STAGE,...",
        help="Stages: network-in, storage, network-out; by default all, but storage only with --device.",
        show_default=False,
    ),
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Dialect of the trace: leeward, compactor, msr, spc, blktrace, alibaba, tencent, systor,"
        " fio-log, fio-iolog, twitter or azure; by default detected.",
        show_default=False,
    ),
]
EventOption = Annotated[
    str,
    typer.Option(
        metavar="Q|D",
        help="Event of a block trace that counts as a request: queued (Q), or passed to the device (D).",
    ),
]
VolumeOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Only requests to this volume, such as usr.0 or 8,0.", show_default=False
    ),
]
LargestOption = Annotated[str, typer.Option(metavar="SIZE", help="Greatest size of a valid request.")]
SortOption = Annotated[
    bool,
    typer.Option(
        "--sort", help="Sort the requests by time, in memory, and show how far they were out of order."
    ),
]
SeekOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Seek time of every request to a disk, such as 8ms; by default that of the device file.",
        show_default=False,
    ),
]
NetworkOption = Annotated[
    str,
    typer.Option(
        metavar="BYTES,FACTOR,FACTOR",
        help="Bytes on the network: per request in each direction, per byte of payload in its own"
        " direction, and per byte of payload in the other direction.",
    ),
]
MOST_MARGIN = 1e7
"""Greatest margin, as in workload files."""
NETWORK = "200,1.1,0.025"
"""Default of `--network`, as in the released code of the thesis."""


def open_trace_file(
    file: str,
    *,
    device: str | None,
    dialect: str | None,
    event: str,
    volume: str | None,
    largest: str,
    sort: bool,
    seek: str | None,
    network: str,
) -> "Trace":
    """Opens the trace that options describe."""
    from leeward.traces import open_trace

    flags = {name: f"--{name}" for name in ("dialect", "event", "largest", "network")}
    with name_flags(seek_s="--seek", **flags):
        return open_trace(
            file,
            device=device,
            dialect=dialect,
            event=event,
            volume=volume,
            largest=largest,
            sort=sort,
            seek_s=None if seek is None else read_seconds("--seek", seek),
            network=_network(network),
        )


def stages(text: str | None, device: str | None) -> list[str]:
    """Requested stages, in order and once each."""
    from leeward.traces import STAGES

    if text is None:
        return [stage for stage in STAGES if stage != "storage" or device is not None]
    names = split_list(text) or []
    for stage in names:
        if stage not in STAGES:
            raise InputError.about("--stage", f"`{stage}`: expected one of {', '.join(STAGES)}")
        if stage == "storage" and device is None:
            raise InputError.about("--stage", "storage: requires --device")
    return [stage for stage in STAGES if stage in names]


def _network(text: str) -> tuple[float, float, float]:
    try:
        overhead, payload, other = (float(part) for part in text.split(","))
    except ValueError:
        message = f"`{text}`: expected three numbers, such as {NETWORK}"
        raise InputError.about("--network", message) from None
    return overhead, payload, other


def number(value: float | None) -> str:
    """A number without a unit."""
    return "-" if value is None else f"{value:,.3g}"
