"""Measures an NFS export by Leeward's own client of NFSv3: without a mount, and without fio.

Each job of a profile is a closed loop over random places of a new file. No place is read twice before all
places of a long list were. A write is on the device before its reply. Results have the form of the output of
fio, so that profiles of both have one code.
"""

import csv
import json
import os
import random
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import Any

from leeward import __version__, _native
from leeward._fio import Job, Settings, jobs
from leeward._fio_points import KINDS, PERCENTILES
from leeward._nfs import PERMISSION, Export
from leeward._quantities import bytes_text
from leeward.errors import InputError
from leeward.traces import open_trace

LARGEST = 1 << 20
"""Largest request, in bytes: most servers take no larger calls."""
LEAST_FILE = 1 << 20
"""Least size of the file, in bytes."""
MOST_PLACES = 1_000_000
"""Places of a job. A list of more takes long to write, and these are beyond the memory of most servers."""
_HEAD = "seconds,kind,size,offset\n"


def check_settings(settings: Settings) -> None:
    """Checks that this client can measure with these settings.

    Raises:
        InputError: A request is too large, or the file too small.
    """
    if settings.sizes[-1] > LARGEST:
        message = f"`{bytes_text(settings.sizes[-1], None)}`: expected at most {bytes_text(LARGEST, None)}"
        raise InputError.about("--sizes", f"{message} without a mount: most servers take no larger calls")
    if settings.file_bytes < LEAST_FILE:
        message = f"expected at least {bytes_text(LEAST_FILE, None)} without a mount"
        raise InputError.about("--file-size", f"`{bytes_text(settings.file_bytes, None)}`: {message}")


@contextmanager
def new_file(export: Export, settings: Settings, warn: Callable[[str], object]) -> Iterator[str]:
    """Name of a new file of an export with all of its bytes. It is removed at the end.

    Args:
        export: The export.
        settings: Settings with the size of the file.
        warn: Called with a message if it cannot be removed.

    Raises:
        InputError: The server does not answer, or refuses the file.
    """
    name = f".leeward-profile-{secrets.token_hex(8)}"
    arguments = _arguments(export, settings, name)
    try:
        _replay(arguments | {"new": True}, [("read", settings.sizes[0], 0)])
    except BaseException as error:
        if not (isinstance(error, InputError) and error.message.endswith("the file exists")):
            with suppress(InputError):
                _native.remove_nfs_file(json.dumps(arguments))
        if isinstance(error, InputError):
            _add_hint(error)
        raise
    try:
        yield name
    finally:
        try:
            _native.remove_nfs_file(json.dumps(arguments))
        except InputError as error:
            warn(f"--nfs: cannot remove the file: {error.message}")


def _add_hint(error: InputError) -> None:
    if "permission denied" in error.message or "not owner" in error.message:
        error.add_note(PERMISSION)
    elif "no NFS version 3" in error.message:
        error.add_note("mount the export, or install fio with libnfs, for other versions")


def measure(
    settings: Settings,
    export: Export,
    name: str,
    keep: Callable[[str], object],
    advance: Callable[[], object] = lambda: None,
) -> tuple[list[tuple[Job, dict[str, Any]]], str]:
    """Runs all jobs on a file of `new_file`, and calls `advance` after each.

    Args:
        settings: Settings.
        export: The export.
        name: Name of the file.
        keep: Called with the summary of each job as a line of JSON.
        advance: Called after each job.

    Returns:
        Each job with results in the form of fio's, and the name of this client with its version.

    Raises:
        InputError: The server went away, or rejected a request.
    """
    arguments = _arguments(export, settings, name)
    results: list[tuple[Job, dict[str, Any]]] = []
    for number, job in enumerate(jobs(settings)):
        if job.what == "fill":
            # The file has its bytes since it was made.
            results.append((job, {"read": _side(0, 0, 1.0), "write": _side(1, settings.file_bytes, 1.0)}))
        else:
            results.append((job, _run(arguments, job, settings, number, keep)))
        advance()
    return results, f"leeward {__version__}"


def _arguments(export: Export, settings: Settings, name: str) -> dict[str, Any]:
    """Arguments of a replay on a file. Root calls from a reserved port, as many exports require."""
    return {
        "nfs": str(export),
        "reserved_port": os.geteuid() == 0,
        "file": name,
        "keep": True,
        "file_size": f"{settings.file_bytes}B",
    }


def _run(
    arguments: dict[str, Any], job: Job, settings: Settings, number: int, keep: Callable[[str], object]
) -> dict[str, Any]:
    """Results of a job."""
    loop = arguments | {"closed": job.depth, "duration": f"{settings.seconds}s"}
    requests = _requests(job, settings.file_bytes, random.Random(number))
    with tempfile.TemporaryDirectory(prefix="leeward-nfs-") as folder:
        # Only loads of one request at a time have latencies in the profile.
        rows = Path(folder) / "rows.csv" if job.depth == 1 else None
        summary = _replay(loop | ({"out": str(rows)} if rows else {}), requests)
        latencies = _latencies(rows) if rows else {}
    keep(json.dumps({"job": job.what, "size": job.size, "read_percent": job.reads, **summary}) + "\n")
    if summary["failed"] or summary["unanswered"]:
        what = summary["problem"] or f"{summary['unanswered']} requests were not answered"
        raise InputError.about("--nfs", f"`{arguments['nfs']}`: {job.what} of {job.size} bytes: {what}")
    seconds = max(float(summary["elapsed_s"]), 1e-9)
    return {
        kind: _side(int(summary[count]), int(summary[moved]), seconds, latencies.get(kind, ()))
        for kind, count, moved in (("read", "reads", "read_bytes"), ("write", "writes", "written_bytes"))
    }


def _requests(job: Job, file_bytes: int, source: random.Random) -> list[tuple[str, int, int]]:
    """Requests of a job: kind, size and place. Shares of kinds are exact over each hundred requests."""
    places = range(file_bytes // job.size)
    chosen = source.sample(places, min(len(places), MOST_PLACES))
    # A step of 37 spreads the reads of a hundred requests over them.
    kinds = ["read" if at * 37 % 100 < job.reads else "write" for at in range(100)]
    count = ceil(len(chosen) / 100) * 100
    return [(kinds[at % 100], job.size, chosen[at % len(chosen)] * job.size) for at in range(count)]


def _replay(arguments: dict[str, Any], requests: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """Sends requests of a kind, size and place by the client. Returns its summary.

    Raises:
        InputError: The server does not answer, went away, or refuses the file.
    """
    with tempfile.TemporaryDirectory(prefix="leeward-nfs-") as folder:
        trace = Path(folder) / "requests.csv"
        # A closed loop has its own times.
        with trace.open("w", encoding="utf-8") as out:
            out.write(_HEAD)
            out.writelines(f"{at},{kind},{size},{place}\n" for at, (kind, size, place) in enumerate(requests))
        try:
            return _native.replay_nfs(open_trace(trace), json.dumps(arguments), lambda _share: None)
        except OSError as error:
            raise InputError.about("--nfs", f"`{arguments['nfs']}`: {error}") from None


def _latencies(rows: Path) -> dict[str, list[float]]:
    """Latencies of the answered requests of each kind in seconds, in ascending order."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with rows.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            if row["latency_s"]:
                found[row["kind"]].append(float(row["latency_s"]))
    return {kind: sorted(latencies) for kind, latencies in found.items()}


def _side(count: int, moved: int, seconds: float, latencies: Sequence[float] = ()) -> dict[str, Any]:
    """Reads or writes of a job, in the form of fio's output.

    Args:
        count: Number of requests.
        moved: Their bytes.
        seconds: Length of the job.
        latencies: Their latencies in seconds, in ascending order.
    """
    result: dict[str, Any] = {"iops": count / seconds, "total_ios": count}
    result |= {"io_bytes": moved, "io_kbytes": moved // 1024}
    if latencies:
        at = {p: latencies[ceil(p / 100 * len(latencies)) - 1] for p in PERCENTILES}
        result["lat_ns"] = {"percentile": {f"{p:f}": round(1e9 * latency) for p, latency in at.items()}}
    return result
