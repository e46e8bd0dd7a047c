"""Measures a device's profile with fio: jobs, one at a time, and the profile from their results."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward._fio_points import KINDS, PERCENTILES, Point, measured, rows, unloaded
from leeward.errors import InputError

HINT = "install it with your system's packages: apt-get install fio, or dnf install fio"


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
    """

    sizes: tuple[int, ...]
    mixes: tuple[int, ...]
    seconds: int
    file_bytes: int
    depth: int
    buffered: bool
    engine: str


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
        f"--direct={0 if settings.buffered else 1}",
        "--output-format=json",
        "--group_reporting",
        # Every profile uses the same offsets.
        "--randrepeat=1",
    )
    fill = (*common, "--name=fill", "--rw=write", "--bs=1048576", "--iodepth=4", "--end_fsync=1")
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
        raise _fio_error(f"`{path}`: no such folder")
    if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
        raise _fio_error(f"`{path}`: cannot create a file in this folder: permission denied")
    if not path.is_dir() and not force:
        raise _fio_error(
            f"`{path}`: the measurement would overwrite this file; expected a folder, or --force"
        )


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
            raise _fio_error(f"`{path}`: cannot create a file in this folder: {error.strerror}") from None
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)
    else:
        yield path


def measure(
    settings: Settings,
    file: Path,
    keep: Callable[[str], object],
    advance: Callable[[], object] = lambda: None,
) -> tuple[list[tuple[Job, dict[str, Any]]], str]:
    """Runs all jobs, and calls `advance` after each.

    Args:
        settings: Settings.
        file: File to measure.
        keep: Called with each output of fio before it is interpreted.
        advance: Called after each job.

    Returns:
        Each job with the output of fio, and the version of fio.

    Raises:
        InputError: fio is not installed, or failed.
    """
    if shutil.which("fio") is None:
        missing = _fio_error("fio is not installed")
        missing.add_note(HINT)
        raise missing
    results, version = [], ""
    for job in jobs(settings):
        ran = subprocess.run(command(job, file), capture_output=True, text=True, check=False)
        keep(ran.stdout)
        try:
            # Warnings may precede the JSON.
            document = json.loads(ran.stdout[max(ran.stdout.find("{"), 0) :])
            version, (result,) = document["fio version"], document["jobs"]
        except (ValueError, KeyError, TypeError):
            result = None
        if ran.returncode or not isinstance(result, dict) or result.get("error"):
            lines = [line for line in (ran.stderr + ran.stdout).splitlines() if line.startswith("fio:")]
            if lines:
                why = lines[0]
            elif ran.returncode:
                why = f"fio ended with code {ran.returncode} and no message"
            else:
                why = f"the output of {version or _version()} is not as known from fio 2 and 3"
            error = _fio_error(f"{job.what} of {job.size} bytes: {why}")
            if not settings.buffered:
                error.add_note("a file system without direct I/O can be measured with --buffered only")
            raise error
        results.append((job, result))
        advance()
    return results, version


def _version() -> str:
    told = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return told if told.startswith("fio-") else "this fio"


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
        raise _fio_error(f"{version or 'fio'}: {message}"[:300]) from None


def _profile(
    settings: Settings, results: list[tuple[Job, dict[str, Any]]], version: str, name: str
) -> dict[str, Any]:
    points = [_point(settings, job, result, version) for job, result in results if job.what != "fill"]
    saturated = [point for point in points if point.origin == "saturation"]
    single = [point for point in points if point.origin == "unloaded"]
    cache = "through the page cache" if settings.buffered else "direct"
    mixes = ", ".join(f"{mix} %" for mix in settings.mixes) or "no mixes"
    return {
        "name": name,
        "measured": f"{version}, {settings.seconds} s a point over {settings.file_bytes} bytes,"
        f" {settings.engine}, {cache}, reads in mixes: {mixes}",
        "table": rows(saturated, settings.depth),
        "unloaded": unloaded(single),
        "outstanding": settings.depth,
    }


def _point(settings: Settings, job: Job, result: dict[str, Any], version: str) -> Point:
    shares = zip(KINDS, (job.reads, 100 - job.reads), strict=True)
    kinds = {kind: measured(result[kind]) for kind, share in shares if share}
    for kind, found in kinds.items():
        if not found.count:
            raise _fio_error(
                f"no {kind} of {job.size} bytes was completed in {settings.seconds} s; measure for longer"
            )
        missing = [p for p in PERCENTILES if p not in found.tail]
        if job.what == "unloaded" and missing:
            what = f"no {missing[0]:g}th percentile of latency" if found.tail else "no percentiles of latency"
            raise _fio_error(f"{version or 'fio'}: {what} in its output")
    return Point(job.what, job.size, job.depth, kinds)


def _fio_error(message: str) -> InputError:
    return InputError.about("--fio", message)
