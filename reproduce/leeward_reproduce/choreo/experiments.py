"""Experiments of Choreo's section 6, by seed: times of placements of the same apps on a network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from leeward import Cluster, _native
from leeward_reproduce.choreo import workload
from leeward_reproduce.choreo.workload import App

BASELINES = ("random", "round-robin", "minimum-machines")
OURS = ("choreo", "leeward")
EXACT = "choreo-exact"
ERRORS = (0.0, 0.1, 0.25, 0.5)
"""Maximum errors of measured rates, in either direction (section 7.2)."""
APPS = 30
"""Number of experiments under each seed."""
MAX_DRAWS = 1000
"""Maximum number of draws of apps, some of which do not fit."""

Times = dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """Experiments under one seed."""

    times: list[Times]
    """Time of each policy, for each experiment."""
    redrawn: int
    """Number of drawn apps that did not fit under some policy."""
    proven: int = 0
    """Number of experiments whose exact placement is proven best."""


def at_once(seed: int) -> Outcome:
    """Section 6.2: one to three apps, joined into one."""
    return _outcome(seed, 1, _once)


def in_sequence(seed: int) -> Outcome:
    """Section 6.3: two to four apps that arrive one after the other; a time is the sum of their run times."""
    return _outcome(seed, 2, _sequence)


def exact(seed: int) -> Outcome:
    """Section 5: greedy against the best placement; times are those of the exact program's model."""
    return _outcome(seed, 3, _exact)


def accuracy(seed: int) -> Outcome:
    """Section 7.2: apps at once, placed by rates with errors."""
    return _outcome(seed, 4, _accuracy)


def _outcome(
    seed: int, kind: int, experiment: Callable[[numpy.random.Generator, list[float], int], Times | None]
) -> Outcome:
    random = numpy.random.default_rng([seed, kind])
    times: list[Times] = []
    redrawn = proven = 0
    for number in range(MAX_DRAWS):
        if len(times) == APPS:
            break
        result = experiment(random, workload.ec2(random), seed * MAX_DRAWS + number)
        if result is None:
            redrawn += 1
            continue
        proven += int(result.pop("proven", 0))
        times.append(result)
    return Outcome(times, redrawn, proven)


def _once(random: numpy.random.Generator, rates: list[float], seed: int) -> Times | None:
    app = workload.join([workload.app(random) for _ in range(random.integers(1, 4))])
    network = workload.hose(rates)
    return _sums({policy: _run(network, policy, [(0.0, app)], seed) for policy in (*BASELINES, *OURS)})


def _sequence(random: numpy.random.Generator, rates: list[float], seed: int) -> Times | None:
    apps = [workload.app(random) for _ in range(random.integers(2, 5))]
    # Apps mostly overlap: they arrive every 8 s on average, and a transfer of the usual size takes 8 s.
    starts = numpy.concatenate([[0.0], random.exponential(8.0, len(apps) - 1)]).cumsum()
    arrivals = [(float(start), app) for start, app in zip(starts, apps, strict=True)]
    network = workload.hose(rates)
    return _sums({policy: _run(network, policy, arrivals, seed) for policy in (*BASELINES, *OURS)})


def _accuracy(random: numpy.random.Generator, rates: list[float], seed: int) -> Times | None:
    app = workload.join([workload.app(random) for _ in range(random.integers(1, 4))])
    network, arrivals = workload.hose(rates), [(0.0, app)]
    runs = {"random": _run(network, "random", arrivals, seed)}
    for error in ERRORS:
        believed = workload.hose(workload.with_error(random, rates, error))
        for policy in OURS:
            runs[within(policy, error)] = _run(network, policy, arrivals, seed, believed)
    return _sums(runs)


def within(policy: str, error: float) -> str:
    """Label of a policy that places by rates with errors of at most this share."""
    return f"{policy}, rates within {100 * error:g} %"


def _exact(random: numpy.random.Generator, rates: list[float], seed: int) -> Times | None:
    app = workload.join([workload.app(random) for _ in range(random.integers(1, 4))])
    network = workload.hose(rates)
    runs = {policy: _run(network, policy, [(0.0, app)], seed) for policy in (*OURS, EXACT)}
    if any(run["forecast_s"] is None or run["refused"] for app_runs in runs.values() for run in app_runs):
        return None
    times = {policy: app_runs[0]["forecast_s"] for policy, app_runs in runs.items()}
    return times | {"proven": float(runs[EXACT][0]["gap"] == 0.0)}


def _run(
    network: Cluster,
    policy: str,
    arrivals: Sequence[tuple[float, App]],
    seed: int,
    believed: Cluster | None = None,
) -> list[dict[str, Any]]:
    apps = [(start, app.tasks, app.transfers) for start, app in arrivals]
    return _native.simulate_apps(network, policy, apps, seed, believed)


def _sums(runs: dict[str, list[dict[str, Any]]]) -> Times | None:
    """Time of each policy; None unless every policy placed every app."""
    if any(run["seconds"] is None for app_runs in runs.values() for run in app_runs):
        return None
    return {policy: sum(run["seconds"] for run in app_runs) for policy, app_runs in runs.items()}
