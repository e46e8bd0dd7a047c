"""Rates of packed volumes beside the linear program of the thesis, as scipy solves it.

The program is that of SLO section 5.2.2, equations 5.4 to 5.7, in its own variables: a rate and a burst for
each workload, and a row for each segment of its r-b curve. Leeward's program has other variables.
"""

import json
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest
from scipy.optimize import linprog

Run = Callable[..., subprocess.CompletedProcess[str]]
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(4, 100))]
ROUNDING = 1e-4
"""Share of each SLO that packing reserves for rounding."""

Curve = list[tuple[float, float]]
"""Buckets (rate, burst), by falling rate: shares of a device, and seconds of its service."""


def random_curve(random: numpy.random.Generator) -> Curve:
    """Buckets of which each is the least at some time: the times from one to the next rise."""
    rates = numpy.sort(random.uniform(0.01, 0.25, random.integers(1, 6)))[::-1]
    curve = [(round(rates[0], 6), round(random.uniform(0.001, 0.02), 6))]
    times = numpy.sort(random.uniform(0.01, 1, len(rates) - 1))
    for rate, time in zip(rates[1:], times, strict=True):
        before, burst = curve[-1]
        curve.append((round(rate, 6), round(burst + time * (before - rate), 6)))
    return curve


def optimum(curves: list[Curve], slos: list[float]) -> float | None:
    """Least sum of rates; None if no limits keep all SLOs."""
    count = len(curves)
    levels = sorted(set(slos))
    # Variables: rates, bursts, and for each priority the share R that higher priorities take.
    width = 2 * count + len(levels)
    rows, limits = [], []

    def constrain(weights: dict[int, float], most: float) -> None:
        row = numpy.zeros(width)
        for at, weight in weights.items():
            row[at] = weight
        rows.append(row)
        limits.append(most)

    bounds: list[tuple[float, float | None]] = []
    for at, curve in enumerate(curves):
        bounds.append((curve[-1][0], None))
        for (rate, burst), (less, more) in pairwise(curve):
            # The segment from (rate, burst) to (less, more): burst at a rate is at least on its line.
            slope = (more - burst) / (rate - less)
            constrain({count + at: -1, at: -slope}, -(burst + slope * rate))
    bounds += [(curve[0][1], None) for curve in curves]
    bounds += [(0, 1)] * len(levels)
    constrain(dict.fromkeys(range(count), 1.0), 1 - 1e-6)
    for number, slo in enumerate(levels):
        share, target = 2 * count + number, slo * (1 - ROUNDING)
        before = {at: 1.0 for at in range(count) if slos[at] < slo}
        constrain({**before, share: -1}, 0)
        upto = {count + at: 1 / target for at in range(count) if slos[at] <= slo}
        constrain({**upto, share: 1.0}, 1 - 1e-6)
    cost = numpy.concatenate([numpy.ones(count), numpy.zeros(width - count)])
    solution = linprog(cost, numpy.array(rows), numpy.array(limits), bounds=bounds, method="highs")
    return float(solution.fun) if solution.status == 0 else None


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_are_the_least_of_the_program(run: Run, tmp_path: Path, seed: int) -> None:
    random = numpy.random.default_rng(seed)
    count = int(random.integers(2, 8))
    curves = [random_curve(random) for _ in range(count)]
    # Every other seed has SLOs that the program often cannot keep.
    slos = [float(random.choice([0.05, 0.1, 0.2] if seed % 2 else [0.2, 0.4, 0.8])) for _ in curves]
    device = [{"name": "ssd", "read": "1GB/s", "write": "1GB/s"}]
    hosts: list[dict[str, Any]] = [{"name": "client", "devices": []}, {"name": "server", "devices": device}]
    cluster = {"racks": [{"hosts": hosts}], "nic": "10Gbps", "rack_link": "10Gbps", "priorities": 8}
    (tmp_path / "c.json").write_text(json.dumps(cluster))
    workloads = [
        {
            "name": f"w{at}",
            "client": "client",
            "slo": {"percentile": 99.9, "latency": f"{slo}s"},
            "stages": ["storage"],
            "unloaded": "0s",
            "curves": {
                "storage": [{"rate": f"{100 * rate:.4f}%", "burst": f"{burst}s"} for rate, burst in curve]
            },
        }
        for at, (curve, slo) in enumerate(zip(curves, slos, strict=True))
    ]
    content = {"margin": "0%", "bounds": {"unit": "fluid"}, "workloads": workloads}
    (tmp_path / "w.json").write_text(json.dumps(content))
    result = run("slo", "pack", "w.json", "--cluster", "c.json", "--method", "dnc", "-o", "json")
    record = json.loads(result.stdout)
    least = optimum(curves, slos)
    if least is None:
        # Bounds may allow more than the program, with whole curves of several buckets.
        assert record["refused"] or any(len(one["stages"][0]["limits"]) > 1 for one in record["workloads"])
        return
    assert not record["refused"]
    rates = [one["stages"][0]["limits"][0]["rate"] for one in record["workloads"]]
    assert all(len(one["stages"][0]["limits"]) == 1 for one in record["workloads"])
    assert sum(rates) == pytest.approx(least, rel=1e-4)
