"""Recordings of small clusters for tests: a drawn week, and parts to write one by hand."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from leeward.kubernetes.recording import Node, Pod, Recording, Taint, Template, Traffic

BEGIN_MS = 1_767_571_200_000
"""Monday, 2026-01-05."""
HOUR_MS = 3_600_000
G = 10**9
RACKS = ("r1", "r2", "r3", "r4")
NODES_PER_RACK = 4
ROOM = {"cpu": 16_000, "memory": 64 * 2**30, "pods": 110}
LARGE = ROOM | {"cpu": 20_000, "memory": 128 * 2**30}
"""Room of the nodes of the first rack: a new one, to which a scheduler without the network prefers to go."""
TEMPLATES = (
    Template({"cpu": 4000, "memory": 8 * 2**30}, peak_bps=(2 * G, G)),
    Template({"cpu": 1000, "memory": 2**30}),
    Template({"cpu": 100}, unfit="bound_to_node"),
    Template({"cpu": 2000}, unfit="volumes"),
    Template({"cpu": 2000}, unfit="owner_gone"),
)
WORKLOADS = ("StatefulSet/shuffle", "Deployment/web", "DaemonSet/logs", "StatefulSet/store", "Job/old")
KINDS = (0, 0, 0, 1, 1, 1, 1, 2, 3, 4)
"""Templates to draw from."""
MEANS = (1.4, 0.15, 0.01, 0.4, 0.3)
"""Mean rate of a pod of each template, in Gb/s."""


def nodes() -> tuple[Node, ...]:
    return tuple(
        Node(
            f"{rack}-n{number}",
            rack,
            0,
            labels={"disk": "ssd" if number else "hdd"},
            room=ROOM if at else LARGE,
        )
        for at, rack in enumerate(RACKS)
        for number in range(NODES_PER_RACK)
    )


def week(seed: int = 1, hours: int = 168, pods: int = 240) -> Recording:
    """A drawn week in intervals of an hour; pods go to the node with most free processors."""
    draw = random.Random(seed)
    all_nodes = nodes()
    loads = {rack: numpy.zeros((2, hours)) for rack in RACKS}
    for rack in RACKS:
        for hour in range(hours):
            loads[rack][:, hour] = (1 + (8 <= hour % 24 < 18)) * G * draw.uniform(0.7, 1.3)
    free = {node.name: [node.room["cpu"]] * (hours + 1) for node in all_nodes}
    drawn, traffic = [], {}
    times = sorted(draw.randrange(hours * HOUR_MS) for _ in range(pods))
    for number, time_ms in enumerate(times):
        kind = draw.choice(KINDS)
        first = time_ms // HOUR_MS
        node = max(all_nodes, key=lambda one, at=first: free[one.name][at])  # type: ignore[misc]
        lasts = draw.choice((2, 6, 12, 30))
        ended_ms = time_ms + lasts * HOUR_MS
        last = min(hours, -(-ended_ms // HOUR_MS))
        for hour in range(first, last):
            free[node.name][hour] -= TEMPLATES[kind].requests["cpu"]
        rates = [
            numpy.array([MEANS[kind] * G * draw.uniform(0.6, 1.25) for _ in range(first, last)]).round()
            for _ in range(2)
        ]
        loads[str(node.rack)][:, first:last] += rates
        if draw.random() > 0.05:
            traffic[number] = Traffic(first, *rates)
        drawn.append(
            Pod(
                "prod",
                f"{WORKLOADS[kind].partition('/')[2]}-{number}",
                f"uid-{number}",
                WORKLOADS[kind],
                node.name,
                BEGIN_MS + time_ms,
                BEGIN_MS + ended_ms if last < hours else None,
                kind,
            )
        )
    return Recording(
        BEGIN_MS,
        HOUR_MS,
        hours,
        dict.fromkeys(RACKS, 10 * G),
        all_nodes,
        TEMPLATES,
        tuple(drawn),
        {rack: loads[rack][0].round() for rack in RACKS},
        {rack: loads[rack][1].round() for rack in RACKS},
        traffic,
        ("this week is drawn at random and of no real cluster",),
    )


def recording(
    pods: list[Pod],
    loads: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    traffic: dict[int, Traffic],
    templates: tuple[Template, ...] = TEMPLATES,
    **changes: Any,
) -> Recording:
    """A recording with the given rates out of racks and into them, with links of 10 Gb/s."""
    some_nodes = changes.pop("nodes", nodes())
    count = len(next(iter(loads.values()))[0])
    return Recording(
        BEGIN_MS,
        HOUR_MS,
        count,
        dict.fromkeys(loads, 10 * G),
        tuple(node for node in some_nodes if node.rack in loads or node.rack is None),
        templates,
        tuple(pods),
        {rack: numpy.array(out, dtype=float) for rack, (out, _) in loads.items()},
        {rack: numpy.array(into, dtype=float) for rack, (_, into) in loads.items()},
        traffic,
    )


def pod(node: str, hour: float, template: int = 0, name: str = "shuffle-0", **changes: Any) -> Pod:
    """A pod that came some hours after the beginning."""
    fields: dict[str, Any] = {"workload": "StatefulSet/shuffle", "ended_ms": None} | changes
    return Pod(
        namespace="prod",
        name=name,
        uid=f"uid-{name}",
        node=node,
        created_ms=BEGIN_MS + round(hour * HOUR_MS),
        template=template,
        **fields,
    )


def traffic(first: int, *rates: float) -> Traffic:
    """Equal rates out of a pod and into it."""
    return Traffic(first, numpy.array(rates), numpy.array(rates))


__all__ = ["Taint", "nodes", "pod", "recording", "traffic", "week"]
