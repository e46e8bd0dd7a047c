"""Times and rates of the lab's network (Etalon, table 1)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

from leeward._native import PacketRun
from leeward.lab.checks.values import Check, about, at_least, at_most, check_of
from leeward.lab.runs import LabRun, measure

DAY_US, WEEK_US, PACKET_GBPS, CIRCUIT_GBPS = 180.25, 1400.02, 9.93, 79.99
"""Means of Etalon's table 1: a day of a circuit, a week, the packet path, and a circuit."""
WIRE = 9000 / 8948
"""Bytes of a full packet for each byte of its payload."""
PART = "table 1"
_TIME_S = 4.0
"""Real length of a run."""
_FAST, _FAST_TIME_S, _FAST_GBPS = 10, 3.0, 3
"""Dilation and real length of the run for the largest real rate, and the rate that a machine with two
processors should carry."""


def days_scenario(horizon: str, seed: int = 1) -> dict[str, Any]:
    """Sixteen flows between two of eight racks under the strobe schedule, whose week has seven days."""
    return {**_flows(horizon, seed), "scheduler": {"name": "strobe"}}


def path_scenario(horizon: str, seed: int = 1) -> dict[str, Any]:
    """Sixteen flows between two racks, without circuits."""
    scenario = _flows(horizon, seed)
    return {**scenario, "network": {**scenario["network"], "racks": 2}}


def circuit_scenario(horizon: str, seed: int = 1) -> dict[str, Any]:
    """Sixteen flows between two racks over one circuit, which is down for one night a week."""
    days = [{"length": "1380us", "circuits": [[0, 1]]}]
    return {**path_scenario(horizon, seed), "scheduler": {"days": days}}


def _flows(horizon: str, seed: int) -> dict[str, Any]:
    return {
        "network": {"voq_capacity": 128, "jitter": "1us"},
        "workload": {"long": {"from": 0, "to": 1, "flows": 16}},
        "horizon": horizon,
        "seed": seed,
    }


def path_gbps(run: PacketRun) -> float:
    """Rate of delivered packets, in Gb/s, in a run of `path_scenario`."""
    delivered = run.flows()["delivered_bytes"].to_numpy().sum() * WIRE
    return 8e-9 * float(delivered) / float(run.totals()["ended_s"])


def circuit_gbps(run: PacketRun) -> float | None:
    """Rate of the circuit from rack 0 to rack 1, in Gb/s: median of its days. None without a day."""
    days = run.days()
    names = ("source", "destination", "began_s", "ended_s", "bytes")
    source, destination, began, ended, sent = (days[name].to_numpy() for name in names)
    ours = (source == 0) & (destination == 1)
    return 8e-9 * float(numpy.median(sent[ours] / (ended - began)[ours])) if ours.any() else None


def real_bps(result: LabRun) -> float:
    """Real rate of the packets that hosts sent, in bits per second."""
    totals = result.run.totals()
    return float(8 * totals["sent_bytes"] / (totals["ended_s"] * result.timing["dilation"]))


def table_1(
    dilation: int,
    days: Mapping[str, Any] | None,
    path: float | None,
    circuit: float | None,
    timings: Iterable[Mapping[str, Any]],
) -> list[Check]:
    """Checks of table 1 from measurements of runs in the lab; None for what was not measured.

    Args:
        dilation: Dilation of the runs.
        days: Timing of a run of `days_scenario`.
        path: `path_gbps` of a run.
        circuit: `circuit_gbps` of a run.
        timings: Timings of all runs.
    """
    rows = []
    for name, key, expected, percent in (
        ("day of a circuit", "days_s", DAY_US, 0.5),
        ("week", "weeks_s", WEEK_US, 0.1),
    ):
        real = 1e6 * numpy.array(days[key] if days else [])
        mean, deviation = (float(real.mean()), float(real.std())) if len(real) else (None, None)
        rows += [
            check_of(
                PART, f"{name}: mean", "us", dilation, mean, about(expected, percent), expected=expected
            ),
            check_of(PART, f"{name}: standard deviation", "us", dilation, deviation, at_most(2, "2 us")),
        ]
    for name, value, expected in (
        ("rate of the packet path", path, PACKET_GBPS),
        ("rate of a circuit", circuit, CIRCUIT_GBPS),
    ):
        rows.append(check_of(PART, name, "Gb/s", dilation, value, about(expected, 2), expected=expected))
    lost = [timing["lost_packets"] for timing in timings]
    name = "packets lost outside the switch"
    rows.append(check_of(PART, name, "packets", dilation, sum(lost) if lost else None, at_most(0, "0")))
    return rows


def check_network(dilation: int, *, progress: Callable[[float], object] | None = None) -> list[Check]:
    """Measures table 1 and the largest real rate of the switch on this machine.

    Args:
        dilation: Dilation of the runs for table 1. The largest real rate has a dilation of its own.
        progress: Called with the share of the runs that have ended.

    Raises:
        InputError: The dilation is invalid.
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    report = progress or (lambda _: None)
    results = []
    for scenario in (days_scenario, path_scenario, circuit_scenario):
        results.append(measure(scenario(f"{round(1e9 * _TIME_S / dilation)}ns"), dilation))
        report(len(results) / 4)
    days, path, circuit = results
    timings = [result.timing for result in results]
    rows = table_1(dilation, days.timing, path_gbps(path.run), circuit_gbps(circuit.run), timings)
    fast = measure(circuit_scenario(f"{round(1e9 * _FAST_TIME_S / _FAST)}ns"), _FAST)
    report(1.0)
    rows.append(
        check_of(
            "switch",
            "real packets of 9000 bytes",
            "Gb/s of real time",
            _FAST,
            1e-9 * real_bps(fast),
            at_least(_FAST_GBPS, f"{_FAST_GBPS} Gb/s"),
        )
    )
    return rows
