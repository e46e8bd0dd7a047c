"""A lab for figure 10: ten hosts between real kernels, with the rates of EC2 in figure 2 at a tenth.

Every host sends at a rate of its own, which its paths share (a hose, section 4.3). A fifth of the paths are
slower than their source (section 2.2). Some pairs of hosts share a machine, and reach each other at four
times the usual rate (section 4.2). The hosts are namespaces; the helpers of `leeward tenant` send real TCP.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy

from leeward import tenant
from leeward.lab import up
from leeward_reproduce.choreo.namespaces import UnableError
from leeward_reproduce.choreo.workload import CORES, MACHINES

SCALE = 0.1
"""Rates of the lab as a share of EC2's: one machine carries ten hosts of about 100 Mbit/s."""
TCP_SHARE = 0.956
"""Payload of TCP as a share of the rate that `tc` limits."""
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


@dataclass(frozen=True)
class Lab:
    """A running lab."""

    fleet: tenant.Fleet
    measured: dict[str, Any]
    """The network as its hosts measured it, in the fields of a cluster file."""
    true: dict[str, Any]
    """The network as TCP sees the limits of `tc`, with the same links."""
    survey_s: float
    survey_bytes: int
    errors: list[float]
    """Deviation of the measured rate of each path from the true one, as a share."""


@contextmanager
def lab(topology: Topology) -> Iterator[Lab]:
    """Builds the network of a topology, starts the helpers, and measures it.

    Raises:
        UnableError: Namespaces are unavailable, or a host failed.
    """
    try:
        with up(network_of(topology)) as network:
            hosts = tenant.lab_hosts(network.name, cpus=str(CORES))
            with tenant.Fleet(hosts) as fleet:
                survey = tenant.measure(fleet, tenant.start_listeners(fleet), hops=True, shape="hose")
                true = true_network(survey.cluster, topology)
                errors = [
                    _bps(found["rate"]) / (1e6 * SCALE * topology.path(*_ends(found))) - 1
                    for found in survey.cluster["pairs"]
                ]
                yield Lab(fleet, survey.cluster, true, survey.seconds, survey.sent_bytes, errors)
    except OSError as error:
        raise UnableError(str(error)) from None


def network_of(topology: Topology) -> dict[str, Any]:
    """The network of a lab with the rates of a topology, in the fields of a cluster file."""

    def literal(rate: float) -> str:
        return f"{round(1e6 * SCALE * rate)}bps"

    # No machine carries what may arrive.
    hosts = [
        {"name": f"h{at}", "nic": {"up": literal(rate), "down": "1Tbps"}}
        for at, rate in enumerate(topology.sources)
    ]
    pairs: list[dict[str, Any]] = [
        {"from": f"h{source}", "to": f"h{target}", "rate": literal(rate)}
        for (source, target), rate in topology.slow.items()
        if rate < topology.sources[source]
    ]
    if topology.joined:
        one, other = (f"h{at}" for at in topology.joined)
        pairs += [
            {"from": source, "to": target, "rate": literal(SAME_MACHINE), "same_machine": True}
            for source, target in ((one, other), (other, one))
        ]
    return {"shape": "hose", "racks": [{"hosts": hosts}], "pairs": pairs}


def true_network(measured: Mapping[str, Any], topology: Topology) -> dict[str, Any]:
    """A measured network with the rates that TCP gets behind the limits instead of the measured ones."""

    def literal(rate: float) -> str:
        return f"{round(1e6 * SCALE * TCP_SHARE * rate)}bps"

    pairs = [{**pair, "rate": literal(topology.path(*_ends(pair)))} for pair in measured["pairs"]]
    racks = [
        {
            **rack,
            "hosts": [
                {**host, "nic": {"up": literal(topology.sources[_number(host["name"])]), "down": "100Gbps"}}
                for host in rack["hosts"]
            ],
        }
        for rack in measured["racks"]
    ]
    return {**measured, "racks": racks, "pairs": pairs}


def _ends(pair: Mapping[str, Any]) -> tuple[int, int]:
    return _number(pair["from"]), _number(pair["to"])


def _number(name: str) -> int:
    """Number of a host that is called `h3`."""
    return int(name.removeprefix("h"))


def _bps(literal: str) -> float:
    return float(literal.removesuffix("bps"))
