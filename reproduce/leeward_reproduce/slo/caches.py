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
MODELS = "SNC, models as released"
"""Bounds of ours on models as released: the difference from `SNC` is that of the fit, and the difference from
`RELEASED` is that of the bounds."""
WITH_RELEASED_MODELS = (RELEASED, MODELS)
FIT = "mixture"
"""Method by which Leeward fits models; stored results of another method are not reused."""
FRAME = 1538.0
"""Bytes that links send at once: an Ethernet frame with all overhead."""
PUBLISHED = {"unit": "fluid", "fifo": False, "by_request": False, "blocks": False}
"""Settings of the bounds of the thesis."""
BOUNDS = {"unit": "frames", "frame": FRAME}
"""Settings of bounds for real networks, which send whole frames."""
SILO_BY_HAND, QJUMP_AS_PUBLISHED = "Silo, rates by hand", "QJump, rates of its equation"
HAND = (1.25, 1.5, 2.0, 3.0, 5.0)
"""Multiples of the mean rate that are tried for Silo as published; the one that admits most counts. The
thesis chooses rates by trial and error (section 4.3.1)."""
FACTORS = (1, 2, 4, 8, 16, 32, 64, 2 * WORKLOADS)
"""Factors of QJump's equation 4, up to the whole link; ours."""
EQUATION = [workloads.GIGABIT * factor / (2 * WORKLOADS) for factor in FACTORS]
"""Rates of QJump's classes by this equation, without the delay of switches: a factor of the link's rate over
twice the number of workloads."""
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    SNC: ("snc", {"bounds": BOUNDS}),
    MODELS: ("snc", {"bounds": BOUNDS}),
    RELEASED: ("snc", {"bounds": PUBLISHED}),
    DNC: ("dnc", {"search": False, "bounds": BOUNDS}),
    PM: ("dnc", {"search": False, "bounds": PUBLISHED, "method": "priority-meister"}),
    SILO: ("silo++", {}),
    QJUMP: ("qjump++", {}),
    QJUMP_AS_PUBLISHED: ("qjump++", {"rates": EQUATION}),
    **{f"{SILO_BY_HAND}: {k:g}": ("silo++", {"multiple": k}) for k in HAND},
}
"""Policies and their settings. Priorities follow SLOs: in the thesis, no other order admits more."""
LIMITED = tuple(name for name, (policy, _) in POLICIES.items() if policy in ("silo++", "qjump++"))
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


def by_hand(drawn: workloads.Draws, on: list[tuple[int, int]], traces: VolumeExperiment | None) -> str:
    """Policy of Silo with the multiple of the mean rate that admits most of these workloads."""
    names = [name for name in POLICIES if name.startswith(SILO_BY_HAND)]
    return max(names, key=lambda name: admit(name, drawn, on, replayed=False, traces=traces)["admitted"])


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
    source = traces or experiment(policy in WITH_RELEASED_MODELS)
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
