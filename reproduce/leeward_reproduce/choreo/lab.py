"""A lab for figure 10: ten hosts between real kernels, with the rates of EC2 in figure 2 at a tenth.

The network is that of `topology`. The hosts are namespaces; the helpers of `leeward tenant` send real TCP.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from leeward import tenant
from leeward.lab import up
from leeward_reproduce.choreo.namespaces import UnableError
from leeward_reproduce.choreo.topology import Topology
from leeward_reproduce.choreo.workload import CORES

SCALE = 0.1
"""Rates of the lab as a share of EC2's: one machine carries ten hosts of about 100 Mbit/s."""
TCP_SHARE = 0.956
"""Payload of TCP as a share of the rate that `tc` limits."""


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
        with up(topology.fields(SCALE)) as network:
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
