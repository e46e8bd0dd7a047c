"""The four incidents of section 3.4 over TCP.

The paper states events and factors, but neither loads nor sizes. A rack has ten hosts of 10 Gb/s and a
link of 20 Gb/s, as in the cell of the fluid's incidents; the loads are stated in the rows. The factors
are results.
"""

from collections.abc import Mapping
from typing import Any

import numpy
from pyarrow import compute

from leeward import operations
from leeward_reproduce.figures import Experiment, Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.rack_storage import CHUNK
from leeward_reproduce.hotspots.reasons import OVER_TCP
from leeward_reproduce.hotspots.tcp import rack
from leeward_reproduce.hotspots.tcp.load import mean_bytes, think_s
from leeward_reproduce.rows import Paper, Reason, Row, measured_row, row_key

LINK_BPS = 20e9
HOSTS = 10
SLOTS = 40
"""Tasks on a rack before the incident, four for each host."""
IN_USE = 0.7
"""Share of processors in use, as in the cell: tasks that take longer accumulate up to all processors."""
LOADS = (0.6, 0.8, 0.95)
"""Utilizations of racks before uplinks are halved."""
CYCLES = 25
"""Reads and writes of a task."""
LENGTH_S, WARMUP_S = 14, 4
INTENSIVE = 0.47
"""Share of the tenth of the jobs with the most bandwidth in all traffic, for bandwidths with sigma 1.2."""
USUAL_LOAD = 0.3
"""Mean utilization of racks, the default of the generator of cells."""
RACKS_LEFT = 4
"""Racks for each rack that the constraint leaves."""
SENDERS, INCAST_S, DEGRADED_AFTER = 200, (10.0, 30.0), "1s"
INCAST_END_S = 70
HOT_LOAD = 0.8
SERVICE_DISKS, INCAST_DISKS = 16, 4
"""Disks of a server, which share its rates."""
SERVER_S = 0.002
"""Approximate time of a chunk in its server, besides the disk, and on an idle network."""
BLOCK = 8 << 20

Outcome = Mapping[str, float]


def _racks(link_bps: float) -> dict[str, Any]:
    return rack.cluster(link_bps, HOSTS)


def _halved(seed: int, load: float, tasks: int, halved: bool) -> float:
    """Mean time of batch tasks on a rack, in seconds. A task reads, computes and writes, again and again."""
    bits = 8 * mean_bytes(CHUNK)
    # Each cycle has one transfer in each direction.
    compute_s = think_s(load, SLOTS, bits, LINK_BPS, rack.NIC_BPS)
    steps = [{"operation": "read"}, rack.thinking(compute_s), {"operation": "write"}]
    kinds = [
        {
            "name": kind,
            "kind": kind,
            "medium": "none",
            "size": [f"{size}B" for size in CHUNK],
            "servers": "r1",
        }
        for kind in ("read", "write")
    ]
    task = {"name": "task", "concurrent": tasks, "hosts": "r0", "steps": steps, "repeat": CYCLES}
    run = operations.simulate(
        {
            "cluster": _racks(LINK_BPS / 2 if halved else LINK_BPS),
            "media": list(rack.MEDIA),
            "operations": kinds,
            "jobs": [task],
            "horizon": f"{LENGTH_S}s",
            "warmup": f"{WARMUP_S}s",
            "sample": f"{LENGTH_S - WARMUP_S}s",
            "seed": seed,
        }
    )
    jobs = run.jobs()
    times = jobs["ended_s"].to_numpy() - jobs["began_s"].to_numpy()
    return float(times.mean()) if len(times) else float("nan")


def _herding(seed: int, packed: bool) -> tuple[float, float]:
    """Mean time of HDD reads of a service, and the utilization of the link of its rack.

    Args:
        seed: Seed of the run.
        packed: True for all workers on the racks that a constraint leaves.
    """
    bits = 8 * mean_bytes(CHUNK)
    others, service = USUAL_LOAD * (1 - INTENSIVE), USUAL_LOAD * INTENSIVE
    think_others = think_s(others, SLOTS, bits, LINK_BPS, rack.NIC_BPS)
    # Alone, a service's read also takes the times of the disk and of the server; workers think for the rest.
    cycle = SLOTS * bits / (service * LINK_BPS)
    alone = rack.read_s(SERVICE_DISKS, mean_bytes(CHUNK)) + SERVER_S
    size = [f"{one}B" for one in CHUNK]
    run = operations.simulate(
        {
            "cluster": _racks(LINK_BPS),
            "media": rack.media_with(SERVICE_DISKS),
            "operations": [
                {"name": "read", "kind": "read", "medium": "hdd", "size": size, "servers": "r1"},
                {"name": "other", "kind": "read", "medium": "none", "size": size, "servers": "r1"},
            ],
            "jobs": [
                {
                    "name": "service",
                    "concurrent": SLOTS * (RACKS_LEFT if packed else 1),
                    "hosts": "r0",
                    "steps": [rack.thinking(max(cycle - alone, 1e-4)), {"operation": "read"}],
                },
                {
                    "name": "others",
                    "concurrent": SLOTS,
                    "hosts": "r0",
                    "record": False,
                    "steps": [rack.thinking(think_others), {"operation": "other"}],
                },
            ],
            "horizon": f"{LENGTH_S}s",
            "warmup": f"{WARMUP_S}s",
            "sample": f"{LENGTH_S - WARMUP_S}s",
            "seed": seed,
        }
    )
    times = run.operations()["latency_s"].to_numpy()
    return float(times.mean()), _used(run, "r0:downlink", LINK_BPS)[0]


def _used(run: operations.OperationsRun, link: str, bps: float) -> Any:
    """Utilization of a link in each window."""
    rows = run.links()
    rows = rows.filter(compute.equal(rows["link"], link))
    return 8 * rows["bytes"].to_numpy() / run.sample_s / bps


def _incast(seed: int, degraded: bool) -> tuple[float, float]:
    """Mean time of reads from the start of an incast on, and the seconds for which the downlink is hot."""
    read: dict[str, Any] = {"name": "read", "kind": "read", "medium": "hdd", "size": f"{BLOCK}B"}
    if degraded:
        read["degraded"] = {"after": DEGRADED_AFTER}
    start, end = INCAST_S
    devices = [{"read": "600MB/s", "write": "500MB/s", "capacity": "16TB"}]
    run = operations.simulate(
        {
            "cluster": {
                "nic": "10Gbps",
                "hosts_per_rack": 10,
                "racks": [
                    {"count": 12, "kind": "disk", "link": "40Gbps", "devices": devices},
                    {"count": 4, "kind": "compute", "link": "40Gbps", "tags": ["senders"]},
                    {"name": "clients", "kind": "compute", "link": "10Gbps"},
                ],
            },
            "media": rack.media_with(INCAST_DISKS),
            "chunks": {"policy": "uniform", "stripes": 500, "coding": "6+3", "size": f"{BLOCK}B"},
            "operations": [
                read,
                {"name": "send", "kind": "write", "medium": "none", "size": "1MB", "servers": "clients"},
            ],
            "jobs": [
                {
                    "name": "reads",
                    "rate": 2e9 / 8 / BLOCK,
                    "hosts": "clients",
                    "steps": [{"operation": "read"}],
                },
                {
                    "name": "incast",
                    "concurrent": SENDERS,
                    "hosts": "senders",
                    "record": False,
                    "start": f"{start:g}s",
                    "end": f"{end:g}s",
                    "steps": [{"operation": "send"}],
                },
            ],
            "horizon": f"{INCAST_END_S}s",
            "sample": "1s",
            "seed": seed,
        }
    )
    rows = run.operations()
    times = rows["latency_s"].to_numpy()[rows["began_s"].to_numpy() >= start]
    hot = (_used(run, "clients:downlink", 10e9) > 0.75).sum()
    return float(times.mean()), float(hot)


def _replication(seed: int, hot: bool) -> float:
    """Mean time of reads of a copy's host from a rack of SSDs, in seconds."""
    bits = 8 * mean_bytes(CHUNK)
    link_bps = 10e9
    jobs: list[dict[str, Any]] = [
        {
            "name": "copies",
            "rate": 0.5e9 / 8 / BLOCK,
            "hosts": "r1h0",
            "steps": [{"operation": "copy"}],
        }
    ]
    if hot:
        think = think_s(HOT_LOAD, SLOTS, bits, link_bps, rack.NIC_BPS)
        steps = [rack.thinking(think), {"operation": "other"}]
        jobs.append({"name": "others", "concurrent": SLOTS, "hosts": "r1", "record": False, "steps": steps})
    run = operations.simulate(
        {
            "cluster": _racks(link_bps),
            "media": list(rack.MEDIA),
            "operations": [
                {"name": "copy", "kind": "read", "medium": "ssd", "size": f"{BLOCK}B", "servers": "r0"},
                {
                    "name": "other",
                    "kind": "read",
                    "medium": "none",
                    "servers": "r0",
                    "size": [f"{one}B" for one in CHUNK],
                },
            ],
            "jobs": jobs,
            "horizon": f"{3 * LENGTH_S}s",
            "warmup": f"{WARMUP_S}s",
            "seed": seed,
        }
    )
    return float(run.operations()["latency_s"].to_numpy().mean())


def _run(seed: int, short: bool) -> Outcome:
    result: dict[str, float] = {}
    for load in LOADS[1:2] if short else LOADS:
        whole = _halved(seed, load, SLOTS, False)
        result[f"halved {load:g}"] = _halved(seed, load, SLOTS, True) / whole
        result[f"crowded {load:g}"] = _halved(seed, load, round(SLOTS / IN_USE), True) / whole
    (spread, spread_load), (packed, packed_load) = (_herding(seed, one) for one in (False, True))
    result |= {"herding": packed / spread, "spread load": spread_load, "packed load": packed_load}
    for degraded in (False, True):
        words = "degraded" if degraded else "waits"
        result[f"incast {words}"], result[f"hot {words}"] = _incast(seed, degraded)
    result["replication"] = _replication(seed, True) / _replication(seed, False)
    return result


TCP_INCIDENTS = Experiment("incidents over TCP", _run)
"""The four incidents."""


def halved_label(load: float, crowded: bool) -> str:
    """Label of the row of halved uplinks.

    Args:
        load: Utilization before.
        crowded: True for tasks that accumulate.
    """
    tasks = "tasks up to the processors" if crowded else "as many tasks"
    words = f"uplinks halved at {load:.0%} utilization: time of batch tasks, over whole uplinks"
    return f"{words}, {tasks}{OVER_TCP}"


CONSTRAINT = f"constraint: time of HDD reads of the service, over no constraint{OVER_TCP}"
"""Label of the row of the constraint."""
_UNKNOWN_LOAD = "the paper does not state the load of these racks"
_DISKS = Reason("the paper states neither the load of the service nor its disks, which are most of a read")
_LEFT = Reason("four fifths of the uplink are in use, by workers that wait: the paper states no load")


def _halved_reason(load: float, crowded: bool) -> Reason:
    """Reason of a row of halved uplinks, with the row that tests it."""
    if not crowded:
        free = f"as many tasks as before: {1 - IN_USE:.0%} of the processors were free, and tasks accumulate"
        return Reason(free, variant=row_key("incidents", halved_label(load, True)))
    if load == LOADS[-1]:
        return Reason(_UNKNOWN_LOAD)
    return Reason(_UNKNOWN_LOAD, variant=row_key("incidents", halved_label(LOADS[-1], True)))


def rows(results: Results) -> list[Row]:
    """Incidents in the order of the paper."""
    outcome, result = results.outcomes[TCP_INCIDENTS], []

    def row(
        key: str,
        label: str,
        unit: str,
        value: Paper,
        note: str,
        reason: Reason | None = None,
        factor: float = 1.0,
    ) -> None:
        values = [factor * one[key] for one in outcome if numpy.isfinite(one.get(key, numpy.nan))]
        result.append(measured_row("incidents", label, unit, values, value, note, reason))

    for load in LOADS:
        for crowded, key in ((False, f"halved {load:g}"), (True, f"crowded {load:g}")):
            note = f"{1 - IN_USE:.0%} of processors were free" if crowded else ""
            reason = _halved_reason(load, crowded)
            row(key, halved_label(load, crowded), "x", paper.CAPACITY_STRETCH, note, reason)
    row("herding", CONSTRAINT, "x", paper.CONSTRAINT_LATENCY, "the paper: read latency", _DISKS)
    label = f"constraint: utilization of its racks {{}}{OVER_TCP}"
    row("spread load", label.format("without the constraint"), "%", None, "", factor=100)
    row("packed load", label.format("with it"), "%", None, "", factor=100)
    for key, words in (("waits", "clients wait"), ("degraded", "clients degrade reads after 1 s")):
        label = f"an incast of 20 s, {words}: {{}}{OVER_TCP}"
        note = "the paper: significantly worse, without numbers" if key == "degraded" else ""
        row(f"incast {key}", label.format("mean read time from then on"), "s", None, note)
        row(f"hot {key}", label.format("downlink hot for"), "s", None, "")
    label = f"hot storage ToR: time to read what is to be copied, over that before{OVER_TCP}"
    row("replication", label, "x", paper.REPLICATION_LATENCY, "others use 80 % of the uplink", _LEFT)
    return result
