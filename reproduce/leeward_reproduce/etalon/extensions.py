"""Experiments beyond the paper.

The experiments are: schedulers at up to 128 racks; rotors, also with packets routed over other racks, against
schedules by demand; and earlier and later transports compared with reTCP.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from leeward import _native, packets
from leeward.circuits import Network, schedule
from leeward_reproduce.etalon.experiments import AT, BIG, EARLY, JITTER, columns
from leeward_reproduce.etalon.pictures import grouped_bars, lines
from leeward_reproduce.rows import Row, measured_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = 3
RACKS = (8, 16, 32, 64, 128)
SCHEDULERS = ("solstice-etalon", "solstice", "eclipse")
ROTORS = ("direct", "vlb", "rotorlb", "hoho")
TAU = "1000us"
LONG_QUEUE = 256
"""Capacity of a rotor's queue in packets: a little more than a circuit carries in a day."""
STARTS = "1s"
"""Time until which flows start."""
FEW = "200ms"
"""Time until which flows start in the runs with many racks."""
ENDS = "1min"
"""Latest end of these runs; a run ends earlier with its last flow."""
REPEATS = 5
WEEK_BYTES = 20_000_000
"""Bytes of a circuit of 80 Gb/s in a week of 2 ms."""


def shorter(horizon: str, limit: str) -> str:
    """The shorter of two times."""
    return min(horizon, limit, key=_native.seconds)


def demand(racks: int, seed: int) -> Any:
    """Bytes by pair of racks; each rack sends and receives as much as a circuit carries in a week.

    Three quarters of the bytes belong to big flows along five drawn rings, the others to small flows between
    all racks.
    """
    draw = numpy.random.default_rng(seed)
    others = numpy.arange(1, racks)
    steps = draw.choice(others, size=min(5, len(others)), replace=False)
    shares = draw.dirichlet(numpy.ones(len(steps)))
    ahead = numpy.full(racks, 0.25 / len(others))
    ahead[0] = 0.0
    ahead[steps] += 0.75 * shares
    needed = numpy.zeros((racks, racks))
    names = draw.permutation(racks)
    for source in range(racks):
        for step in others:
            needed[names[source], names[(source + step) % racks]] = ahead[step] * WEEK_BYTES
    return numpy.floor(needed).astype(numpy.int64)


@dataclass(frozen=True)
class ServedDemand:
    """Percent of the demand that a schedule serves by circuits, and the time to make the schedule, in ms.

    The time is the least processor time of several repetitions. It includes serving the demand, and the call
    from Python.
    """

    percent: float
    took_ms: float


def schedules(seed: int) -> dict[tuple[str, int], ServedDemand]:
    """Results of every scheduler on the same demand, for each number of racks."""
    results = {}
    for racks in RACKS:
        matrix = demand(racks, seed)
        for name in SCHEDULERS:
            times = []
            for _ in range(REPEATS):
                began = time.thread_time()
                result = schedule(matrix, name, Network())
                times.append(time.thread_time() - began)
            results[name, racks] = ServedDemand(100 * result.served, 1e3 * min(times))
    return results


@dataclass(frozen=True)
class FlowRun:
    """Times of flows in ms, and totals of a run. Times of unfinished flows are until the end of the run."""

    small: Any
    big: Any
    unfinished: float
    """Percent of flows that did not end."""
    gbps: float
    """Rate of in-order arrivals of all hosts: until the last start if sampled, else of the complete run."""
    again: float
    """Percent of segments that are retransmitted."""
    lost: float
    """Percent of packets lost in the switch."""
    passed: float
    """Percent of packets that a rack forwarded."""
    ended_ms: float


def run_scenario(scenario: Mapping[str, Any]) -> FlowRun:
    """Runs a scenario."""
    run = packets.simulate(scenario)
    flows, totals = columns(run.flows()), run.totals()
    start = ~numpy.isnan(flows["began_s"])
    flows = {name: column[start] for name, column in flows.items()}
    is_open = numpy.isnan(flows["finished_s"])
    over = numpy.where(is_open, totals["ended_s"], flows["finished_s"])
    times, big = 1e3 * (over - flows["began_s"]), flows["class"] == 1
    hops = totals["hops_packets"]
    return FlowRun(
        times[~big],
        times[big],
        100 * float(is_open.mean()),
        _gbps(run),
        100 * float(flows["again"].sum()) / max(1.0, float(flows["segments"].sum())),
        100 * totals["dropped_packets"] / max(1, totals["sent_packets"]),
        100 * sum(hops[1:]) / max(1, sum(hops)),
        1e3 * totals["ended_s"],
    )


def _gbps(run: packets.PacketRun) -> float:
    """Rate of arrivals until the first sample, after the starts; of the complete run without samples."""
    samples = columns(run.samples())
    after = samples["time_s"][samples["time_s"] > 0]
    if not len(after):
        all_of_it = float(columns(run.flows())["delivered_bytes"].sum())
        return 8e-9 * all_of_it / float(run.totals()["ended_s"])
    first = float(after.min())
    arrivals = float(samples["delivered_bytes"][samples["time_s"] == first].sum())
    return 8e-9 * arrivals / first


def ring_runs(seed: int, horizon: str) -> dict[tuple[str, int], FlowRun]:
    """Two rings of big flows, and small flows between all racks, under schedules by the demand of ADUs."""
    result = {}
    for racks in RACKS:
        for name in SCHEDULERS:
            scenario = _rings(seed, shorter(horizon, FEW), racks)
            scenario["scheduler"] = {"name": name, "demand": "adu"}
            result[name, racks] = run_scenario(scenario)
    return result


def _rings(seed: int, until: str, racks: int) -> dict[str, Any]:
    return {
        "network": {"racks": racks, "voq_capacity": 16, "jitter": JITTER},
        "workload": {"rings": {"rings": 2, "until": until}},
        "resize": {"small": 16, "big": BIG, "tau": TAU},
        "horizon": ENDS,
        "seed": seed,
    }


def scale(
    seed: int, horizon: str
) -> tuple[dict[tuple[str, int], ServedDemand], dict[tuple[str, int], FlowRun]]:
    """Schedules at up to 128 racks, and the completion of flows under them."""
    return schedules(seed), ring_runs(seed, horizon)


Scale = Sequence[tuple[Mapping[tuple[str, int], ServedDemand], Mapping[tuple[str, int], FlowRun]]]


def scale_rows(outcomes: Scale) -> list[Row]:
    """Rows of `scale`."""
    result = []
    for racks in RACKS:
        for name in SCHEDULERS:
            served = [of[name, racks] for of, _ in outcomes]
            label = f"{racks} racks, {name}"
            result.append(
                measured_row("scale", f"{label}: demand served", "%", [one.percent for one in served])
            )
            result.append(
                measured_row("scale", f"{label}: time to make", "ms", [one.took_ms for one in served])
            )
    for racks in RACKS:
        for name in SCHEDULERS:
            runs = [of[name, racks] for _, of in outcomes]
            label = f"{racks} racks, {name}, two rings"
            result += _completion("scale", label, runs)
            result.append(
                measured_row("scale", f"{label}: flows not over", "%", [one.unfinished for one in runs])
            )
    return result


def _completion(figure: str, label: str, runs: Sequence[FlowRun]) -> list[Row]:
    quantities: tuple[tuple[str, str, int], ...] = (
        ("small flows, median", "small", 50),
        ("small flows, p99", "small", 99),
        ("big flows, median", "big", 50),
    )
    result = []
    for name, kind, share in quantities:
        percentiles = [
            float(numpy.percentile(times, share)) for one in runs if len(times := getattr(one, kind))
        ]
        result.append(measured_row(figure, f"{label}: {name}", "ms", percentiles))
    return result


def rotors(seed: int, horizon: str) -> dict[tuple[str, str], FlowRun]:
    """Section 5's ring, and an all-to-all, on rotors without a packet switch and on networks with one.

    All queues are equally long, because rotors without a packet switch need long queues.
    """
    result = {}
    until = shorter(horizon, STARTS)
    pairs = [[source, destination] for source in range(8) for destination in range(8)]
    loads: dict[str, dict[str, Any]] = {
        "ring": {
            "workload": {"rings": {"rings": 1, "until": until}},
            "sample": {"every": until, "pairs": pairs},
        },
        "all to all": {
            "workload": {"collective": {"kind": "all_to_all", "bytes": "20MB", "ranks_per_rack": 4}}
        },
    }
    for load, of_load in loads.items():
        base: dict[str, Any] = of_load | {"horizon": ENDS, "seed": seed}
        for routing in ROTORS:
            result[f"rotor alone, {routing}", load] = run_scenario(
                base
                | {
                    "network": {"packet_switch": False, "voq_capacity": LONG_QUEUE, "jitter": JITTER},
                    "scheduler": {"name": "rotor"},
                    "routing": {"name": routing},
                }
            )
        hybrid = base | {"network": {"voq_capacity": LONG_QUEUE, "jitter": JITTER}}
        result["rotor and packets, direct", load] = run_scenario(hybrid | {"scheduler": {"name": "rotor"}})
        demanded = {"name": "solstice", "demand": "adu"}
        result["solstice of ADUs and packets", load] = run_scenario(hybrid | {"scheduler": demanded})
    return result


def rotor_rows(outcomes: Sequence[Mapping[tuple[str, str], FlowRun]]) -> list[Row]:
    """Rows of `rotors`."""
    result = []
    for system, load in outcomes[0]:
        runs, label = [one[system, load] for one in outcomes], f"{load}, {system}"
        while_starting = " while flows start" if load == "ring" else ""
        if load == "ring":
            result += _completion("rotor", label, runs)
        else:
            result.append(measured_row("rotor", f"{label}: all over", "ms", [one.ended_ms for one in runs]))
        quantities: tuple[tuple[str, str, Callable[[FlowRun], float]], ...] = (
            (f"throughput{while_starting}", "Gb/s", lambda one: one.gbps),
            ("flows not over", "%", lambda one: one.unfinished),
            ("segments sent again", "%", lambda one: one.again),
            ("packets lost", "%", lambda one: one.lost),
            ("packets passed on", "%", lambda one: one.passed),
        )
        result += [
            measured_row("rotor", f"{label}: {what}", unit, [get(one) for one in runs])
            for what, unit, get in quantities
        ]
    return result


TRANSPORTS: Mapping[str, Mapping[str, Any]] = {
    "Reno": {"control": "reno"},
    "CUBIC": {"control": "cubic"},
    "DCTCP": {"control": "dctcp"},
    "TDTCP": {"control": "reno", "divisions": 2},
    f"reTCP {AT}": {"control": "retcp", "ece": AT},
    f"reTCP {EARLY}": {"control": "retcp", "ece": EARLY},
}
QUEUES = ("queues of 16", f"16 to {BIG}, {TAU} early")
MARK_AT = 10
"""Length of a queue, in packets, from which on it marks packets for DCTCP."""


@dataclass(frozen=True)
class Long:
    """A run of sixteen flows from a rack to another; latencies are in microseconds, shares in percent."""

    used: float
    median: float
    tail: float
    again: float
    gbps: float


def transports(seed: int, horizon: str) -> dict[tuple[str, str], Long]:
    """Section 4's flows under the strobe schedule, by transport, with static and resized queues."""
    result = {}
    for name, tcp in TRANSPORTS.items():
        for queues in QUEUES:
            scenario: dict[str, Any] = {
                "network": {"voq_capacity": 16, "jitter": JITTER},
                "scheduler": {"name": "strobe"},
                "workload": {"long": {"from": 0, "to": 1, "flows": 16}},
                "tcp": tcp,
                "horizon": horizon,
                "seed": seed,
            }
            if name == "DCTCP":
                scenario["network"]["mark_at"] = MARK_AT
            if queues != QUEUES[0]:
                scenario["resize"] = {"small": 16, "big": BIG, "tau": TAU}
            run = packets.simulate(scenario)
            flows = columns(run.flows())
            result[name, queues] = Long(
                100 * (run.utilization(0, 1) or 0.0),
                1e6 * (run.latency("all", 0.5) or 0.0),
                1e6 * (run.latency("all", 0.99) or 0.0),
                100 * float(flows["again"].sum() / max(1, flows["segments"].sum())),
                8e-9 * float(flows["delivered_bytes"].sum()) / run.totals()["ended_s"],
            )
    return result


def transport_rows(outcomes: Sequence[Mapping[tuple[str, str], Long]]) -> list[Row]:
    """Rows of `transports`."""
    quantities: tuple[tuple[str, str, Callable[[Long], float]], ...] = (
        ("circuit used", "%", lambda one: one.used),
        ("throughput", "Gb/s", lambda one: one.gbps),
        ("median latency", "us", lambda one: one.median),
        ("p99 latency", "us", lambda one: one.tail),
        ("segments sent again", "%", lambda one: one.again),
    )
    return [
        measured_row(
            "transport", f"{name}, {queues}: {what}", unit, [get(one[name, queues]) for one in outcomes]
        )
        for queues in QUEUES
        for name in TRANSPORTS
        for what, unit, get in quantities
    ]


def scale_picture(outcomes: Scale) -> "Figure":
    """Share of the demand that schedulers serve, and their time, by the number of racks."""
    quantities: tuple[tuple[str, Callable[[ServedDemand], float]], ...] = (
        ("demand served, %", lambda one: one.percent),
        ("time to make, ms", lambda one: one.took_ms),
    )
    panels = {
        y: [
            (
                name,
                RACKS,
                [float(numpy.mean([get(served[name, racks]) for served, _ in outcomes])) for racks in RACKS],
            )
            for name in SCHEDULERS
        ]
        for y, get in quantities
    }
    return lines(panels, "racks", {"time to make, ms"})


def rotor_picture(outcomes: Sequence[Mapping[tuple[str, str], FlowRun]]) -> "Figure":
    """Throughput by system and load."""
    systems = list(dict.fromkeys(system for system, _ in outcomes[0]))
    loads = list(dict.fromkeys(load for _, load in outcomes[0]))
    values = {
        load: [float(numpy.mean([one[system, load].gbps for one in outcomes])) for system in systems]
        for load in loads
    }
    return grouped_bars(systems, values, "throughput (of the ring while flows start), Gb/s")


def transport_picture(outcomes: Sequence[Mapping[tuple[str, str], Long]]) -> "Figure":
    """Circuit utilization by transport and queues."""
    names = list(TRANSPORTS)
    values = {
        queues: [float(numpy.mean([one[name, queues].used for one in outcomes])) for name in names]
        for queues in QUEUES
    }
    return grouped_bars(names, values, "circuit used, %")
