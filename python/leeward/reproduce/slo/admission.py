"""Figures 4.4, 4.10 and 4.16: who is admitted, by each policy.

Workloads arrive one by one in random order, each on a client and a server drawn for it. Bounds are made of
the first half of each trace. The thesis has half-hour traces of its own and a hundred sets of 180 workloads;
these are fewer and smaller.
"""

import json
from collections.abc import Sequence
from typing import Any

from leeward._native import study_draws, study_links
from leeward.reproduce.rows import Row, measured
from leeward.reproduce.slo import paper, world

SLOS = (0.01, 0.02, 0.05, 0.1)
"""Seconds (section 4.4.1)."""
NETWORK = ["network-in", "network-out"]
STAGES = ["network-in", "storage", "network-out"]
WORKLOADS, CLIENTS, SERVERS = 60, 4, 2
"""A third of the thesis' 180 workloads on 12 clients and 6 servers."""
LINK = world.GIGABIT
STORED = 35
"""Workloads of figure 4.16, on one server."""
STORED_SLOS = (0.15, 0.2, 0.4)
LOAD = 0.6
"""Of the device, by all workloads of figure 4.16 at most."""
SNC = "SNC"
POLICIES = {
    SNC: ("snc", ""),
    "DNC": ("dnc", ""),
    "Silo++": ("silo++", ""),
    "QJump++": ("qjump++", ""),
}

Outcome = dict[str, Any]


def network(seed: int) -> Outcome:
    """Figures 4.4 and 4.10: networks alone."""
    return _admitted(seed, SLOS, WORKLOADS, CLIENTS, SERVERS, NETWORK, list(POLICIES))


def storage(seed: int) -> Outcome:
    """Figure 4.16: a server with storage."""
    return _admitted(seed, STORED_SLOS, STORED, STORED, 1, STAGES, [SNC, "DNC"])


def _light(drawn: world.Draws) -> int:
    """How many of the first workloads the device has room for, by their mean load."""
    loads, total = world.loads(), 0.0
    for at, (trace, _, _) in enumerate(drawn):
        total += loads[trace]
        if total > LOAD:
            return at
    return len(drawn)


def _admitted(
    seed: int,
    slos: Sequence[float],
    count: int,
    clients: int,
    servers: int,
    stages: list[str],
    policies: Sequence[str],
) -> Outcome:
    pairs = [(trace, slo) for slo in slos for trace in range(len(world.study()))]
    drawn, links = study_draws(seed, count, pairs), study_links(seed, count, clients, servers)
    if stages == STAGES:
        drawn = drawn[: _light(drawn)]
    shape = {
        "clients": clients,
        "slots": None,
        "servers": servers,
        "devices": 1,
        "bytes_per_second": LINK,
    }
    made: Outcome = {"count": len(drawn)}
    for name in policies:
        policy, settings = POLICIES[name]
        asked = {
            "shape": shape,
            "policy": policy,
            "settings": settings,
            "stages": stages,
            "part": "first",
        }
        found = world.study().admit(drawn, links, json.dumps(asked))
        made[name] = {
            "admitted": len(found["placed"]),
            "bytes": sum(world.study().payload(drawn[index][0], "second") for index in found["placed"]),
        }
    return made


def rows_network(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figures 4.4 and 4.10."""
    scale = (
        f"{WORKLOADS} workloads on {CLIENTS} clients and {SERVERS} servers; the thesis has 180 on 12 and 6,"
        " of other traces"
    )
    return _rows("4.10", outcomes, paper.SNC_OVER_DNC, paper.SNC_BYTES, ("DNC", "Silo++", "QJump++"), scale)


def rows_storage(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.16."""
    rows = _rows(
        "4.16", outcomes, paper.STORAGE_SNC, None, ("DNC",), f"one server, and a load of {LOAD:.0%} at most"
    )
    share = [100 * one["DNC"]["admitted"] / one["count"] for one in outcomes]
    rows.append(measured("4.16", "DNC: admitted of all", "%", share, paper.STORAGE_DNC))
    return rows


def _rows(
    figure: str,
    outcomes: Sequence[Outcome],
    more: float,
    more_bytes: float | None,
    rivals: Sequence[str],
    note: str,
) -> list[Row]:
    rows = []
    for name in [name for name in POLICIES if name in outcomes[0]]:
        admitted = [float(one[name]["admitted"]) for one in outcomes]
        rows.append(measured(figure, f"{name}: admitted", "workloads", admitted, None, note))
    for what, words, value in (("admitted", "workloads", more), ("bytes", "bytes", more_bytes)):
        pairs = [(one[SNC][what], max(one[name][what] for name in rivals)) for one in outcomes]
        percent = [100 * (ours / theirs - 1) for ours, theirs in pairs if theirs]
        said = (
            f"SNC over the best of {', '.join(rivals)}: {words}"
            if len(rivals) > 1
            else f"SNC over DNC: {words}"
        )
        rows.append(measured(figure, said, "%", percent, value, "mean here; the thesis has medians"))
    return rows
