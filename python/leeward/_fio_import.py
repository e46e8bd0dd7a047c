"""Reads a device's profile from existing outputs of fio: JSON (`--output-format=json`) and logs of latency.

    files -> loads (jobs that ran together, or a log) -> points, or the reason why a load is none -> profile

A load is a point of the profile if its requests have one size and are not sequential, nothing limited its
rate, and the device had as many of them at once as the load asked for, by Little's law.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any

from leeward._fio_log import LOG_LINE, read_log
from leeward._fio_points import KINDS, Measured, Point, measured, rows, transferred, unloaded
from leeward._quantities import bytes_text
from leeward.errors import InputError

SYNCHRONOUS = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice")
"""I/O engines of fio that have one request at a time in each job, whatever `iodepth` says."""
SEQUENTIAL = ("read", "write", "rw", "readwrite")
SEVERAL_SIZES = ("bssplit", "bsrange", "blocksize_range")
LIMITS = ("rate", "rate_iops", "thinktime", "rate_process")
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
"""Begin of a JSON object at the begin of a line."""
LITTLE = (0.5, 1.5)
"""Least and greatest ratio of the requests that the device had at once to those that the load asked for."""


class LogUnit(StrEnum):
    """Unit of latencies in logs of fio."""

    ns = "ns"
    us = "us"


@dataclass(frozen=True)
class LeftOut:
    """A load that is no point of the profile, with the reason."""

    origin: str
    reason: str


@dataclass(frozen=True)
class Imported:
    """A profile and what it does not rest on.

    Attributes:
        device: Content of the device file.
        left_out: Loads that the profile does not use.
        notes: What bounds on latency will miss, and doubts about what was used.
    """

    device: dict[str, Any]
    left_out: list[LeftOut]
    notes: list[str]


def import_profile(files: Sequence[Path], name: str, log_unit: LogUnit = LogUnit.ns) -> Imported:
    """Profile of a device from outputs of fio.

    Args:
        files: Outputs of fio as JSON, several one after the other too, and logs of latency.
        name: Name of the device.
        log_unit: Unit of latencies in logs.

    Raises:
        InputError: A file cannot be read, is neither form, or has an unknown form; or no size has reads and
            writes with the same number of requests at once.
    """
    points: list[Point] = []
    left_out: list[LeftOut] = []
    notes: list[str] = []
    versions: list[str] = []
    for file in files:
        text = _text(file)
        if LOG_LINE.match(text):
            found: list[Point | LeftOut] = [_log_point(file, text, log_unit, notes)]
        else:
            found = list(_json_points(file, text, versions, notes))
        points += [point for point in found if isinstance(point, Point)]
        left_out += [load for load in found if isinstance(load, LeftOut)]
    table, depth = _table(files, points, left_out)
    tails = unloaded(points)
    lacking = [kind for kind in KINDS if not any(row["kind"] == kind for row in tails)]
    if lacking:
        notes.append(
            f"no measurement of one {lacking[0]} at a time has percentiles: bounds on latency need"
            " `unloaded` of each workload"
        )
    sources = ", ".join(dict.fromkeys(versions)) or "logs of fio"
    device = {
        "name": name,
        "measured": f"{sources}, imported from {', '.join(file.name for file in files)}",
        "table": table,
        **({} if lacking else {"unloaded": tails}),
        "outstanding": depth,
    }
    return Imported(device, left_out, notes)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError.about(file, f"cannot read it: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError.about(file, "expected the text of fio's JSON or log, found binary data") from None


def _table(
    files: Sequence[Path], points: list[Point], left_out: list[LeftOut]
) -> tuple[list[dict[str, Any]], int]:
    """Table at the greatest number of requests at once that has a row; names the points of other numbers."""
    depths = sorted({point.depth for point in points}, reverse=True)
    for depth in depths:
        table = rows(points, depth)
        if not table:
            continue
        sizes = {row["size_bytes"] for row in table}
        for point in points:
            if point.depth not in (depth, 1):
                reason = f"{point.depth} requests at once; the profile is for {depth}"
                left_out.append(LeftOut(point.origin, reason))
            elif point.depth == depth and point.size not in sizes:
                reason = f"{bytes_text(point.size, None)} lacks reads or writes alone, {depth} at once"
                left_out.append(LeftOut(point.origin, reason))
        return table, depth
    message = "no size has random reads and random writes, each alone, with the same number at once"
    error = InputError.about(", ".join(map(str, files)), message)
    for point in points:
        kinds = " and ".join(f"{kind}s" for kind in point.kinds)
        error.add_note(f"{point.origin}: {kinds} of {bytes_text(point.size, None)}, {point.depth} at once")
    for load in left_out:
        error.add_note(f"left out: {load.origin}: {load.reason}")
    raise error


def _log_point(file: Path, text: str, unit: LogUnit, notes: list[str]) -> Point | LeftOut:
    origin = file.name
    log = read_log(file, text, 1e-9 if unit == LogUnit.ns else 1e-6)
    if log.trims:
        return LeftOut(origin, f"{log.trims:,} trims")
    if len(log.sizes) > 1:
        return LeftOut(origin, f"requests of {len(log.sizes)} sizes")
    (size,) = log.sizes
    depth = max(round(log.at_once), 1)
    if log.at_once < LITTLE[0]:
        return LeftOut(
            origin,
            f"{log.at_once:.2g} requests at once on average: its rate was limited, or its latencies are in "
            "microseconds, as fio 2 wrote them (--log-unit us)",
        )
    notes.append(f"{origin}: a log does not say whether its requests were random")
    return Point(origin, size, depth, log.kinds)


def _json_points(file: Path, text: str, versions: list[str], notes: list[str]) -> Iterator[Point | LeftOut]:
    for line, document in _documents(file, text):
        version = document.get("fio version")
        jobs = document.get("jobs")
        if "client_stats" in document:
            message = "an output of fio's client mode, which adds up several hosts; expected that of one host"
            raise InputError(str(file), line, None, None, message)
        if not isinstance(version, str) or not isinstance(jobs, list):
            message = "expected the JSON output of fio, with `fio version` and `jobs`"
            raise InputError(str(file), line, None, None, message)
        versions.append(version)
        shared = document.get("global options") or {}
        try:
            # Jobs of one group ran at the same time.
            for _, group in groupby(jobs, key=lambda job: job.get("groupid", 0)):
                yield _job_point(file, list(group), shared, notes)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            unknown = f"{version}: its output is not as known from fio 2 and 3"
            message = f"{unknown}: {type(error).__name__} {error}"[:300]
            raise InputError(str(file), line, None, None, message) from None


def _documents(file: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """JSON objects of a text with the lines where they begin. Lines between them are notes of fio."""
    decoder = json.JSONDecoder()
    position, any_found = 0, False
    while begin := _OBJECT.search(text, position):
        start = begin.end() - 1
        line = text.count("\n", 0, start) + 1
        try:
            document, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            at = line + getattr(error, "lineno", line) - line
            message = f"the JSON of fio is cut or damaged: {error}"
            raise InputError(str(file), at, None, None, message) from None
        any_found = True
        yield line, document
    if not any_found:
        raise InputError.about(file, "expected the JSON output of fio or a log of latency, found neither")


def _job_point(
    file: Path, group: list[dict[str, Any]], shared: dict[str, Any], notes: list[str]
) -> Point | LeftOut:
    """Point of jobs that ran together."""
    names = ", ".join(dict.fromkeys(f"`{job['jobname']}`" for job in group))
    origin = f"{file.name}, job {names}"
    sides = [(kind, job[kind]) for job in group for kind in KINDS if job[kind]["total_ios"]]
    options = [shared | (job.get("job options") or {}) for job in group]
    reason = _why_not(group, sides, options)
    depth = reason or _depth(sides, options)
    if isinstance(depth, str):
        return LeftOut(origin, depth)
    if depth == 1 and len(sides) == 1 and not _is_whole(sides[0][1], options[0]):
        notes.append(f"{origin}: its percentiles lack the time to submit a request")
    return Point(origin, _size(sides[0][1]) or 0, depth, _together(sides))


def _why_not(
    group: list[dict[str, Any]], sides: list[tuple[str, dict[str, Any]]], options: list[dict[str, Any]]
) -> str | None:
    """Reason for which jobs that ran together are no point of a profile; None if they are one."""
    errors = [job["error"] for job in group if job.get("error")]
    sizes = {_size(figures) for _, figures in sides}
    sequential = any(given.get("rw", given.get("readwrite")) in SEQUENTIAL for given in options)
    limits = [name for name in LIMITS for given in options if name in given]
    varied = (
        len(sizes) > 1 or None in sizes or any(name in given for given in options for name in SEVERAL_SIZES)
    )
    reasons = {
        f"fio reports error {', '.join(map(str, errors))}": bool(errors),
        "reads and writes in one figure (unified_rw_reporting)": any(job.get("mixed") for job in group),
        "trims": any((job.get("trim") or {}).get("total_ios") for job in group),
        "no request was completed": not sides,
        "requests of several sizes": varied,
        "sequential requests; a profile is of random ones (rw=randread or randwrite)": sequential,
        f"its rate was limited ({', '.join(limits)})": bool(limits),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _size(figures: dict[str, Any]) -> int | None:
    """Size of all requests in bytes; None if they have several. Sizes are multiples of 512 bytes."""
    mean = transferred(figures) / figures["total_ios"]
    size = round(mean / 512) * 512
    return size if size and abs(mean / size - 1) < 0.01 else None


def _depth(sides: list[tuple[str, dict[str, Any]]], options: list[dict[str, Any]]) -> int | str:
    """Requests at once, or why the measurement is not one at saturation."""
    at_once = sum(figures["iops"] * seconds for _, figures in sides if (seconds := _mean(figures)))
    if not isfinite(at_once):
        raise ValueError("a number is not finite")
    if not any(options):
        unknown = "neither options nor mean latencies: requests at once unknown"
        return max(round(at_once), 1) if at_once else unknown
    engines = [given.get("ioengine", "psync") for given in options]
    each = [
        1 if engine in SYNCHRONOUS else int(given.get("iodepth", 1))
        for engine, given in zip(engines, options, strict=True)
    ]
    # With group_reporting, one entry stands for all jobs of the group.
    stated = sum(each) if len(options) > 1 else each[0] * int(options[0].get("numjobs", 1))
    if at_once and not LITTLE[0] <= at_once / stated <= LITTLE[1]:
        return f"the device had {at_once:.3g} requests at once, and the load asked for {stated}"
    return stated


def _mean(figures: dict[str, Any]) -> float | None:
    if "lat_ns" in figures:
        return float(figures["lat_ns"]["mean"]) * 1e-9
    return float(figures["lat"]["mean"]) * 1e-6 if "lat" in figures else None


def _is_whole(figures: dict[str, Any], options: dict[str, Any]) -> bool:
    """True if percentiles are of the whole latency, or submission takes no time."""
    whole = any((figures.get(name) or {}).get("percentile") for name in ("lat_ns", "lat"))
    submission = any((figures.get(name) or {}).get("mean", 0) > 0 for name in ("slat_ns", "slat"))
    return whole or not submission or options.get("lat_percentiles") == "1"


def _together(sides: list[tuple[str, dict[str, Any]]]) -> dict[str, Measured]:
    """Reads and writes of jobs that ran together. Only a job alone has percentiles."""
    kinds: dict[str, Measured] = {}
    for kind, figures in sides:
        found = measured(figures)
        if kind in kinds:
            before = kinds[kind]
            found = Measured(before.iops + found.iops, before.count + found.count, {})
        kinds[kind] = found
    return kinds
