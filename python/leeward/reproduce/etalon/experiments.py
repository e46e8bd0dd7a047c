"""What is run: the testbed's network as scenarios of the packet plant, and what is measured of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy

from leeward import packets
from leeward.reproduce.etalon import paper

HORIZON = "2s"
EARLY = "tau_early"
AT = "at_circuit"
BIG = 128
"""Packets of a queue ahead of a circuit."""
JITTER = "1us"
"""Hosts start to send up to so much later than they could, so that seeds differ."""
STATIC = tuple(sorted({*paper.VOQ, 12, 24, 48, 96}))
"""Static queues that figure 10 compares with."""


@dataclass(frozen=True)
class Measured:
    """A run of section 4. Latencies are in microseconds, by path."""

    used: float
    """Percent of its days in which the circuit sent."""
    medians: Mapping[str, float | None]
    tail: float
    """99th percentile over both paths."""


@lru_cache(maxsize=1024)
def long(
    seed: int,
    horizon: str,
    voq: int = 16,
    tau: int | None = None,
    ece: str | None = None,
    delay_us: float = 30.0,
) -> Measured:
    """Sixteen flows from a rack to another under the strobe schedule (section 4).

    Args:
        seed: Of the run.
        horizon: How long it is.
        voq: Packets of a queue.
        tau: By how many microseconds before its day a queue grows to 128 packets; None if it does not.
        ece: When reTCP is told of circuits; None for Reno.
        delay_us: Of a circuit.
    """
    scenario: dict[str, Any] = {
        "network": {"voq_capacity": voq, "circuit_delay": f"{round(1000 * delay_us)}ns", "jitter": JITTER},
        "scheduler": {"name": "strobe"},
        "workload": {"long": {"from": 0, "to": 1, "flows": 16}},
        "horizon": horizon,
        "seed": seed,
    }
    if tau is not None:
        scenario["resize"] = {"small": voq, "big": BIG, "tau": f"{tau}us"}
    if ece is not None:
        scenario["tcp"] = {"control": "retcp", "ece": ece}
    run = packets.simulate(scenario)
    tail = run.latency("all", 0.99)
    medians = {path: _us(run.latency(path, 0.5)) for path in packets.PATHS}
    return Measured(100 * (run.utilization(0, 1) or 0.0), medians, 1e6 * (tail or 0.0))


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else 1e6 * seconds


@dataclass(frozen=True)
class Check:
    """What table 1 checks: the length of days and weeks in microseconds, rates in Gb/s."""

    day: float
    week: float
    packet: float
    circuit: float


def check(seed: int, horizon: str) -> Check:
    """Days of a saturated pair, and the rate of a saturated packet path."""
    base: dict[str, Any] = {
        "network": {"voq_capacity": BIG, "jitter": JITTER},
        "workload": {"long": {"from": 0, "to": 1, "flows": 16}},
        "horizon": horizon,
        "seed": seed,
    }
    days = columns(packets.simulate({**base, "scheduler": {"name": "strobe"}}).days())
    ours = (days["source"] == 0) & (days["destination"] == 1)
    began, lengths = 1e6 * days["began_s"][ours], 1e6 * (days["ended_s"] - days["began_s"])[ours]
    alone = packets.simulate(base)
    delivered = columns(alone.flows())["delivered_bytes"].sum() * WIRE
    return Check(
        float(lengths.mean()),
        float(numpy.diff(began).mean()),
        8e-9 * float(delivered) / alone.totals()["ended_s"],
        8e-3 * float((days["bytes"][ours] / lengths).max()),
    )


WIRE = 9000 / 8948
"""Bytes of a full packet for each byte that it carries."""


def columns(table: Any) -> dict[str, Any]:
    """Columns of a table as numpy arrays; null is NaN."""
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


@dataclass(frozen=True)
class Improvement:
    """Figure 10 at one length of a round trip."""

    trips: float
    percent: float | None
    """By how much the median is lower; None if no static queue uses circuits as much or as little."""


def improvements(seed: int, horizon: str) -> list[Improvement]:
    """Queues that grow 1 ms early against static ones of the same utilization, by round trips in a day."""
    made = []
    for trips in paper.TRIPS:
        delay = 180 / (2 * trips)
        static = [long(seed, horizon, voq, delay_us=delay) for voq in STATIC]
        grown = long(seed, horizon, 16, 1000, delay_us=delay)
        made.append(Improvement(trips, improvement(static, grown)))
    return made


def improvement(static: list[Measured], grown: Measured) -> float | None:
    """By how many percent the median is lower than that of static queues, interpolated by utilization."""
    points = sorted((one.used, one.medians["all"] or 0.0) for one in static)
    used, medians = zip(*points, strict=True)
    median = grown.medians["all"]
    if median is None or not used[0] <= grown.used <= used[-1]:
        return None
    return 100 * (1 - median / float(numpy.interp(grown.used, used, medians)))


@dataclass(frozen=True)
class Rings:
    """A run of section 5: completion in ms, of flows that were not over until the end; Gb/s; GB."""

    small: Any
    big: Any
    small_gbps: Any
    big_gbps: Any
    packet_gb: float
    circuit_gb: float


@lru_cache(maxsize=256)
def rings(seed: int, horizon: str, count: int, system: str, ece: str = EARLY) -> Rings:
    """Big flows along rings of racks and small ones between all (section 5), under one of `paper.SYSTEMS`."""
    scenario: dict[str, Any] = {
        "network": {"voq_capacity": 16, "jitter": JITTER},
        "workload": {"rings": {"rings": count}},
        "horizon": horizon,
        "seed": seed,
    }
    if system.startswith("Packet"):
        scenario["network"]["packet_rate"] = f"{system.removeprefix('Packet')}Gbps"
    elif system == "Fixed":
        steps = "[" + ",".join(str(step + 1) for step in range(count)) + "]"
        scenario["scheduler"] = {"name": f"fixed:rings={steps}"}
    else:
        demand = "adu" if system.startswith("ADU") else "voq"
        scenario["scheduler"] = {"name": "solstice-etalon", "demand": demand}
        if "+" in system:
            scenario["resize"] = {"small": 16, "big": BIG, "tau": "1000us"}
        if system.endswith("reTCP"):
            scenario["tcp"] = {"control": "retcp", "ece": ece}
    found = packets.read(scenario)
    run = found.run()
    flows, totals = columns(run.flows()), run.totals()
    begun = ~numpy.isnan(flows["began_s"])
    flows = {name: column[begun] for name, column in flows.items()}
    done = ~numpy.isnan(flows["finished_s"])
    under_way = numpy.where(done, flows["finished_s"], found.horizon_s) - flows["began_s"]
    gbps = 8e-9 * flows["delivered_bytes"] / numpy.maximum(under_way, 1e-9)
    big = flows["class"] == 1
    return Rings(
        1e3 * under_way[~big],
        1e3 * under_way[big],
        gbps[~big],
        gbps[big],
        1e-9 * totals["packet_bytes"],
        1e-9 * totals["circuit_bytes"],
    )
