"""Fields of the service's answers. The reference of the HTTP interface explains them.

Ids and times are texts, rates are in bits per second, and None stands for unknown values.
"""

from typing import Any, NotRequired, TypedDict

from leeward.client.promise_types import Redecision
from leeward.decisions import DecisionFields


class Limit(TypedDict):
    """Bottleneck of a decision."""

    at: str
    value_bps: int


class LinkLoad(TypedDict):
    """Load on the links that the traffic of a choice crosses."""

    link: str | None
    utilization: float | None
    hot: int
    unknown: int
    rate_bps: int | None


class Beside(TypedDict):
    """Choice of the policy that did not decide, and the loads on the links of both choices."""

    policy: str
    hosts: list[str]
    refused: str | None
    load: LinkLoad | None
    decided: LinkLoad | None


class Alone(TypedDict):
    """Circumstances of an outage decision: the client made it alone while the service was away.

    `snapshot_age_s` is the age of the last known state of the hosts; None if the client knows only the
    cluster.
    """

    reason: str
    outcome_unknown: bool
    snapshot_age_s: float | None


TaskMove = TypedDict("TaskMove", {"task": str, "from": str, "to": str})


class Reevaluation(TypedDict):
    """Last re-evaluation of the hosts of a running app. Times are forecasts in seconds; None if never."""

    moves: list[TaskMove]
    before_s: float | None
    after_s: float | None
    gain_s: float | None
    cost_s: float | None
    worth_it: bool
    reason: str


class Decision(DecisionFields):
    """Placement of work, with reasons. Only an outage decision has `fallback`, and its `racks` are empty."""

    id: str
    time: str
    kind: str
    request: dict[str, Any]
    ref: str | None
    hosts: list[str]
    racks: list[str]
    limit: Limit | None
    epoch: int
    oldest_telemetry: str | None
    telemetry_age_s: float | None
    reevaluation: NotRequired[Reevaluation]
    promise: NotRequired[dict[str, Any]]
    redecision: NotRequired[Redecision]
    client: str | None
    sequence: int | None
    key: str | None
    expires: str | None
    reserved_until: str | None
    released: str | None
    mode: str
    by_default: bool
    beside: Beside | None
    dry_run: NotRequired[bool]
    fallback: NotRequired[Alone]


class BatchResult(TypedDict):
    """Result of an item of a batch: a decision or a problem."""

    status: int
    decision: Decision | None
    problem: dict[str, Any] | None


class Link(TypedDict):
    """A link."""

    link: str
    capacity_bps: int
    seen: bool
    derived: bool
    measured_bps: int | None
    utilization: float | None
    until: str | None
    pending_bps: int
    reserved_bps: int
    residual_bps: int
    expected_capacity_bps: int | None
    hot_since: str | None
    full_bps: int | None
    speed_bps: int | None
    queue_bytes: int | None


class Hold(TypedDict):
    """A decision that holds a part of a resource."""

    decision: str
    kind: str
    time: str


class LinkPage(Link):
    """A link, with the decisions that hold a part of it."""

    holds: list[Hold]


class Rack(TypedDict):
    """A rack, as an item of a list."""

    rack: str
    pod: str | None
    hosts: int
    up: Link | None
    down: Link | None
    tasks: int
    replicas: int


class Device(TypedDict):
    """A device of a host."""

    device: str
    capacity: str | None
    seen: bool
    busy: float | None
    until: str | None
    reserved: float
    residual: float
    hot_since: str | None
    read_bps: float | None
    write_bps: float | None
    queue: float | None
    in_flight: int | None


class Host(TypedDict):
    """A host."""

    host: str
    rack: str
    up: bool
    draining: bool
    stored: str
    storage: str | None
    tasks: int
    replicas: int
    egress: Link | None
    ingress: Link | None
    devices: list[Device]


class Task(TypedDict):
    """A running task."""

    task: str
    decision: str
    job: str | None
    host: str
    tolerant: bool
    stays: str | None
    egress_bps: int
    ingress_bps: int


class RackPage(TypedDict):
    """A rack, with its hosts, devices and tasks."""

    rack: str
    pod: str | None
    links: list[Link]
    hosts: list[Host]
    tasks: list[Task]
    replicas: list[dict[str, Any]]
    reservations: list[dict[str, Any]]


class HeavyWork(TypedDict):
    """A task on a hot link, or a transfer of a block: then `task` and `rate_bps` are None."""

    decision: str
    job: str | None
    task: str | None
    host: str | None
    rate_bps: int | None
    stays: str | None
    size: str | None


class HotLink(TypedDict):
    """A hot link with the causes of its load."""

    link: str
    since: str
    age_s: float
    utilization: float | None
    heaviest: list[HeavyWork]
    measured_bps: int | None
    unexplained_bps: int | None
    no_move: str | None


class StandingLab(TypedDict):
    """A lab with circuits on the service's machine; the fields are those of `leeward.lab.view`."""

    name: str
    at_s: float
    dilation: int
    racks: int
    circuits: list[tuple[int, int]]
    queued_packets: list[int]
    capacity_packets: list[int]
    packet_bytes: list[int]
    circuit_bytes: list[int]
    dropped_packets: int
    lost_packets: int
    demand_bytes: list[int]
    late_p99_s: float | None


class Series(TypedDict):
    """A link over time."""

    link: str
    utilization: list[float | None]


History = TypedDict("History", {"from": str | None, "step_s": int, "series": list[Series]})
"""Links over time: start of the first step, and length of steps."""


Migration = TypedDict(
    "Migration",
    {
        "id": str,
        "time": str,
        "decision": str,
        "task": str,
        "job": str | None,
        "from": str,
        "to": str,
        "link": str,
        "state": str,
        "executor": str | None,
        "reason": str | None,
        "expires": str | None,
    },
)
"""An advised move."""


class Score(TypedDict):
    """Score of a host for a task: 0 to 100."""

    host: str
    score: int
    value_bps: int | None
    limit: str | None
    refused: str | None


class Scores(TypedDict):
    """Scores of hosts, with their basis."""

    scores: list[Score]
    policy: str
    epoch: int
    telemetry_age_s: float | None


class ChosenCopy(TypedDict):
    """A copy of a block, with the reason of its position."""

    host: str
    because: str
    left_bps: int | None
    limit: str | None
    unknown: int | None


class ChosenCopies(TypedDict):
    """Copies of a block: to try in this order, or to delete."""

    copies: list[ChosenCopy]
    epoch: int
    telemetry_age_s: float | None


class Snapshot(TypedDict):
    """The network at one time, in columns, or the difference from an earlier snapshot."""

    id: str
    since: str | None
    epoch: int
    time: str
    telemetry: str | None
    cluster_version: str
    modes: dict[str, str]
    resolution: float
    links: NotRequired[dict[str, list[Any]]]
    racks: NotRequired[dict[str, list[Any]]]
    hosts: NotRequired[dict[str, list[Any]]]
    devices: NotRequired[dict[str, list[Any]]]
    clients: list[dict[str, Any]]


class Probe(TypedDict):
    """A survey, with its result."""

    id: str
    kind: str
    hosts: list[str]
    time: str
    state: str
    done: int
    steps: int | None
    ended: str | None
    error: str | None
    cluster_version: str | None
    result: Any


class Reported(TypedDict):
    """Outcome of a report."""

    links: int
    devices: int
    skipped: dict[str, int]
    clamped: int
    clamped_names: list[str]
    unknown_devices: list[str]
    interval_s: float
    epoch: int


class ModesInForce(TypedDict):
    """Who decides requests of each kind: modes by kind, and their last change."""

    in_force: dict[str, str]
    set: dict[str, str]
    settings: dict[str, str]
    changed: str
    by: str
    reason: str | None
    off_file: str | None
    off_file_exists: bool


class Reloaded(TypedDict):
    """Outcome of a reload of settings."""

    config: str | None
    reloaded: list[str]
    changed: list[str]
    restart: list[str]


HostHistory = TypedDict(
    "HostHistory",
    {
        "from": str | None,
        "step_s": int,
        "links": list[dict[str, Any]],
        "devices": list[dict[str, Any]],
    },
)
"""A host over time: `from` is the start of the first step."""


class DeviceReport(TypedDict):
    """Load of a device; unknown values are left out."""

    device: str
    busy: float
    read_bps: NotRequired[float]
    write_bps: NotRequired[float]
    queue: NotRequired[float]
    in_flight: NotRequired[int]


class HostReport(TypedDict, total=False):
    """State of a host, as it reports it."""

    up: bool
    draining: bool
    stored: str
    storage: str


class TaskReport(TypedDict):
    """Load of a task on the links of its rack."""

    decision: str
    task: int
    egress_bps: int
    ingress_bps: int


class PodReport(TypedDict):
    """Traffic of a pod, by its UID and its host."""

    pod: str
    host: str
    egress_bps: int
    ingress_bps: int


class PodName(TypedDict):
    """Job of a pod, by its UID and its host."""

    pod: str
    host: str
    job: str


class UnnamedPod(TypedDict):
    """A pod with reported traffic and without a job."""

    pod: str
    host: str


class NamedPods(TypedDict):
    """Number of pods that got a job, and pods without one."""

    named: int
    unnamed: list[UnnamedPod]


class Peak(TypedDict):
    """Observed traffic of the tasks of a job, each by itself."""

    job: str
    egress_mean_bps: int
    egress_peak_bps: int
    ingress_mean_bps: int
    ingress_peak_bps: int
    observations: int
