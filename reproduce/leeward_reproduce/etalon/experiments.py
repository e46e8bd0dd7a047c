"""Experiments: the testbed's network as scenarios of the packet simulator, and measurements of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy

from leeward import _native, packets
from leeward.lab.checks import network
from leeward_reproduce.etalon import paper

HORIZON = "2s"
EARLY = "tau_early"
AT = "at_circuit"
BIG = 128
"""Capacity in packets of a queue that has grown for a circuit."""
JITTER = "1us"
"""Maximum delay of a host's start; the random delay makes seeds differ."""
FLOWS = 16
"""Number of flows between two racks in section 4."""
STEP_US, WEEKS_US = 20, 4200
"""Time between samples of arrivals, and length of a sequence plot (three weeks), in microseconds."""
SINCE_US = numpy.arange(0, WEEKS_US + 1, STEP_US)
"""Times of a sequence plot in microseconds since the end of a day of the pair of racks."""


@dataclass(frozen=True)
class LongFlowRun:
    """A run of section 4. Latencies are in microseconds, by path."""

    used: float
    """Percent of the circuit's days during which the circuit sent data."""
    medians: Mapping[str, float | None]
    tail: float
    """99th percentile over both paths."""
    sequence: tuple[float, ...] = ()
    """Thousands of bytes that have arrived in order at each of `SINCE_US`: mean over flows and weeks."""


@lru_cache(maxsize=1024)
def long(
    seed: int,
    horizon: str,
    voq: int = 16,
    tau: int | None = None,
    ece: str | None = None,
    delay_us: float = 30.0,
) -> LongFlowRun:
    """Simulates `long_scenario`."""
    return measure_long(packets.simulate(long_scenario(seed, horizon, voq, tau, ece, delay_us)))


def long_scenario(
    seed: int,
    horizon: str,
    voq: int = 16,
    tau: int | None = None,
    ece: str | None = None,
    delay_us: float = 30.0,
) -> dict[str, Any]:
    """Sixteen flows between two racks under the strobe schedule (section 4).

    Args:
        seed: Seed of the run.
        horizon: Length of the run.
        voq: Capacity of a queue, in packets.
        tau: Microseconds from the growth of a queue to 128 packets to its circuit's day; None for no growth.
        ece: Time at which reTCP is notified of circuits, `EARLY` or `AT`; None for Reno.
        delay_us: Delay of a circuit, in microseconds.
    """
    scenario: dict[str, Any] = {
        "network": {"voq_capacity": voq, "circuit_delay": f"{round(1000 * delay_us)}ns", "jitter": JITTER},
        "scheduler": {"name": "strobe"},
        "workload": {"long": {"from": 0, "to": 1, "flows": FLOWS}},
        "sample": {"every": f"{STEP_US}us", "pairs": [[0, 1]]},
        "horizon": horizon,
        "seed": seed,
    }
    if tau is not None:
        scenario["resize"] = {"small": voq, "big": BIG, "tau": f"{tau}us"}
    if ece is not None:
        scenario["tcp"] = {"control": "retcp", "ece": ece}
    return scenario


def measure_long(run: packets.PacketRun) -> LongFlowRun:
    """Measures a run of `long_scenario`."""
    tail = run.latency("all", 0.99)
    medians = {path: _us(run.latency(path, 0.5)) for path in packets.PATHS}
    used = 100 * (run.utilization(0, 1) or 0.0)
    return LongFlowRun(used, medians, 1e6 * (tail or 0.0), _sequence(run))


def _sequence(run: Any) -> tuple[float, ...]:
    """Arrivals in the three weeks after the end of a day, as in the paper's sequence plots."""
    results = packets.sequence(run, 0, 1, span_s=1e-6 * WEEKS_US, step_s=1e-6 * STEP_US)
    if results is None or results.over == 0:
        return ()
    return tuple(float(value) for value in results.arrived_bytes / (1000 * FLOWS))


def optimum() -> list[float]:
    """Thousands of bytes of a flow at each of `SINCE_US`, if both links are full whenever they are up."""
    in_week = (SINCE_US + 180) % 1400
    # A week begins with the circuit's day. The packet link then sends until the night before its next day.
    weeks = (SINCE_US + 180) // 1400
    current = numpy.minimum(in_week, 180) * CIRCUIT_KB_US + numpy.clip(in_week - 180, 0, 1200) * PACKET_KB_US
    whole = 180 * CIRCUIT_KB_US + 1200 * PACKET_KB_US
    total = weeks * whole + current
    return [float(value) for value in (total - total[0]) / FLOWS]


PACKET_KB_US, CIRCUIT_KB_US = 10 / 8, 80 / 8
"""Rates of the links, in thousands of bytes per microsecond."""


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else 1e6 * seconds


@dataclass(frozen=True)
class Check:
    """Measured values of table 1: lengths of days and weeks in microseconds, rates in Gb/s."""

    day: float
    week: float
    packet: float
    circuit: float | None


def check(seed: int, horizon: str) -> Check:
    """Measures the days of a saturated pair, the rate of a saturated packet path, and that of a circuit."""
    scenarios = (network.days_scenario, network.path_scenario, network.circuit_scenario)
    pair, path, circuit = (packets.simulate(scenario(horizon, seed)) for scenario in scenarios)
    return Check(*measure_days(pair), network.path_gbps(path), network.circuit_gbps(circuit))


def measure_days(run: packets.PacketRun) -> tuple[float, float]:
    """Mean length of a day, and mean time between the begins of days, in microseconds."""
    days = _days(run)
    return (
        1e6 * float((days["ended_s"] - days["began_s"]).mean()),
        1e6 * float(numpy.diff(days["began_s"]).mean()),
    )


def _days(run: packets.PacketRun) -> dict[str, Any]:
    """Days of circuits from rack 0 to rack 1."""
    days = columns(run.days())
    ours = (days["source"] == 0) & (days["destination"] == 1)
    return {name: values[ours] for name, values in days.items()}


def columns(table: Any) -> dict[str, Any]:
    """Columns of a table as numpy arrays; null is NaN."""
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


@dataclass(frozen=True)
class Improvement:
    """A point of figure 10."""

    trips: float
    """Round trips on the circuit within a day."""
    percent: float | None
    """Percent by which growing queues lower the median latency."""


def improvements(seed: int, horizon: str) -> list[Improvement]:
    """Compares queues that grow 1 ms early to static queues of equal utilization, by round trips in a day."""
    result = []
    for trips in paper.TRIPS:
        delay = 180 / (2 * trips)
        static = [long(seed, horizon, voq, delay_us=delay) for voq in paper.VOQ]
        grown = long(seed, horizon, 16, 1000, delay_us=delay)
        result.append(Improvement(trips, improvement(static, grown)))
    return result


SAME_USED = 0.5
"""Largest difference of equal utilizations, in percentage points."""


def improvement(static: list[LongFlowRun], grown: LongFlowRun) -> float | None:
    """Percent by which `grown` has a lower median latency than static queues of equal utilization.

    The median of static queues is interpolated between the six queues of figure 6a, as in the authors'
    script. Outside the utilizations of these queues, the median of the nearest queue is used. A queue is left
    out if another one has a lower median and the same utilization or more: where several queues fill the
    circuit, the last tenth of a percent of their utilizations would decide between their medians.
    """
    points = sorted((one.used, one.medians["all"] or 0.0) for one in static)
    best = [
        (used, median)
        for used, median in points
        if not any(other < median and more >= used - SAME_USED for more, other in points)
    ]
    used, medians = zip(*best, strict=True)
    median = grown.medians["all"]
    if median is None:
        return None
    return 100 * (1 - median / float(numpy.interp(grown.used, used, medians)))


GIB = 2**30
INITIAL_TIMEOUT = "10ms"
"""Initial retransmission timeout of connections that flowgrind opens before it uses them."""
DELIVERY_US = {"downlink_delay": 5.0, "circuit_delay": 30.0, "local_delay": 0.0}
"""The testbed's delays in microseconds of the last step of each path."""
FIRST_ANSWER_CLASS = 2
"""Lowest class of answers; requests have lower classes."""


@dataclass(frozen=True)
class Rings:
    """A run of section 5. Times and rates are those of the flows that ended before they were stopped."""

    small: Any
    """Times of small flows, in ms."""
    big: Any
    """Times of big flows, in ms."""
    small_gbps: Any
    big_gbps: Any
    packet_gib: float
    """GiB sent up to the packet switch, as the testbed counts them."""
    circuit_gib: float
    """GiB sent over circuits."""


@lru_cache(maxsize=256)
def rings(seed: int, horizon: str, count: int, system: str, ece: str = EARLY, host_us: float = 0.0) -> Rings:
    """Simulates `rings_scenario`."""
    return measure_rings(packets.simulate(rings_scenario(seed, horizon, count, system, ece, host_us)))


def rings_scenario(
    seed: int, horizon: str, count: int, system: str, ece: str = EARLY, host_us: float = 0.0
) -> dict[str, Any]:
    """Section 5 under one of `paper.SYSTEMS`.

    Big flows run along rings of racks, and small flows between all racks. Flows start until `horizon`. As in
    the authors' scripts, a flow that has run for the length of `horizon` is stopped. A run is therefore at
    most twice as long as `horizon`. A flow ends with its answer of 60 bytes.

    Args:
        seed: Seed of the run.
        horizon: Time until which flows start.
        count: Number of rings.
        system: One of `paper.SYSTEMS`.
        ece: Time at which reTCP is notified of circuits, `EARLY` or `AT`.
        host_us: Time that each host takes for a packet, as sender and as receiver, in microseconds.
    """
    scenario: dict[str, Any] = {
        "network": {"voq_capacity": 16, "jitter": JITTER, **_delays(host_us)},
        "workload": {"rings": {"rings": count, "until": horizon, "answer": "60B"}},
        "tcp": {"initial_timeout": INITIAL_TIMEOUT},
        "give_up": horizon,
        "horizon": f"{round(2e9 * _native.seconds(horizon))}ns",
        "seed": seed,
    }
    if system.startswith("Packet"):
        scenario["network"] |= {"packet_rate": f"{system.removeprefix('Packet')}Gbps", "voq_capacity": BIG}
    elif system == "Fixed":
        steps = "[" + ",".join(str(step + 1) for step in range(count)) + "]"
        scenario["scheduler"] = {"name": f"fixed:rings={steps}"}
    else:
        demand, prepare = ("adu", "adu") if system.startswith("ADU") else ("voq", "element")
        scenario["scheduler"] = {"name": f"solstice-etalon:prepare={prepare}", "demand": demand}
        if "+" in system:
            scenario["resize"] = {"small": 16, "big": BIG, "tau": "1000us"}
        if system.endswith("reTCP"):
            scenario["tcp"] |= {"control": "retcp", "ece": ece}
    return scenario


def _delays(host_us: float) -> dict[str, str]:
    """Delays with the time of hosts; none without such a time, because the defaults are the testbed's.

    A host takes any number of packets at once, so its time is a delay. That of the sender and that of the
    receiver are added to the last step of each path, where no queue depends on it.
    """
    if host_us == 0:
        return {}
    return {name: f"{round(1000 * (delay + 2 * host_us))}ns" for name, delay in DELIVERY_US.items()}


def measure_rings(run: packets.PacketRun) -> Rings:
    """Measures a run of `rings_scenario`."""
    flows, totals = columns(run.flows()), run.totals()
    requests = numpy.flatnonzero(flows["class"] < FIRST_ANSWER_CLASS)
    times = flows["finished_s"][requests + 1] - flows["began_s"][requests]
    done, is_big = ~numpy.isnan(times), flows["class"][requests] == 1
    gbps = 8e-9 * flows["written_bytes"][requests] / times
    small, big = done & ~is_big, done & is_big
    return Rings(
        1e3 * times[small],
        1e3 * times[big],
        gbps[small],
        gbps[big],
        totals["uplink_bytes"] / GIB,
        totals["circuit_bytes"] / GIB,
    )
