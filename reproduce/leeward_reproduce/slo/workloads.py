"""Traces, and the workloads drawn from them.

The released traces last ten minutes, those of the thesis half an hour. A workload is a trace with an SLO at
99.9 %; the trace is replayed once, from a random start. The profile of an SSD is released with the traces; it
has no latencies without queueing.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from leeward import data
from leeward._native import Trace, VolumeExperiment, draw_workloads

SET = "zhu-workloadcompactor"
PROFILE = "profileSSD.txt"
SLOS = (0.1, 0.15, 0.25, 0.5, 1.0)
"""SLOs in seconds (section 5.4.1)."""
COUNTS = (65, 67, 70, 85, 70)
"""Number of workloads with each of these SLOs (figure 5.4)."""
RANDOM = 62
"""Number of workloads of the set in which each has a random one of these SLOs (figure 5.4)."""
GIGABIT = 125e6
"""Rate of links, in bytes per second."""
SLOTS = 15
"""Maximum number of workloads of a client machine, as in the released example."""
COMPACTOR = "compactor"
WAYS: dict[str, tuple[str, str]] = {
    COMPACTOR: ("compactor", ""),
    "1.5x average": ("average", '{"multiple": 1.5}'),
    "2x average": ("average", '{"multiple": 2.0}'),
    "knee": ("knee", ""),
    "effective bandwidth": ("effective-bandwidth", ""),
    "effective bandwidth, thirds": ("effective-bandwidth", '{"split": "equal"}'),
}
"""Methods of choosing rate limits: name and settings. The thesis does not say how effective bandwidth splits
an SLO over the three stages; one method here has the best split, and one has equal parts (`thirds`)."""
MULTIPLES = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Multiples of the mean rate, over the range that the thesis tried (section 5.3.1)."""
AVERAGES = {f"{k:g}x average": ("average", json.dumps({"multiple": k})) for k in MULTIPLES}
"""Methods that limit rates at these multiples."""
SEVERAL = ("several", "")
"""Method whose limits are all buckets of a curve at once (figure 5.12)."""
MEISTER = {
    "method": "priority-meister",
    "search": False,
    "bounds": {"unit": "fluid", "fifo": False},
}
"""Settings of deterministic admission with all buckets and PriorityMeister's bound as published."""
MARGIN = 0.1
"""Default safety margin."""

Draws = list[tuple[int, float, float]]
Pairs = list[tuple[int, float]]


def absent() -> str | None:
    """First missing file in the folder of traces; None if all are present."""
    folder = data.data_folder()
    if folder is None or not (folder / SET / PROFILE).is_file() or not _files(folder / SET):
        return f"{SET} with its traces and {PROFILE}"
    return None


def experiment(released: bool = False) -> VolumeExperiment:
    """Traces of the folder, with the released models or with Leeward's models."""
    folder = data.data_folder()
    if folder is None:
        raise FileNotFoundError(absent())
    return _experiment(folder / SET, released)


@cache
def _experiment(folder: Path, released: bool) -> VolumeExperiment:
    files = [str(path) for path in _files(folder)]
    return VolumeExperiment(files, str(folder / PROFILE), 2, json.dumps({"published": released}))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("trace*.txt*"))


@cache
def _loads(folder: Path) -> list[float]:
    result = []
    for path in _files(folder):
        stages = Trace(str(path), device=str(folder / PROFILE)).statistics()["stages"]
        result.append(next(stage["rate"] or 0.0 for stage in stages if stage["stage"] == "storage"))
    return result


def loads() -> list[float]:
    """Mean load of each trace on the device."""
    folder = data.data_folder()
    return _loads(folder / SET) if folder else []


def paths() -> list[str]:
    """Trace files, in the order of the traces of `experiment`."""
    folder = data.data_folder()
    return [str(path) for path in _files(folder / SET)] if folder else []


def inputs() -> list[tuple[str, int]]:
    """Names and sizes of the trace files; stored results of other files are not reused."""
    folder = data.data_folder()
    return [(path.name, path.stat().st_size) for path in _files(folder / SET)] if folder else []


def machines(workloads: int, devices: int = 1) -> dict[str, Any]:
    """A cluster with a client and a server for each workload, which is always enough."""
    return {
        "clients": workloads,
        "slots": SLOTS,
        "servers": workloads,
        "devices": devices,
        "bytes_per_second": GIGABIT,
    }


def request_fields(
    way: tuple[str, str],
    workloads: int,
    *,
    devices: int = 1,
    part: str = "whole",
    replay: str | None = None,
    over: str = "enforced",
    **settings: Any,
) -> dict[str, Any]:
    """Request of a packing.

    Args:
        way: Method of limits.
        workloads: Maximum number of workloads.
        devices: Number of SSDs of a server.
        part: Part of the traces from which the limits are computed.
        replay: Part of the traces to replay; none by default.
        over: Treatment of requests over a limit in the replay: `enforced` as in the thesis, `demoted` at
            every stage, or `unlimited` for a replay without limits.
        settings: Settings of the packing.
    """
    return {
        "shape": machines(workloads, devices),
        "settings": {"limits": way[0], "margin": MARGIN, **settings},
        "way": way[1],
        "part": part,
        "replay": replay,
        "over": over,
    }


@cache
def _fits(folder: Path | None, slo: float, way: str, part: str) -> list[bool]:
    fields = request_fields((WAYS | AVERAGES)[way], 1, part=part)
    return experiment().fits_alone(slo, json.dumps(fields))


def feasible(slos: tuple[float, ...], ways: tuple[str, ...] = (COMPACTOR,), part: str = "whole") -> Pairs:
    """Pairs of a trace and an SLO that fit on a server alone under each method; others would be refused."""
    pairs: Pairs = []
    for slo in slos:
        fits = [_fits(data.data_folder(), slo, way, part) for way in ways]
        pairs += [(trace, slo) for trace, fit in enumerate(zip(*fits, strict=True)) if all(fit)]
    return pairs


def draws(
    seed: int,
    count: int,
    slos: tuple[float, ...],
    *,
    ways: tuple[str, ...] = (COMPACTOR,),
    part: str = "whole",
) -> Draws:
    """Draws workloads with any of these SLOs that fit on a server alone under each method."""
    return draw_workloads(seed, count, feasible(slos, ways, part))


def pack(
    drawn: Draws, way: tuple[str, str], steps: list[tuple[int, bool]] | None = None, **settings: Any
) -> dict[str, Any]:
    """Packs draws; see `request_fields` for settings."""
    result: dict[str, Any] = experiment().pack(
        drawn, json.dumps(request_fields(way, len(drawn), **settings)), steps
    )
    return result


def first_fit(drawn: Draws, settings: dict[str, Any]) -> dict[str, Any]:
    """Puts draws on the first server where deterministic admission with these settings grants all SLOs."""
    request = {
        "shape": machines(len(drawn)),
        "policy": "dnc",
        "settings": json.dumps(settings),
        "margin": MARGIN,
        "part": "whole",
    }
    result: dict[str, Any] = experiment().first_fit(drawn, json.dumps(request))
    return result
