"""Fields of decisions: one shape for functions, for a `Session` and for `-o json` of the command line.

All decisions name their `policy`, and have the candidates in `why`. A decision without a placement says the
reason in `refused`.

A decision of a `Client` has the fields of `DecisionFields` too, and those of the service's record. Its
`hosts` are never None, because a refusal is a `RefusedError`.

>>> import leeward
>>> cluster = {"racks": 4, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 2}
>>> decision = leeward.place_replicas(cluster, "64MiB", policy="uniform", replicas=2, writer="r1h0")
>>> decision["hosts"][0], decision["refused"]
('r1h0', None)
"""

from typing import NotRequired, TypedDict

__all__ = [
    "BlockDecision",
    "DecisionFields",
    "HotRackLink",
    "KeptTask",
    "MoveDecision",
    "Objectives",
    "PlannedMove",
    "RandomGain",
    "Reason",
    "ReplicaDecision",
    "RunningDecision",
    "TaskDecision",
    "TaskHost",
    "TaskReason",
    "TransferForecast",
]


class Objectives(TypedDict):
    """Objectives that ranked a host for a task, in lexicographic order."""

    task: int
    """Position of the task in its request."""
    in_rack: int
    """Number of the job's tasks in the host's rack."""
    balance: float
    """Load of the host's processors and memory, or of its rack's links, with the task; a share."""
    hosts: NotRequired[float]
    """Load of the host's processors and memory with the task, if racks and hosts are equally loaded."""
    left: int
    """Processors left on the host with the task, in thousandths."""


class Reason(TypedDict):
    """A candidate of a decision, with its outcome."""

    candidate: str
    """Name of the host, rack or pod."""
    limit: str | None
    """Limiting link or device; None for a candidate that was not examined."""
    sight: str | None
    """Source of the link's load: `counter`, `derived` (the sum of the links below it) or `unseen`."""
    value_bps: int | None
    """Rate that ranked the candidate, in bits per second."""
    verdict: str
    """`chosen`, `outranked` or `refused`."""
    because: str | None
    """Reason of a refusal, or for which a chosen host was tried first."""
    objectives: NotRequired[Objectives]
    """Only of hosts for tasks."""


class DecisionFields(TypedDict):
    """Fields of all decisions for blocks: of functions, of a `Session` and of a `Client`."""

    policy: str
    source: str | None
    """Host of an existing copy that sends the new ones."""
    note: str | None
    """Reason for which the policy left the choice to another policy."""
    why: list[Reason]
    """Candidates, the best first."""


class ReplicaDecision(DecisionFields):
    """Hosts for the copies of a block, or for the chunks of its stripe."""

    hosts: list[str] | None
    """Hosts in the order of the chain; None without a placement."""
    refused: str | None
    """Reason without a placement."""
    oldest_telemetry_s: float | None
    """End of the oldest window among the used loads, in seconds from the start of telemetry or session."""


class BlockDecision(ReplicaDecision):
    """Hosts for the copies of a block in a `Session`."""

    id: int | None
    """Number of the placement, for `Session.release`; None without a placement."""


class TaskHost(TypedDict):
    """A task and its host; None without a placement."""

    task: str
    host: str | None


class TaskReason(TypedDict):
    """A candidate for a task."""

    task: str
    reason: Reason


TransferForecast = TypedDict(
    "TransferForecast",
    {
        "from": str,
        "to": str,
        "bytes": int,
        "phase": int,
        "from_host": str,
        "to_host": str,
        "limit": str | None,
        "seconds": float | None,
    },
)
"""A transfer of an app: its tasks and their hosts, its limiting link, and its forecast end in seconds."""


class RandomGain(TypedDict):
    """Gain over random placements."""

    random_s: float
    """Median of their completion times, in seconds."""
    survey_s: float
    """Time to measure the network, in seconds."""
    measurements: str
    """`worthwhile`; or for an app that needs none, `short` or `uniform`."""


class TaskDecision(TypedDict):
    """Hosts for the tasks of an app or of a job."""

    app: str
    policy: str
    tasks: list[TaskHost]
    refused: list[str] | None
    """One reason for the app, or one for each task without a host; None if all tasks have hosts."""
    completion_s: float | None
    """Forecast end of the last transfer, in seconds; None without transfers, or if a link carries nothing."""
    time_gap: float | None
    """Share of the completion time that another placement might save; None if the policy does not know it."""
    cost_gap: float | None
    """The same of the cost."""
    proven: bool | None
    """True if both are zero."""
    cost: float | None
    """Cost of the hosts per hour; None if no host has a cost."""
    goal: str
    """Goal of the app: `time` or `cost`."""
    transfers: list[TransferForecast]
    gain: RandomGain | None
    oldest_telemetry_s: float | None
    why: list[TaskReason]


class RunningDecision(TypedDict):
    """Hosts for the tasks of an app in a `Session`."""

    id: int | None
    """Number of the placement, for `Session.release`; None without a placement."""
    app: str
    policy: str
    tasks: list[TaskHost]
    refused: list[str] | None
    oldest_telemetry_s: float | None
    why: list[TaskReason]


class HotRackLink(TypedDict):
    """A hot link, with its utilization before and after the moves."""

    link: str
    utilization: float
    after: float


PlannedMove = TypedDict("PlannedMove", {"task": str, "from": str, "to": str, "link": str})
"""A move of a task from a host to another, off a hot link."""


class KeptTask(TypedDict):
    """A task that stays on a link that stays hot."""

    task: str
    host: str
    link: str
    because: str


class MoveDecision(TypedDict):
    """Running tasks that should leave hot racks."""

    policy: str
    hot: list[HotRackLink]
    moves: list[PlannedMove]
    """Moves in the order in which to make them."""
    kept: list[KeptTask]
    refused: str | None
    """Reason without an answer."""
