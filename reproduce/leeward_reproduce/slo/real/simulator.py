"""Scenarios in the request simulator: the same traces, limits, priorities and caps as on a bed."""

from collections.abc import Mapping

import numpy
from pyarrow import compute

from leeward.slo import check
from leeward_reproduce.slo.real.cases import Policy
from leeward_reproduce.slo.real.measures import Measures, seen
from leeward_reproduce.slo.real.scenario import Scenario


def simulate(scenario: Scenario, policy: Policy) -> Measures:
    """Replays a scenario under a policy. The simulated disk gives its rate out evenly, without slices."""
    closed = {one.name: one.open for one in scenario.members if one.open}
    _, rows = check(
        scenario.file(policy),
        scenario.cluster,
        method=scenario.case.method,
        order=policy.order,
        closed=closed or None,
        rows=True,
    )
    assert rows is not None
    workloads = {}
    for member in scenario.members:
        mine = rows.filter(compute.equal(rows["workload"], member.name))
        at_s, latencies = (mine[name].to_numpy(zero_copy_only=False) for name in ("arrival_s", "latency_s"))
        # Closed loops send to the end of their trace, and a bed stops them with the others.
        during = at_s <= scenario.case.seconds
        moved = _moved(scenario, member.name, int(during.sum()))
        workloads[member.name] = seen(at_s[during], latencies[during], scenario.slos.get(member.name), moved)
    return Measures(workloads)


def simulate_all(scenario: Scenario) -> Mapping[str, Measures]:
    """Replays a scenario under all policies of its case."""
    return {policy.name: simulate(scenario, policy) for policy in scenario.case.policies}


def _moved(scenario: Scenario, name: str, count: int) -> int:
    """Bytes of the first requests of a workload."""
    member = next(one for one in scenario.members if one.name == name)
    return int(numpy.sum(member.requests.sizes[:count]))
