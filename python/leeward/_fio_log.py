"""Logs of latency that fio writes (`write_lat_log`, without `log_avg_msec`): a line for each request.

A line has the milliseconds at which the request ended, its latency, 0 for a read, 1 for a write or 2 for a
trim, its size in bytes, and in some versions its offset and priority. The latency is in nanoseconds since fio
3.0; before, it was in microseconds, and nothing in the line tells the two apart.
"""

import re
from collections import Counter
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from leeward._fio_points import KINDS, PERCENTILES, Measured
from leeward.errors import InputError

LOG_LINE = re.compile(r"\s*\d{1,19},\s*\d{1,19},\s*[0-2],\s*\d{1,19}(,\s*\w+){0,2}\s*(\n|$)", re.ASCII)
OTHER_LOG = re.compile(r"_(bw|iops|slat)(\.\d+)?\.log$")
SHORTEST = 0.1
"""Least length of a log in seconds; its times have a resolution of 1 ms."""


@dataclass(frozen=True)
class Log:
    """Requests and latencies of a log.

    Attributes:
        sizes: Sizes of requests, in bytes.
        trims: Number of trims.
        at_once: Mean number of requests in flight, by Little's law.
        kinds: Its reads, its writes, or both.
    """

    sizes: frozenset[int]
    trims: int
    at_once: float
    kinds: dict[str, Measured]


def read_log(file: Path, text: str, unit: float) -> Log:
    """Reads a log whose latencies are in units of `unit` seconds.

    Raises:
        InputError: A line has another form, the log has averages or is shorter than 0.1 s, or it is a log of
            something else than latency.
    """
    if other := OTHER_LOG.search(file.name):
        message = f"a log of `{other[1]}`; expected one of latency (_lat or _clat)"
        raise InputError.about(file, message)
    latencies: dict[int, list[int]] = {0: [], 1: [], 2: []}
    sizes: Counter[int] = Counter()
    first, last = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not LOG_LINE.fullmatch(line):
            message = f"`{line[:40]}`: expected time, latency, 0 to 2, size"
            raise InputError(str(file), number, None, None, message)
        time, latency, direction, size = (int(part) for part in line.split(",")[:4])
        if not size:
            message = "a line without a size is an average (log_avg_msec); expected a line for each request"
            raise InputError(str(file), number, None, None, message)
        latencies[direction].append(latency)
        sizes[size] += 1
        first, last = time if first is None else min(first, time), max(last, time)
    seconds = (last - (first or 0)) / 1e3
    if seconds < SHORTEST:
        message = f"{seconds:g} s are too short for a profile; expected {SHORTEST:g} s or more"
        raise InputError.about(file, message)
    total = sum(sum(values) for values in latencies.values())
    return Log(
        frozenset(sizes),
        len(latencies[2]),
        total * unit / seconds,
        {
            kind: Measured(len(found) / seconds, len(found), _percentiles(found, unit))
            for kind, found in zip(KINDS, (latencies[0], latencies[1]), strict=True)
            if found
        },
    )


def _percentiles(latencies: list[int], unit: float) -> dict[float, float]:
    """Seconds by percentile: the least latency that this share of requests did not exceed."""
    latencies.sort()
    count = len(latencies)
    return {p: latencies[max(ceil(count * p / 100), 1) - 1] * unit for p in PERCENTILES}
