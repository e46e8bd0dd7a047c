"""Request traces of storage: statistics, r-b curves and models of arrivals.

>>> from leeward.traces import open_trace
>>> trace = open_trace("examples/slo/mail.csv.gz", device="examples/slo/ssd.json")  # doctest: +SKIP
>>> trace.curve("storage", prune=4)["buckets"]  # doctest: +SKIP
"""

from os import PathLike, fspath

from leeward._native import Trace
from leeward.data import data_folder
from leeward.errors import InputError

STAGES = ("network-in", "storage", "network-out")
"""Stages that a request passes, in order."""
DIALECTS = (
    "leeward",
    "compactor",
    "msr",
    "spc",
    "blktrace",
    "alibaba",
    "tencent",
    "systor",
    "fio-log",
    "fio-iolog",
    "twitter",
    "azure",
)
"""Formats of traces; see the reference of trace files."""

__all__ = ["DIALECTS", "STAGES", "Trace", "open_trace"]


def open_trace(
    path: str | PathLike[str],
    *,
    device: str | PathLike[str] | None = None,
    dialect: str | None = None,
    event: str | None = None,
    volume: str | None = None,
    largest: str | None = None,
    sort: bool = False,
    seek_s: float | None = None,
    network: tuple[float, float, float] | None = None,
    data: str | PathLike[str] | None = None,
) -> Trace:
    """Opens a trace. Each call of a method reads the file again, in constant memory.

    Args:
        path: The file, plain, gzip, bzip2, zstd or Parquet; `data:SET/FILE` is a file below the
            folder of traces.
        device: A device file, for work at the storage stage.
        dialect: One of `DIALECTS`; by default the first line decides.
        event: Event of a block trace that is a request: `Q`, queued (the default), or `D`, passed to the
            device.
        volume: Only requests to this volume, in dialects that name volumes.
        largest: Greatest size of a valid request; by default `1GiB`.
        sort: True to sort the requests by time, in memory; false to reject a request before the one above it.
        seek_s: Seconds of every seek, for a disk on which positions do not matter.
        network: Bytes for each request in each direction, and bytes for each byte of payload in its direction
            and in the other; by default 200, 1.1 and 0.025.
        data: Folder of `data:...` files; by default as for scenarios.

    Raises:
        InputError: The device file or a setting is invalid. Errors in the trace appear when it is read.
    """
    if network is not None and len(network) != 3:
        raise InputError.about("network", f"{len(network)} numbers: expected three")
    overhead, payload, other = network or (None, None, None)
    return Trace(
        fspath(path),
        data=data or data_folder(),
        dialect=dialect,
        event=event,
        volume=volume,
        largest=largest,
        sort=sort,
        device=None if device is None else fspath(device),
        seek_s=seek_s,
        overhead=overhead,
        payload=payload,
        other=other,
    )
