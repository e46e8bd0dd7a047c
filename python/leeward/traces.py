"""Request traces of storage: statistics, r-b curves and models of arrivals.

>>> from leeward.traces import open_trace
>>> trace = open_trace("examples/slo/mail.csv.gz", device="examples/slo/ssd.json")  # doctest: +SKIP
>>> trace.curve("storage", prune=4)["buckets"]  # doctest: +SKIP
"""

from hashlib import file_digest
from math import ceil
from os import PathLike, fspath
from os.path import join
from typing import TYPE_CHECKING, Any

from leeward._native import Trace
from leeward.data import data_folder
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.client.promise_types import TraceSource

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

__all__ = ["DIALECTS", "STAGES", "Trace", "open_trace", "workload_fields"]


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


def workload_fields(
    path: str | PathLike[str],
    *,
    device: str | PathLike[str] | None = None,
    percentile: float | None = None,
    buckets: int = 12,
    data: str | PathLike[str] | None = None,
    **options: Any,
) -> tuple[dict[str, Any], "TraceSource"]:
    """Fields of a workload for the service, computed from a trace, and the source that they are of.

    >>> fields, trace = workload_fields("mail.csv.gz", device="ssd.json")  # doctest: +SKIP
    >>> client.change_workload(workload | fields, trace=trace)  # doctest: +SKIP

    Args:
        path: The file, as in `open_trace`.
        device: A device file; without one, the workload has no work at a device.
        percentile: Percentile of the SLO, for the device's latency without queueing.
        buckets: Largest number of buckets of a curve. The service takes workloads of up to 64 KiB.
        data: Folder of `data:...` files, as in `open_trace`.
        **options: Other arguments of `open_trace`.

    Returns:
        The field `model` with a model and a curve of each stage, `unloaded` with a device and a percentile,
        and null for `curves`, which would replace them. The source has the SHA-256 of the file, the number of
        its requests, and their time in seconds.

    Raises:
        InputError: The trace, the device file or a setting is invalid.
    """
    folder = data or data_folder()
    trace = open_trace(path, device=device, data=folder, **options)
    profiled = percentile if device is not None else None
    statistics = trace.statistics(percentile=profiled)
    models = []
    for stage in STAGES:
        if stage != "storage" or device is not None:
            curve = trace.curve(stage, prune=buckets)["buckets"]
            limits = [{"rate": bucket["rate"], "burst": bucket["burst"]} for bucket in curve]
            models.append(trace.model(stage) | {"buckets": limits})
    fields: dict[str, Any] = {"model": models, "curves": None}
    if profiled is not None and statistics["unloaded_s"] is not None:
        fields["unloaded"] = f"{ceil(1e9 * statistics['unloaded_s'])}ns"
    source: TraceSource = {
        "sha256": _sha256(fspath(path), folder),
        "requests": statistics["requests"],
        "seconds": statistics["seconds"],
    }
    return fields, source


def _sha256(path: str, folder: str | PathLike[str] | None) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    name = path.removeprefix("data:")
    try:
        with open(path if name == path else join(folder or "", name), "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError.about("path", f"`{path}`: {error.strerror or error}") from None
