"""Networks of EC2's kind, whose paths differ: rates of ten hosts and of the paths between them.

Every host sends at a rate of its own, which its paths share (a hose, section 4.3). A fifth of the paths are
slower than their source (section 2.2). Some pairs of hosts share a machine, and reach each other at four
times the usual rate (section 4.2).
"""

from dataclasses import dataclass
from typing import Any

import numpy

from leeward import Cluster
from leeward_reproduce.choreo.workload import CORES, MACHINES

SLOW_SHARE = 0.2
"""Share of paths below the rate of their source (section 2.2)."""
MACHINE_PAIRS = 0.5
"""Pairs of hosts on one machine per topology: 18 of 1,710 paths (section 2.2)."""
SAME_MACHINE = 4000.0
"""Rate between hosts on one machine, in Mb/s."""


@dataclass(frozen=True)
class Topology:
    """Rates of EC2's kind, in Mb/s."""

    sources: list[float]
    slow: dict[tuple[int, int], float]
    """Paths slower than their source."""
    joined: tuple[int, int] | None
    """Two hosts on one machine."""

    def path(self, source: int, target: int) -> float:
        """Rate of a path that carries nothing else."""
        if self.joined and {source, target} == set(self.joined):
            return SAME_MACHINE
        return min(self.sources[source], self.slow.get((source, target), numpy.inf))

    def fields(self, scale: float = 1.0) -> dict[str, Any]:
        """The network in the fields of a cluster file, with its rates multiplied by a factor."""

        def literal(rate: float) -> str:
            return f"{round(1e6 * scale * rate)}bps"

        # No machine limits what arrives.
        hosts = [
            {"name": f"h{at}", "nic": {"up": literal(rate), "down": "1Tbps"}}
            for at, rate in enumerate(self.sources)
        ]
        pairs: list[dict[str, Any]] = [
            {"from": f"h{source}", "to": f"h{target}", "rate": literal(rate)}
            for (source, target), rate in self.slow.items()
            if rate < self.sources[source]
        ]
        if self.joined:
            one, other = (f"h{at}" for at in self.joined)
            pairs += [
                {"from": source, "to": target, "rate": literal(SAME_MACHINE), "same_machine": True}
                for source, target in ((one, other), (other, one))
            ]
        return {"shape": "hose", "racks": [{"hosts": hosts}], "pairs": pairs}

    def cluster(self) -> Cluster:
        """The network with the processors of the experiments."""
        return Cluster(self.fields() | {"cpus": CORES})


def draw(random: numpy.random.Generator) -> Topology:
    """Draws the rates of ten hosts and their paths."""
    sources = [float(rate) for rate in random.normal(1000, 50, MACHINES).clip(900, 1100)]
    is_slow = random.random((MACHINES, MACHINES)) < SLOW_SHARE
    rates = random.uniform(296, 900, (MACHINES, MACHINES))
    pairs = [(int(a), int(b)) for a, b in numpy.argwhere(is_slow) if a != b]
    one, other = (int(host) for host in random.choice(MACHINES, 2, replace=False))
    joined = (one, other) if random.random() < MACHINE_PAIRS else None
    slow = {pair: float(rates[pair]) for pair in pairs if joined is None or set(pair) != set(joined)}
    return Topology(sources, slow, joined)
