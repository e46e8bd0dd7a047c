"""Traces, and the workloads drawn from them.

The released traces are of ten minutes; those of the thesis are of half an hour. A workload is a trace, from a
random start and replayed once, with an SLO at 99.9 %. The profile of an SSD is released with them, and has no
latencies without queueing.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from leeward import data
from leeward._native import Study, Trace, draw_workloads

SET = "zhu-workloadcompactor"
PROFILE = "profileSSD.txt"
SLOS = (0.1, 0.15, 0.25, 0.5, 1.0)
"""Seconds (section 5.4.1)."""
COUNTS = (65, 67, 70, 85, 70)
"""Workloads with each of them (figure 5.4)."""
RANDOM = 62
"""Workloads where each has any of them (figure 5.4)."""
GIGABIT = 125e6
"""Bytes a second of links."""
SLOTS = 15
"""Workloads of a client machine, as in the released example."""
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
an SLO over the three stages: the best split for it, and equal parts."""
SEVERAL = ("several", "")
"""All buckets of a curve at once (figure 5.12)."""
MEISTER = {
    "method": "priority-meister",
    "search": False,
    "bounds": {"unit": "fluid", "fifo": False},
}
"""The same by the bound of PriorityMeister as published."""
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


def study(released: bool = False) -> Study:
    """Traces of the folder; with models as released or Leeward's."""
    folder = data.data_folder()
    if folder is None:
        raise FileNotFoundError(absent())
    return _study(folder / SET, released)


@cache
def _study(folder: Path, released: bool) -> Study:
    files = [str(path) for path in _files(folder)]
    return Study(files, str(folder / PROFILE), 2, json.dumps({"published": released}))


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


def inputs() -> list[tuple[str, int]]:
    """Traces by name, with their sizes: the identity of earlier results."""
    folder = data.data_folder()
    return [(path.name, path.stat().st_size) for path in _files(folder / SET)] if folder else []


def machines(workloads: int, devices: int = 1) -> dict[str, Any]:
    """As many machines as a number of workloads may need: a client and a server for each."""
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
        workloads: Greatest number of workloads.
        devices: Number of SSDs of a server.
        part: Part of the traces behind the limits.
        replay: Part of the traces to replay; none by default.
        over: Treatment of requests over a limit in the replay: `enforced` as in the thesis, `demoted`
            everywhere, or none with `unlimited`.
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
    return study().fits_alone(slo, json.dumps(request_fields(WAYS[way], 1, part=part)))


def feasible(slos: tuple[float, ...], ways: tuple[str, ...] = (COMPACTOR,), part: str = "whole") -> Pairs:
    """Traces and SLOs that fit on a server alone under each of some methods: others would be refused."""
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
    """Workloads with any of these SLOs that fit on a server alone under each of some methods."""
    return draw_workloads(seed, count, feasible(slos, ways, part))


def pack(
    drawn: Draws, way: tuple[str, str], steps: list[tuple[int, bool]] | None = None, **settings: Any
) -> dict[str, Any]:
    """Packs draws; see `request_fields` for settings."""
    result: dict[str, Any] = study().pack(
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
    result: dict[str, Any] = study().first_fit(drawn, json.dumps(request))
    return result
