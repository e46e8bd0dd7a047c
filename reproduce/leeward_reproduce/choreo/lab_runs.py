"""Figure 10 from the wall clock: apps that send real bytes in the lab, beside their simulation.

An experiment has the same apps under every policy, one policy after another in a drawn order. Its bytes are
scaled so that its longest simulated run takes a set time, because relative speed-ups do not depend on sizes.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from leeward import Cluster, _native, tenant
from leeward_reproduce.choreo import workload
from leeward_reproduce.choreo.experiments import BASELINES, Outcome, Times
from leeward_reproduce.choreo.lab import Lab, lab
from leeward_reproduce.choreo.topology import draw
from leeward_reproduce.choreo.workload import App

POLICIES = ("choreo", *BASELINES)
BETWEEN_S = 8.0
"""Average time between arrivals, for apps at the rates of EC2; it is scaled like the bytes."""
_TICK_S = 0.5
Arrivals = list[tuple[float, App]]


@dataclass
class LabOutcome:
    """Experiments in the topology of a seed."""

    real: list[Times] = field(default_factory=list)
    """Time of each policy by the wall clock, for each experiment; the sum over apps in sequence."""
    simulated: list[Times] = field(default_factory=list)
    """Time of each policy in the simulator, on the true rates."""
    same_hosts: int = 0
    """Runs of apps in which the simulator chose the same hosts."""
    apps: int = 0
    """Runs of apps, each under a policy."""
    redrawn: int = 0
    survey_s: float = 0.0
    survey_bytes: int = 0
    errors: list[float] = field(default_factory=list)
    """Deviations of the measured rates."""

    def outcome(self, times: str) -> Outcome:
        """The experiments as those of the simulation: `real` or `simulated`."""
        return Outcome(getattr(self, times), self.redrawn)


def _once(random: numpy.random.Generator, spread: float = workload.SPREAD) -> Arrivals:
    apps = [workload.app(random, spread) for _ in range(random.integers(1, 4))]
    return [(0.0, workload.join(apps))]


def _even(random: numpy.random.Generator) -> Arrivals:
    return _once(random, 0.0)


def _sequence(random: numpy.random.Generator) -> Arrivals:
    apps = [workload.app(random) for _ in range(random.integers(2, 5))]
    starts = numpy.concatenate([[0.0], random.exponential(BETWEEN_S, len(apps) - 1)]).cumsum()
    return [(float(start), app) for start, app in zip(starts, apps, strict=True)]


@dataclass(frozen=True)
class Kind:
    """A kind of experiment."""

    draw: Callable[[numpy.random.Generator], Arrivals]
    count: int
    """Experiments under each seed."""
    longest_s: float
    """Simulated time of the slowest policy, for which an experiment is scaled, in seconds."""


KINDS = {"10a": Kind(_once, 5, 2.0), "10b": Kind(_sequence, 3, 2.5), "even": Kind(_even, 3, 2.0)}
"""Experiments by the names of figures."""


def run_seed(seed: int, figures: Collection[str]) -> dict[str, LabOutcome]:
    """Runs the experiments of figures in one topology.

    Raises:
        UnableError: Namespaces are unavailable, or a host failed.
    """
    results = {name: LabOutcome() for name in figures}
    with lab(draw(numpy.random.default_rng([seed, 5]))) as built:
        for name, outcome in results.items():
            kind = KINDS[name]
            outcome.survey_s, outcome.survey_bytes = built.survey_s, built.survey_bytes
            outcome.errors = built.errors
            random = numpy.random.default_rng([seed, 6 + list(KINDS).index(name)])
            while len(outcome.real) < kind.count:
                _experiment(built, outcome, kind.draw(random), kind.longest_s, random, seed)
    return results


def _experiment(
    built: Lab,
    outcome: LabOutcome,
    arrivals: Arrivals,
    longest_s: float,
    random: numpy.random.Generator,
    seed: int,
) -> None:
    """Runs the apps under every policy, unless they do not fit."""
    true, measured = Cluster(built.true), Cluster(built.measured)

    def simulate(at: Arrivals) -> dict[str, list[dict[str, Any]]]:
        apps = [(start, app.tasks, app.transfers) for start, app in at]
        return {policy: _native.simulate_apps(true, policy, apps, seed, measured) for policy in POLICIES}

    first = simulate(arrivals)
    times = [run["seconds"] for runs in first.values() for run in runs]
    if any(seconds is None for seconds in times) or not any(times):
        outcome.redrawn += 1
        return
    scaled = _scaled(arrivals, longest_s / max(map(sum, _by_policy(first).values())))
    simulated = simulate(scaled)
    real: Times = {}
    for at in random.permutation(len(POLICIES)):
        policy = POLICIES[at]
        ran = run_apps(built, policy, scaled, seed)
        real[policy] = sum(seconds for seconds, _ in ran)
        outcome.apps += len(ran)
        pairs = zip(ran, simulated[policy], strict=True)
        outcome.same_hosts += sum(hosts == other["hosts"] for (_, hosts), other in pairs)
    outcome.real.append({policy: real[policy] for policy in POLICIES})
    outcome.simulated.append({policy: sum(times) for policy, times in _by_policy(simulated).items()})


def _by_policy(runs: dict[str, list[dict[str, Any]]]) -> dict[str, list[float]]:
    return {policy: [run["seconds"] for run in of_policy] for policy, of_policy in runs.items()}


def _scaled(arrivals: Arrivals, factor: float) -> Arrivals:
    """Apps with bytes and times between arrivals multiplied."""
    return [
        (
            start * factor,
            App(app.tasks, [(a, b, max(1, round(size * factor))) for a, b, size in app.transfers]),
        )
        for start, app in arrivals
    ]


def run_apps(built: Lab, policy: str, arrivals: Arrivals, seed: int) -> list[tuple[float, list[str]]]:
    """Runs apps as they arrive; returns the running time and the hosts of each.

    The scheduler knows the measured network and the apps that run. An app that fits nowhere waits, and its
    time begins when it is placed, as in the simulator.
    """
    scheduler = _native.Scheduler(Cluster(built.measured), policy, seed)
    waiting = list(range(len(arrivals)))
    running: dict[int, tenant.Execution] = {}
    result: dict[int, tuple[float, list[str]]] = {}
    start = time.monotonic()
    while waiting or running:
        now = time.monotonic() - start
        for at in [one for one in waiting if arrivals[one][0] <= now]:
            hosts = scheduler.place(at, at, _app_text(arrivals[at][1]))
            if hosts is not None:
                waiting.remove(at)
                running[at] = _begin(built.fleet, arrivals[at][1], hosts)
                result[at] = (0.0, hosts)
        for at in [one for one, execution in running.items() if execution.ended_s is not None]:
            result[at] = (running.pop(at).ended_s or 0.0, result[at][1])
            scheduler.end(at)
        later = [arrivals[one][0] for one in waiting if arrivals[one][0] > now]
        if running:
            next_s = min(later) - (time.monotonic() - start) if later else _TICK_S
            event = built.fleet.event(min(max(next_s, 0.0), _TICK_S))
            if event is not None:
                any(execution.handle(event) for execution in running.values())
        elif later:
            time.sleep(max(min(later) - (time.monotonic() - start), 0.0))
    return [result[at] for at in range(len(arrivals))]


def _begin(fleet: tenant.Fleet, app: App, hosts: Sequence[str]) -> tenant.Execution:
    names = [f"task{at}" for at in range(len(app.tasks))]
    content = {
        "tasks": [{"task": name, "command": None} for name in names],
        "transfers": [{"from": names[a], "to": names[b], "bytes": size} for a, b, size in app.transfers],
    }
    execution = tenant.Execution(fleet, content, dict(zip(names, hosts, strict=True)))
    execution.begin()
    return execution


def _app_text(app: App) -> str:
    """An app as the scheduler reads it."""
    tasks = ", ".join(
        f"{{name: task{at}, cpus: {round(1000 * cpus)}m}}" for at, (cpus, _) in enumerate(app.tasks)
    )
    transfers = ", ".join(f"{{from: task{a}, to: task{b}, bytes: {size}B}}" for a, b, size in app.transfers)
    return f"tasks: [{tasks}]\ntransfers: [{transfers}]\n"
