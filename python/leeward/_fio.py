"""Measures a device's profile with fio: jobs, one at a time, and the profile from their results."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward._fio_points import KINDS, PERCENTILES, Point, measured, rows, transferred, unloaded
from leeward._fio_run import check_installed, fio_error, run_fio
from leeward.errors import InputError

SPARE_S = 300.0
"""Time that a limited job may take beyond its runtime: it connects, and ends what it has begun."""
SLOWEST_FILL = 1e6
"""Least rate at which a limited job must fill the file, in bytes per second."""


@dataclass(frozen=True)
class Settings:
    """Settings of a measurement.

    Attributes:
        sizes: Sizes of requests, in bytes.
        mixes: Percent of reads in mixed loads, each above 0 and below 100.
        seconds: Length of each run.
        file_bytes: Size of the file that requests are spread over.
        depth: Outstanding requests at saturation.
        buffered: True for requests through the page cache.
        engine: I/O engine of fio.
        nfs_url: Export that the engine `nfs` opens; None for other engines.
        through: Description of the way to a remote device; empty for a local one.
    """

    sizes: tuple[int, ...]
    mixes: tuple[int, ...]
    seconds: int
    file_bytes: int
    depth: int
    buffered: bool
    engine: str
    nfs_url: str | None = None
    through: str = ""


@dataclass(frozen=True)
class Job:
    """One run of fio: the measured point, and the arguments without the file."""

    what: str
    size: int
    reads: int
    depth: int
    arguments: tuple[str, ...]


def jobs(settings: Settings) -> list[Job]:
    """Runs of a profile, in order: fio first fills the file, then measures each size."""
    common = (
        f"--size={settings.file_bytes}",
        f"--ioengine={settings.engine}",
        # An option of an engine is known after the engine.
        *(() if settings.nfs_url is None else (f"--nfs_url={settings.nfs_url}",)),
        f"--direct={0 if settings.buffered else 1}",
        "--output-format=json",
        "--group_reporting",
        # Every profile uses the same offsets.
        "--randrepeat=1",
    )
    # The engine `nfs` has no request to sync, and libnfs commits when the file is closed.
    sync = () if settings.nfs_url is not None else ("--end_fsync=1",)
    fill = (*common, "--name=fill", "--rw=write", "--bs=1048576", "--iodepth=4", *sync)
    result = [Job("fill", 1 << 20, 0, 4, fill)]
    timed = (*common, "--time_based", f"--runtime={settings.seconds}")
    tail = ("--lat_percentiles=1", f"--percentile_list={':'.join(f'{p:g}' for p in PERCENTILES)}")
    for size in settings.sizes:
        for reads in (100, 0, *settings.mixes):
            name = ("--name=saturation", f"--bs={size}", f"--iodepth={settings.depth}")
            result.append(Job("saturation", size, reads, settings.depth, (*timed, *name, *_load(reads))))
        for reads in (100, 0):
            name = ("--name=unloaded", f"--bs={size}", "--iodepth=1")
            result.append(Job("unloaded", size, reads, 1, (*timed, *name, *_load(reads), *tail)))
    return result


def _load(reads: int) -> tuple[str, ...]:
    if reads in (0, 100):
        return ("--rw=randread" if reads else "--rw=randwrite",)
    return ("--rw=randrw", f"--rwmixread={reads}")


def command(job: Job, file: str | os.PathLike[str]) -> list[str]:
    """Command line of a run."""
    return ["fio", *job.arguments, f"--filename={_escape(os.fspath(file))}"]


def _escape(name: str) -> str:
    # A colon ends a file name for fio.
    return name.replace("\\", "\\\\").replace(":", "\\:")


def check_place(path: Path, force: bool) -> None:
    """Checks that a file can be measured: a new one in a folder, or with `force` an existing one.

    Raises:
        InputError: The path is missing, or is a file and `force` is false, or its folder cannot be written.
    """
    if not path.exists():
        raise fio_error(f"`{path}`: no such folder")
    if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
        raise fio_error(f"`{path}`: cannot create a file in this folder: permission denied")
    if not path.is_dir() and not force:
        raise fio_error(f"`{path}`: the measurement would overwrite this file; expected a folder, or --force")


@contextmanager
def file_to_measure(path: Path, force: bool) -> Iterator[Path]:
    """File to measure: a new one in a folder, removed at the end, or with `force` an existing one.

    Raises:
        InputError: The path is missing, or is a file and `force` is false, or its folder cannot be written.
    """
    check_place(path, force)
    if path.is_dir():
        try:
            handle, name = tempfile.mkstemp(prefix=".leeward-profile-", dir=path)
        except OSError as error:
            raise fio_error(f"`{path}`: cannot create a file in this folder: {error.strerror}") from None
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)
    else:
        yield path


def measure(
    settings: Settings,
    file: str | os.PathLike[str],
    keep: Callable[[str], object],
    advance: Callable[[], object] = lambda: None,
    *,
    limited: bool = False,
    folder: str | None = None,
) -> tuple[list[tuple[Job, dict[str, Any]]], str]:
    """Runs all jobs, and calls `advance` after each.

    Args:
        settings: Settings.
        file: File to measure.
        keep: Called with each output of fio before it is interpreted.
        advance: Called after each job.
        limited: True to end a job that takes far longer than its runtime, as for a server that may go away.
        folder: Current folder of fio; by default that of this process.

    Returns:
        Each job with the output of fio, and the version of fio.

    Raises:
        InputError: fio is not installed, or failed.
    """
    check_installed()
    results, version = [], ""
    for job in jobs(settings):
        what = f"{job.what} of {job.size} bytes"
        filling = settings.file_bytes / SLOWEST_FILL if job.what == "fill" else settings.seconds
        limit = filling + SPARE_S if limited else None
        try:
            result, version = run_fio(command(job, file), what, keep, limit=limit, folder=folder)
        except InputError as error:
            if not settings.buffered and settings.nfs_url is None:
                error.add_note("a file system without direct I/O can be measured with --buffered only")
            raise
        results.append((job, result))
        advance()
    return results, version


def network_bytes(results: Iterable[tuple[Job, dict[str, Any]]]) -> dict[str, int]:
    """Payload of all jobs in bytes, by kind: of reads it goes to the client, and of writes to the server.

    Raises:
        InputError: The output has not the fields of a known version of fio.
    """
    found = list(results)
    try:
        return {kind: sum(transferred(result[kind]) for _, result in found) for kind in KINDS}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        message = f"its output is not as known from fio 2 and 3: {type(error).__name__} {error}"
        raise fio_error(message[:300]) from None


def profile(
    settings: Settings, results: list[tuple[Job, dict[str, Any]]], version: str, name: str
) -> dict[str, Any]:
    """Content of a device file, from the output of fio.

    Raises:
        InputError: A load served no request, or the output has not the fields of a known version of fio.
    """
    try:
        return _profile(settings, results, version, name)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        message = f"its output is not as known from fio 2 and 3: {type(error).__name__} {error}"
        raise fio_error(f"{version or 'fio'}: {message}"[:300]) from None


def _profile(
    settings: Settings, results: list[tuple[Job, dict[str, Any]]], version: str, name: str
) -> dict[str, Any]:
    points = [_point(settings, job, result, version) for job, result in results if job.what != "fill"]
    saturated = [point for point in points if point.origin == "saturation"]
    single = [point for point in points if point.origin == "unloaded"]
    cache = "through the page cache" if settings.buffered else "direct"
    # libnfs has no cache of its own.
    way = ", ".join(part for part in ("" if settings.nfs_url else cache, settings.through) if part)
    mixes = ", ".join(f"{mix} %" for mix in settings.mixes) or "no mixes"
    return {
        "name": name,
        "measured": f"{version}, {settings.seconds} s a point over {settings.file_bytes} bytes,"
        f" {settings.engine}, {way}, reads in mixes: {mixes}",
        "table": rows(saturated, settings.depth),
        "unloaded": unloaded(single),
        "outstanding": settings.depth,
    }


def _point(settings: Settings, job: Job, result: dict[str, Any], version: str) -> Point:
    shares = zip(KINDS, (job.reads, 100 - job.reads), strict=True)
    kinds = {kind: measured(result[kind]) for kind, share in shares if share}
    for kind, found in kinds.items():
        if not found.count:
            raise fio_error(
                f"no {kind} of {job.size} bytes was completed in {settings.seconds} s; measure for longer"
            )
        missing = [p for p in PERCENTILES if p not in found.tail]
        if job.what == "unloaded" and missing:
            what = f"no {missing[0]:g}th percentile of latency" if found.tail else "no percentiles of latency"
            raise fio_error(f"{version or 'fio'}: {what} in its output")
    return Point(job.what, job.size, job.depth, kinds)
