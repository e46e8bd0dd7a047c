"""Experiments of Choreo's section 6, by seed: times of placements of the same apps on a network.

Figure 10 and the comparison with the best placement have networks whose paths differ (`topology`). Variants
of each change one input, to test whether it is the reason of a difference from the paper.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy

from leeward import Cluster, _native
from leeward_reproduce.choreo import topology, workload
from leeward_reproduce.choreo.workload import App

BASELINES = ("random", "round-robin", "minimum-machines")
OURS = ("choreo", "leeward")
EXACT = "choreo-exact"
LARGE_NODES = 50
"""Most search nodes of the exact program for a large app. Usual apps have the policy's default."""
ERRORS = (0.0, 0.1, 0.25, 0.5)
"""Maximum errors of measured rates, in either direction (section 7.2)."""
APPS = 30
"""Number of experiments under each seed."""
LARGE_APPS = 12
"""Number of large apps under each seed; ten seeds have more than the paper's 111 apps."""
MAX_DRAWS = 1000
"""Maximum number of draws of apps, some of which do not fit."""

Times = dict[str, float]
Networks = Callable[[numpy.random.Generator], Cluster]
"""Draws a network."""
Apps = Callable[[numpy.random.Generator], App]
"""Draws an app."""


@dataclass(frozen=True)
class Outcome:
    """Experiments under one seed."""

    times: list[Times]
    """Time of each policy, for each experiment."""
    redrawn: int
    """Number of drawn apps that did not fit under some policy."""
    gaps: list[float] = field(default_factory=list)
    """For each experiment with an exact placement, the share of its time by which a better one may be faster:
    0 if it is proven best."""


def paths(random: numpy.random.Generator) -> Cluster:
    """A network whose paths differ."""
    return topology.draw(random).cluster()


def machines(random: numpy.random.Generator) -> Cluster:
    """A network in which all paths of a machine have its rate."""
    return workload.hose(workload.ec2(random))


def joined(random: numpy.random.Generator, spread: float = workload.SPREAD) -> App:
    """One to three apps, joined into one (section 6.2)."""
    return workload.join([workload.app(random, spread) for _ in range(random.integers(1, 4))])


def equal(random: numpy.random.Generator) -> App:
    """One to three apps whose transfers have equal sizes, joined into one."""
    return joined(random, 0.0)


def large(random: numpy.random.Generator) -> App:
    """A large app."""
    return workload.app(random, sizes=workload.LARGE)


def at_once(seed: int, networks: Networks = paths, apps: Apps = joined) -> Outcome:
    """Section 6.2: one to three apps, joined into one."""
    return _outcome(seed, 1, partial(_once, networks, apps), APPS)


def in_sequence(seed: int, networks: Networks = paths) -> Outcome:
    """Section 6.3: two to four apps that arrive one after the other; a time is the sum of their run times."""
    return _outcome(seed, 2, partial(_sequence, networks), APPS)


def exact(seed: int, networks: Networks = paths) -> Outcome:
    """Section 5: greedy against the best placement; times are those of the exact program's model."""
    return _outcome(seed, 3, partial(_exact, networks, joined, EXACT), APPS)


def exact_large(seed: int) -> Outcome:
    """Section 5, with large apps; the exact program stops after a number of nodes."""
    policy = f"{EXACT}:nodes={LARGE_NODES}"
    return _outcome(seed, 5, partial(_exact, paths, large, policy), LARGE_APPS)


def accuracy(seed: int) -> Outcome:
    """Section 7.2: apps at once, placed by rates with errors."""
    return _outcome(seed, 4, _accuracy, APPS)


def _outcome(
    seed: int,
    kind: int,
    experiment: Callable[[numpy.random.Generator, int], tuple[Times, float | None] | None],
    count: int,
) -> Outcome:
    """Makes experiments until there are `count` in which all policies placed the apps."""
    random = numpy.random.default_rng([seed, kind])
    times: list[Times] = []
    gaps: list[float] = []
    redrawn = 0
    for number in range(MAX_DRAWS):
        if len(times) == count:
            break
        result = experiment(random, seed * MAX_DRAWS + number)
        if result is None:
            redrawn += 1
            continue
        of_policy, gap = result
        times.append(of_policy)
        gaps += [] if gap is None else [gap]
    return Outcome(times, redrawn, gaps)


def _once(
    networks: Networks, apps: Apps, random: numpy.random.Generator, seed: int
) -> tuple[Times, None] | None:
    network = networks(random)
    return _compare(network, [(0.0, apps(random))], seed)


def _sequence(networks: Networks, random: numpy.random.Generator, seed: int) -> tuple[Times, None] | None:
    network = networks(random)
    apps = [workload.app(random) for _ in range(random.integers(2, 5))]
    # Apps mostly overlap: they arrive every 8 s on average, and a transfer of the usual size takes 8 s.
    starts = numpy.concatenate([[0.0], random.exponential(8.0, len(apps) - 1)]).cumsum()
    arrivals = [(float(start), app) for start, app in zip(starts, apps, strict=True)]
    return _compare(network, arrivals, seed)


def _compare(network: Cluster, arrivals: Sequence[tuple[float, App]], seed: int) -> tuple[Times, None] | None:
    return _sums({policy: _run(network, policy, arrivals, seed) for policy in (*BASELINES, *OURS)})


def _accuracy(random: numpy.random.Generator, seed: int) -> tuple[Times, None] | None:
    rates = workload.ec2(random)
    app = joined(random)
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


def _exact(
    networks: Networks, apps: Apps, policy: str, random: numpy.random.Generator, seed: int
) -> tuple[Times, float] | None:
    network = networks(random)
    app = apps(random)
    policies = {**{name: name for name in OURS}, EXACT: policy}
    runs = {name: _run(network, spec, [(0.0, app)], seed)[0] for name, spec in policies.items()}
    if any(run["forecast_s"] is None or run["refused"] for run in runs.values()):
        return None
    # A program that ends without a bound may have the best placement, or one that is slower by any factor.
    gap = 1.0 if runs[EXACT]["gap"] is None else min(runs[EXACT]["gap"], 1.0)
    return {name: run["forecast_s"] for name, run in runs.items()}, gap


def _run(
    network: Cluster,
    policy: str,
    arrivals: Sequence[tuple[float, App]],
    seed: int,
    believed: Cluster | None = None,
) -> list[dict[str, Any]]:
    apps = [(start, app.tasks, app.transfers) for start, app in arrivals]
    return _native.simulate_apps(network, policy, apps, seed, believed)


def _sums(runs: dict[str, list[dict[str, Any]]]) -> tuple[Times, None] | None:
    """Time of each policy; None unless every policy placed every app."""
    if any(run["seconds"] is None for app_runs in runs.values() for run in app_runs):
        return None
    return {policy: sum(run["seconds"] for run in app_runs) for policy, app_runs in runs.items()}, None
