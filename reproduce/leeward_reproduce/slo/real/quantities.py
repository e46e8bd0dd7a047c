"""Quantities of the runs of scenarios, and rows that several figures have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan

from leeward_reproduce.real import rows
from leeward_reproduce.real.rows import Values, row
from leeward_reproduce.rows import Row
from leeward_reproduce.slo.real.bench import Outcome
from leeward_reproduce.slo.real.measures import Measures, Seen, beyond
from leeward_reproduce.slo.real.scenario import Scenario

Runs = Mapping[str, Measures]
"""Runs of a scenario by policy."""
Value = Callable[[Runs, Scenario], float]
"""A quantity of the runs of a scenario; NaN if they do not have it."""
_CLOSE = 1e-9
"""Error of sums that expectations allow for."""


def values(outcomes: Sequence[Outcome], value: Value) -> Values:
    """Values of a quantity under the seeds in which the simulator and the bed have it."""
    both = [(value(one.simulator, one.scenario), value(one.real, one.scenario)) for one in outcomes]
    counting = [(simulator, real) for simulator, real in both if isfinite(simulator) and isfinite(real)]
    return Values([simulator for simulator, _ in counting], [real for _, real in counting], len(both))


def of_bed(outcomes: Sequence[Outcome], value: Value) -> Values:
    """Values of a quantity that the simulator does not have."""
    real = [value(one.real, one.scenario) for one in outcomes]
    return Values([], [one for one in real if isfinite(one)], len(real))


# Quantities of workloads.


def milliseconds(policy: str, workload: str, name: str = "p999") -> Value:
    """A latency of a workload in milliseconds."""
    return lambda runs, _: 1000 * float(runs[policy].workloads[workload][name])


def kept(policy: str, workloads: Sequence[str], name: str = "p999") -> Value:
    """Number of workloads with a latency within their SLO."""

    def count(runs: Runs, scenario: Scenario) -> float:
        return float(sum(one <= 1 for one in _over(runs, scenario, policy, workloads, name)))

    return count


def all_within(policy: str, workloads: Sequence[str], name: str = "p999") -> Value:
    """100 if all workloads have this latency within their SLO, else 0."""

    def holds(runs: Runs, scenario: Scenario) -> float:
        return 100.0 * all(one <= 1 for one in _over(runs, scenario, policy, workloads, name))

    return holds


def share_within(policy: str) -> Value:
    """Percent of the workloads with an SLO that have their latency within it; NaN without any."""

    def share(runs: Runs, scenario: Scenario) -> float:
        over = _over(runs, scenario, policy, list(scenario.slos))
        return 100 * sum(one <= 1 for one in over) / len(over) if over else nan

    return share


def worst(policy: str, workloads: Sequence[str] | None = None) -> Value:
    """Largest latency over the SLO of workloads, by default of all with one; NaN without any."""

    def largest(runs: Runs, scenario: Scenario) -> float:
        return max(_over(runs, scenario, policy, workloads or list(scenario.slos)), default=nan)

    return largest


def _over(
    runs: Runs, scenario: Scenario, policy: str, workloads: Sequence[str], name: str = "p999"
) -> list[float]:
    """Latencies of workloads over their SLOs."""
    seen = runs[policy].workloads
    return [float(seen[one][name]) / scenario.slos[one] for one in workloads]


def windows_missed(policy: str) -> Value:
    """Percent of workloads that miss their SLO in a window; NaN without workloads."""

    def share(runs: Runs, _: Scenario) -> float:
        seen = runs[policy].workloads.values()
        return 100 * sum(one["met"] < one["windows"] for one in seen) / len(seen) if seen else nan

    return share


def late_of_thousand(policy: str) -> Value:
    """Late requests, of a thousand."""

    def late(runs: Runs, scenario: Scenario) -> float:
        seen = [runs[policy].workloads[name] for name in scenario.slos]
        sent = sum(int(one["requests"]) for one in seen)
        return 1000 * sum(int(one["late"]) for one in seen) / sent if sent else nan

    return late


def carried(policy: str, workload: str) -> Value:
    """Throughput of a workload in MB/s."""
    return lambda runs, scenario: (
        float(runs[policy].workloads[workload]["bytes"]) / scenario.case.seconds / 1e6
    )


# Requests within limits against bounds.


def requests(policy: str) -> Value:
    """Requests of workloads with a bound that keep to what they declared."""
    return lambda runs, scenario: float(
        sum(int(seen["requests"]) for seen, _ in _promised(runs, scenario, policy))
    )


def later(policy: str) -> Value:
    """Number of these requests that are later than the bound and the tail of their server."""
    return lambda runs, scenario: float(
        sum(beyond(seen, most) for seen, most in _promised(runs, scenario, policy))
    )


def used(policy: str) -> Value:
    """Largest latency over the bound and the tail; NaN without a bound."""

    def largest(runs: Runs, scenario: Scenario) -> float:
        promised = _promised(runs, scenario, policy)
        return max((float(seen["worst"]) / most for seen, most in promised), default=nan)

    return largest


def _promised(runs: Runs, scenario: Scenario, policy: str) -> list[tuple[Seen, float]]:
    """Measurements of workloads within their limits, each with its bound and its server's tail, added."""
    made = runs[policy]
    result = []
    for one in scenario.members:
        bound = scenario.bounds.get(one.name)
        if bound is not None and one.sent is None:
            result.append((made.workloads[one.name], bound + made.tails.get(one.server, 0.0)))
    return result


# Rows.


def at_least(of: Row, least: float) -> Row:
    """A row whose value on the bed should be at least a number."""
    met = None if of.ours is None else of.ours >= least - _CLOSE
    return replace(of, expected=f"at least {_text(least, of.unit)}", met=met)


def at_most(of: Row, most: float) -> Row:
    """A row whose value on the bed should be at most a number."""
    met = None if of.ours is None else of.ours <= most + _CLOSE
    return replace(of, expected=f"at most {_text(most, of.unit)}", met=met)


def _text(number: float, unit: str) -> str:
    return f"{number:,g} {unit}".strip()


def promise_rows(figure: str, outcomes: Sequence[Outcome], policy: str, words: str) -> list[Row]:
    """Rows of the SLOs, and of requests within limits.

    Args:
        figure: Name of the figure.
        outcomes: Runs, seed by seed.
        policy: Policy whose bounds the scenario has.
        words: Its name in rows.
    """
    bound = "bound and the tail"
    note = "the tail is the largest latency of single requests to the same server; the simulator has none"
    promised = row(figure, f"{words}: seeds with bounds within", "%", values(outcomes, _promises))
    late = row(
        figure,
        f"{words}: requests within limits later than their {bound}",
        "requests",
        values(outcomes, later(policy)),
        note=note,
    )
    return [
        row(figure, f"{words}: factor of the SLOs", "x", values(outcomes, _factor)),
        at_least(promised, 100),
        at_most(late, 0),
        row(figure, f"{words}: largest latency over its {bound}", "x", values(outcomes, used(policy))),
    ]


def _factor(_: Runs, scenario: Scenario) -> float:
    """Factor of the SLOs: all of a scenario have the same one."""
    return next((scenario.slos[one.name] / one.slo for one in scenario.members if one.slo), nan)


def _promises(_: Runs, scenario: Scenario) -> float:
    return 100.0 * scenario.promised


def condition_rows(figure: str, outcomes: Sequence[Outcome], words: str = "") -> list[Row]:
    """Rows of the machine during runs: the tail, the lateness of clients, the use of processors and disks."""
    return [
        row(figure, f"{words}largest latency of single requests", "ms", of_bed(outcomes, _tail)),
        row(figure, f"{words}lateness of clients at 99.9 %, the latest", "ms", of_bed(outcomes, _lateness)),
        row(figure, f"{words}processors in use, the busiest run", "%", of_bed(outcomes, _busy)),
        row(
            figure,
            f"{words}bytes that disks read, over those of requests, the most",
            "x",
            of_bed(outcomes, _read),
        ),
    ]


def _tail(runs: Runs, _: Scenario) -> float:
    return 1000 * max((tail for one in runs.values() for tail in one.tails.values()), default=nan)


def _lateness(runs: Runs, _: Scenario) -> float:
    return 1000 * max((one.late_s for one in runs.values() if one.late_s is not None), default=nan)


def _busy(runs: Runs, _: Scenario) -> float:
    return max((rows.busy(one.busy) for one in runs.values()), default=nan)


def _read(runs: Runs, _: Scenario) -> float:
    return max((one.read for one in runs.values() if one.read is not None), default=nan)
