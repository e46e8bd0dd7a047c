"""Measured points of a device in the output of fio, and the content of a device file from them.

    output of fio -> points (kinds, size, requests at once, rates, percentiles of latency) -> device file

The work of a request is 1 divided by the requests per second that the saturated device serves (SLO section
2.3.2). Mixes of reads and writes check that the work of both adds up. If a mix is slower than predicted from
its reads and writes, all requests of this size get more work, so that the profile promises no more than the
device serves in any measured mix. Latency without queueing is measured with one request at a time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

KINDS = ("read", "write")
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""Percentiles of latency without queueing, in percent."""
BEYOND = 10
"""Minimum number of requests beyond a reported percentile; with fewer, the percentile is unreliable."""
LATENCIES = (("lat_ns", 1e-9), ("clat_ns", 1e-9), ("lat", 1e-6), ("clat", 1e-6))
"""Objects with percentiles of latency in the output of fio, and the seconds of their unit.

Before 3.11, percentiles of the whole latency are in `clat_ns`. Before 3.0, times are in microseconds.
"""


@dataclass(frozen=True)
class Measured:
    """Rate and latencies of the reads, or of the writes, of one load.

    Attributes:
        iops: Requests per second.
        count: Requests in all.
        tail: Seconds of latency by percentile (0 to 100); empty if unknown.
    """

    iops: float
    count: int
    tail: dict[float, float]


@dataclass(frozen=True)
class Point:
    """One measured load.

    Attributes:
        origin: What it is, for messages.
        size: Size of its requests, in bytes.
        depth: Number of requests at once.
        kinds: Its reads, its writes, or both.
    """

    origin: str
    size: int
    depth: int
    kinds: dict[str, Measured]


def measured(figures: dict[str, Any]) -> Measured:
    """Reads or writes of one job in the output of fio 2 or 3.

    Raises:
        KeyError, TypeError, ValueError: The output has not the fields of a known version.
    """
    found = Measured(float(figures["iops"]), int(figures["total_ios"]), percentiles(figures))
    if not all(isfinite(number) for number in (found.iops, *found.tail.values())):
        raise ValueError("a number is not finite")
    return found


def transferred(figures: dict[str, Any]) -> int:
    """Bytes that the reads or the writes of one job moved, in the output of fio 2 or 3.

    Raises:
        KeyError, TypeError, ValueError: The output has not the fields of a known version.
    """
    # Before 3.0, `io_bytes` was in KiB, and there was no `io_kbytes`.
    return int(figures["io_bytes"]) * (1 if "io_kbytes" in figures else 1024)


def percentiles(figures: dict[str, Any]) -> dict[float, float]:
    """Seconds of latency by percentile, of the whole latency if there is one; empty without any."""
    for name, unit in LATENCIES:
        found = (figures.get(name) or {}).get("percentile")
        if found:
            return {float(key): value * unit for key, value in found.items()}
    return {}


def rows(points: Iterable[Point], depth: int) -> list[dict[str, Any]]:
    """Rows of a device's table, by size: those sizes whose reads and writes were measured at `depth`.

    Of several measurements of a kind, the slowest counts.
    """
    at_depth = [point for point in points if point.depth == depth]
    table = []
    for size in sorted({point.size for point in at_depth}):
        rates: dict[str, float] = {}
        for point in at_depth:
            if point.size == size and len(point.kinds) == 1:
                ((kind, found),) = point.kinds.items()
                rates[kind] = min(rates.get(kind, found.iops), found.iops)
        if len(rates) < len(KINDS):
            continue
        # Share of the device's time that a mix needs according to the profile.
        busy = [
            sum(found.iops / rates[kind] for kind, found in point.kinds.items())
            for point in at_depth
            if point.size == size and len(point.kinds) > 1
        ]
        slower = min([1.0, *busy])
        table.append({"size_bytes": size} | {f"{kind}_iops": rates[kind] * slower for kind in KINDS})
    return table


def unloaded(points: Iterable[Point]) -> list[dict[str, Any]]:
    """Rows of latency without queueing, from loads of one request at a time and of one kind.

    A percentile that fewer than `BEYOND` requests exceeded is left out. The median is always there, so that
    each kind has an entry. Of several measurements of a percentile, the slowest counts.
    """
    slowest: dict[tuple[str, float, int], float] = {}
    for point in points:
        if point.depth != 1 or len(point.kinds) > 1:
            continue
        ((kind, found),) = point.kinds.items()
        for p in PERCENTILES:
            if p in found.tail and (p == PERCENTILES[0] or found.count * (1 - p / 100) >= BEYOND):
                key = (kind, p, point.size)
                slowest[key] = max(slowest.get(key, 1e-9), found.tail[p])
    return [
        {"kind": kind, "size_bytes": size, "percentile": p, "seconds": slowest[kind, p, size]}
        for kind, p, size in sorted(slowest)
    ]
