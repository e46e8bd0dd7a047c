"""The case of figure 4.10: workloads on a network that stochastic bounds admit, with traces as of caches.

The first half of each trace decides, and the second half is replayed. The link out of one server is the
bottleneck; its disk is fast, so requests have bounds on the network alone. SLOs are five times the thesis',
because links have a fifth of the rate.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from leeward.slo import load
from leeward_reproduce.slo.real import scenario
from leeward_reproduce.slo.real.cases import NETWORK, Case, Decision, Member, Policy
from leeward_reproduce.slo.real.layout import Shape
from leeward_reproduce.slo.real.traffic import cache, halves

WORKLOADS = 16
"""Workloads that arrive. They request about one and a half times the rate of the link."""
SECONDS = 360.0
"""Length of a half of a trace: two windows."""
RATES, HEIGHTS = (30.0, 130.0), (2.0, 7.0)
"""Ranges of the mean lookups a second, and of the largest rate of bursts over the calm one."""
SLOS = (0.05, 0.1, 0.25, 0.5)
"""SLOs in seconds: those of section 4.4.1 times five."""
NETWORKED = Shape(clients=WORKLOADS, servers=1, disk="400MB/s", disk_size="256MiB")
SNC = Policy("snc", storage=False, limits=False, priorities="slo")


def _arriving(random: numpy.random.Generator) -> Sequence[Member]:
    """Workloads in the order of their arrivals, each on a client of its own."""
    members = []
    for at in range(WORKLOADS):
        rate, height = random.uniform(*RATES), random.uniform(*HEIGHTS)
        first, second = halves(cache(random, rate, height, 2 * SECONDS), 2 * SECONDS)
        members.append(Member(f"w{at}", f"c{at}", "s0", float(random.choice(SLOS)), first, second))
    return members


def _admit(folder: Path, case: Case, arriving: Sequence[Member]) -> Decision:
    """Admits workloads one after another as `leeward slo admit` does, in the order of SLOs."""
    slos = {one.name: one.slo for one in arriving if one.slo is not None}
    content = scenario.content(case, arriving, case.policies[0], slos, {}, {}, is_declared=True)
    first, *rest = [_undecided(one) for one in content["workloads"]]
    files = {name: folder / f"arriving-{name}.yaml" for name in ("first", "rest")}
    scenario.dump(files["first"], content | {"workloads": [first]})
    # Present workloads decide these fields.
    own = {name: value for name, value in content.items() if name not in ("congestion", "latency", "bounds")}
    scenario.dump(files["rest"], own | {"workloads": rest})
    present = load(files["first"], folder / scenario.CLUSTER)
    names = {one["workload"] for one in present.bound(case.method)["workloads"] if one["met"]}
    record = present.admit(files["rest"], case.method)
    names |= {one["workload"] for one in record["arrivals"] if one["admitted"]}
    return Decision([one for one in arriving if one.name in names])


def _undecided(workload: Mapping[str, Any]) -> dict[str, Any]:
    """A workload without priority and limits, which admission decides."""
    return {name: value for name, value in workload.items() if name not in ("priority", "limits")}


ADMITTED = Case(
    "4.10",
    NETWORKED,
    SECONDS,
    (SNC,),
    _arriving,
    most_seeds=1,
    stages=NETWORK,
    method="snc",
    decide=_admit,
)
