"""Measurements of a run: latencies of each workload, in the simulator or on a bed."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}
"""Percentiles of latencies, by their names in results."""
WINDOW_S = 180.0
"""Length of the windows in which an SLO has to hold (section 4.3)."""
LARGEST = 200
"""Number of the largest latencies of a workload that a result keeps."""

Latencies = NDArray[numpy.float64]
Seen = dict[str, Any]
"""Measurements of a workload: `requests`, `late` (above its SLO), `unanswered`, latencies at `PERCENTILES`,
`worst` and `largest` in seconds, `windows`, `met` (windows within the SLO), `bytes`."""


@dataclass(frozen=True)
class Measures:
    """Measurements of a run.

    Attributes:
        workloads: Those of each workload.
        tails: Largest latency of single requests to each server, in seconds; empty in the simulator.
        late_s: Lateness of the clients at percentile 99.9, of the latest one; None in the simulator.
        busy: Share of the processors' time in use; None in the simulator.
        read: Bytes that disks read, over those of answered requests; None in the simulator.
    """

    workloads: Mapping[str, Seen]
    tails: Mapping[str, float] = field(default_factory=dict)
    late_s: float | None = None
    busy: float | None = None
    read: float | None = None


def seen(at_s: Latencies, latencies: Latencies, slo: float | None, moved: int, unanswered: int = 0) -> Seen:
    """Measurements of a workload.

    Args:
        at_s: Times of its requests in seconds.
        latencies: Their latencies in seconds; of those without an answer, the time for which they had waited.
        slo: Its SLO in seconds.
        moved: Bytes of its answered requests.
        unanswered: Number of requests without an answer.
    """
    ordered = numpy.sort(latencies)
    windows = [latencies[at_s // WINDOW_S == number] for number in numpy.unique(at_s // WINDOW_S)]
    met = [slo is None or percentile(window, 99.9) <= slo for window in windows]
    return {
        "requests": len(ordered),
        "late": 0 if slo is None else int((ordered > slo).sum()),
        "unanswered": unanswered,
        **{name: percentile(ordered, percent) for name, percent in PERCENTILES.items()},
        "worst": float(ordered[-1]) if len(ordered) else 0.0,
        "largest": [round(float(one), 6) for one in ordered[-LARGEST:]],
        "windows": len(windows),
        "met": sum(met),
        "bytes": moved,
    }


def percentile(latencies: Latencies, percent: float) -> float:
    """The least latency that this share of all latencies does not exceed; 0 without any."""
    if not len(latencies):
        return 0.0
    rank = ceil(percent / 100 * len(latencies) * (1 - 1e-12))
    return float(numpy.sort(latencies)[max(rank, 1) - 1])


def read_rows(file: Path, slo: float | None, end_s: float) -> Seen:
    """Measurements of a workload from the rows of `leeward traces replay --out`.

    Args:
        file: The rows.
        slo: SLO of the workload in seconds.
        end_s: Time at which the replay stopped waiting for answers, in seconds after its start.
    """
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    at_s = numpy.array([float(row["seconds"]) for row in rows])
    is_answered = numpy.array([bool(row["latency_s"]) for row in rows], dtype=bool)
    waited = [float(row["latency_s"]) if row["latency_s"] else end_s - float(row["seconds"]) for row in rows]
    moved = sum(int(row["size"]) for row in rows if row["latency_s"])
    return seen(at_s, numpy.array(waited), slo, moved, int((~is_answered).sum()))


def beyond(one: Seen, most: float) -> int:
    """Number of requests with a latency above `most`, of the largest ones that a result keeps."""
    return sum(latency > most for latency in one["largest"])
