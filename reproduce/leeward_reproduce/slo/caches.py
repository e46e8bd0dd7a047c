"""Traces of lookups in a cache, drawn as the thesis describes its own, which are private (section 4.3.2).

The released traces (`workloads`) are of block devices, and far burstier: their peak rate over a second is 2
to 130 times the mean rate, and 2 to 6 times for the traces of figure 4.9. So chapter 4's experiments on
networks use drawn traces too. `crates/experiments/src/cache.rs` draws them.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from leeward import data
from leeward._native import VolumeExperiment, draw_links, draw_workloads
from leeward_reproduce.slo import workloads

TRACES, SECONDS, SEED = 24, 600.0, 1
"""Number of traces, their length in seconds, and the seed of their parameters. The thesis has 180 traces of
half an hour each."""
PACKET = 1400
"""Bytes of a request that is one packet (section 4.4.3)."""
SMALL = 6
"""Number of additional traces of requests of one packet."""
SLOS = (0.01, 0.02, 0.05, 0.1)
"""SLOs in seconds (section 4.4.1)."""
NETWORK = ["network-in", "network-out"]
WORKLOADS, CLIENTS, SERVERS = 60, 4, 2
"""A third of the thesis' 180 workloads on 12 clients and 6 servers."""
SNC, RELEASED, DNC, PM, SILO, QJUMP = "SNC", "SNC as released", "DNC", "DNC as published", "Silo++", "QJump++"
FRAME = 1538.0
"""Bytes that links send at once: an Ethernet frame with all overhead."""
PUBLISHED = {"unit": "fluid", "fifo": False, "by_request": False, "blocks": False}
"""Settings of the bounds of the thesis."""
BOUNDS = {"unit": "frames", "frame": FRAME}
"""Settings of bounds for real networks, which send whole frames."""
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    SNC: ("snc", {"bounds": BOUNDS}),
    RELEASED: ("snc", {"bounds": PUBLISHED}),
    DNC: ("dnc", {"search": False, "bounds": BOUNDS}),
    PM: ("dnc", {"search": False, "bounds": PUBLISHED, "method": "priority-meister"}),
    SILO: ("silo++", {}),
    QJUMP: ("qjump++", {}),
}
"""Policies and their settings. Priorities follow SLOs: in the thesis, no other order admits more."""
LIMITED = (SILO, QJUMP)
"""Policies whose limits are enforced in replays. The buckets of DNC's curves are not enforced: the rate of
the last bucket is the mean rate of the first half, and a higher rate in the second half would be delayed
without end."""

Outcome = dict[str, Any]


def experiment(released: bool = False, seconds: float | None = None) -> VolumeExperiment:
    """Drawn traces, with the released models or with Leeward's models.

    Traces of other `seconds` are the same workloads for another time; by default they last `SECONDS`.
    """
    folder = data.data_folder()
    if folder is None:
        raise FileNotFoundError(workloads.absent())
    profile = folder / workloads.SET / workloads.PROFILE
    return _experiment(profile, TRACES, SMALL, seconds or SECONDS, SEED, released)


@cache
def _experiment(
    profile: Path, traces: int, small: int, seconds: float, seed: int, released: bool
) -> VolumeExperiment:
    request = {"seed": seed, "count": small + traces, "small": small, "size": PACKET, "seconds": seconds}
    return VolumeExperiment.cache(json.dumps(request), str(profile), 2, json.dumps({"published": released}))


def draws(seed: int, count: int = 0, slos: tuple[float, ...] = SLOS) -> workloads.Draws:
    """Workloads of the traces of objects."""
    pairs = [(SMALL + trace, slo) for slo in slos for trace in range(TRACES)]
    return draw_workloads(seed, count or WORKLOADS, pairs)


def links(seed: int, count: int = 0, times: int = 1) -> list[tuple[int, int]]:
    """Clients and servers of a cluster enlarged by a factor."""
    return draw_links(seed, count or WORKLOADS, CLIENTS * times, SERVERS * times)


def machines(times: int = 1) -> dict[str, Any]:
    """A cluster enlarged by a factor."""
    return {
        "clients": CLIENTS * times,
        "slots": None,
        "servers": SERVERS * times,
        "devices": 1,
        "bytes_per_second": workloads.GIGABIT,
    }


def admit(
    policy: str,
    drawn: workloads.Draws,
    on: list[tuple[int, int]],
    *,
    times: int = 1,
    replayed: bool = True,
    limited: bool = False,
    traces: VolumeExperiment | None = None,
) -> Outcome:
    """Admits workloads by the first halves of their traces, and replays the second halves.

    Args:
        policy: One of `POLICIES`, or `none`.
        drawn: Workloads.
        on: Client and server of each workload.
        times: Factor of the cluster's size.
        replayed: True to replay the second halves.
        limited: True to enforce limits in the replay under every policy.
        traces: Released or other traces; by default the drawn ones.
    """
    name, settings = POLICIES.get(policy, (policy, {}))
    source = traces or experiment(policy == RELEASED)
    request = {
        "shape": machines(times),
        "policy": name,
        "settings": json.dumps(settings) if settings else "",
        "stages": NETWORK,
        "part": "first",
        "replay": "second" if replayed else None,
        "over": "enforced" if limited or policy in LIMITED else "unlimited",
        "packet": FRAME,
    }
    results = source.admit(drawn, on, json.dumps(request))
    result = {
        "placed": results["placed"],
        "admitted": len(results["placed"]),
        "bytes": sum(source.payload(drawn[index][0], "second") for index in results["placed"]),
    }
    if replayed:
        result["missed"] = sum(one["met"] < one["windows"] for one in results["replayed"])
    return result
