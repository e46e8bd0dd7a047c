"""Conditions of runs: workloads, their machines, and the policies that serve them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from leeward_reproduce.slo.real.layout import Shape
from leeward_reproduce.slo.real.traffic import Requests

PERCENTILE = 99.9
"""Percentile of SLOs."""
STAGES = ("network-in", "storage", "network-out")
NETWORK = ("network-in", "network-out")
"""Stages of requests: all of them, or those of requests whose server answers from memory."""


@dataclass(frozen=True)
class Member:
    """A workload of a case.

    Attributes:
        name: Name.
        client: Host that sends its requests, which no other workload at the same server has.
        server: Host of its volume.
        slo: SLO in seconds, which the factor of the case multiplies; None for best effort.
        declared: Requests from which its limits and bounds follow.
        sent: Requests that it sends; by default the declared ones. Others are a workload that misbehaves.
        open: Number of requests that it keeps open, whatever their times; 0 for an open loop.
        rates: Rates of its limits at storage, in place of its whole curve.
        counts: True if the factor of SLOs has to keep its bound within its SLO.
    """

    name: str
    client: str
    server: str
    slo: float | None
    declared: Requests
    sent: Requests | None = None
    open: int = 0
    rates: tuple[float, ...] = ()
    counts: bool = True

    @property
    def requests(self) -> Requests:
        """Requests that it sends."""
        return self.declared if self.sent is None else self.sent


@dataclass(frozen=True)
class Policy:
    """How a case is served.

    Attributes:
        name: Name of the policy and of its files.
        order: Order of requests at disks, as `leeward enforce nfs --order` has it.
        network: True if priorities and limits are enforced on the network.
        storage: True if requests go through the storage enforcer.
        limits: True if workloads have limits.
        unlimited: Stages without limits although others have some.
        priorities: `search` (PriorityMeister's), `slo` (the tightest first), `equal`, or `decided` (by the
            case).
        rates: Rates of limits at storage of the member that has `rates`, in place of all of them.
        over: Treatment of requests over a limit at storage: `demoted`, as in the thesis, or `held`.
    """

    name: str
    order: str = "priority"
    network: bool = True
    storage: bool = True
    limits: bool = True
    unlimited: tuple[str, ...] = ()
    priorities: str = "search"
    rates: tuple[float, ...] = ()
    over: str = "demoted"


PM = Policy("pm")
BY_SLO = Policy("by-slo", limits=False, priorities="slo")
PS = Policy("ps", order="shares", network=False, limits=False, priorities="equal")
FIFO = Policy("fifo", order="fifo", network=False, limits=False, priorities="equal")
NAMES = {"pm": "PM", "by-slo": "bySLO", "ps": "ps", "fifo": "FIFO"}
"""Names of policies in rows; the thesis has all but the last."""


Buckets = Mapping[str, Sequence[Mapping[str, str]]]
"""Token buckets by stage, as SLO files have them."""
Priorities = Mapping[str, Mapping[str, int] | int]
"""Priorities of workloads, for each stage or one for all."""


@dataclass(frozen=True)
class Decision:
    """A decision on the workloads of a case.

    Attributes:
        members: Workloads that are admitted, with their servers.
        limits: Their limits by name; None for those of their curves.
        priorities: Their priorities by name; None for those of the policies.
    """

    members: Sequence[Member]
    limits: Mapping[str, Buckets] | None = None
    priorities: Priorities | None = None


@dataclass(frozen=True)
class Case:
    """Conditions of a run under each of some policies.

    Attributes:
        name: Name of its folder.
        shape: Machines.
        seconds: Time for which requests are sent.
        policies: Policies, in the order in which they run under seed 1.
        members: Draws the workloads.
        factors: Factors of SLOs, of which the least one counts for which the bounds of the first policy are
            within the SLOs. A single one always counts.
        margin: Share added to the work of requests in limits and bounds.
        priority_switch: True if the switch has priorities by DSCP.
        most_seeds: Largest number of seeds.
        stages: Stages of requests that have bounds.
        method: Method of bounds.
        decide: Decides on the workloads, with the folder for files; by default all are admitted.
    """

    name: str
    shape: Shape
    seconds: float
    policies: tuple[Policy, ...]
    members: Callable[[numpy.random.Generator], Sequence[Member]]
    factors: tuple[float, ...] = (1.0,)
    margin: float = 0.0
    priority_switch: bool = False
    most_seeds: int | None = None
    stages: tuple[str, ...] = STAGES
    method: str = "priority-meister"
    decide: "Callable[[Path, Case, Sequence[Member]], Decision] | None" = None

    def seeds(self, count: int) -> range:
        """Seeds from 1 to `count`, or to `most_seeds` if that is less."""
        return range(1, 1 + min(count, self.most_seeds or count))

    def order(self, seed: int) -> Sequence[Policy]:
        """Policies in the order of their runs. It alternates, so that slow changes cancel out."""
        return self.policies[::-1] if seed % 2 == 0 else self.policies
