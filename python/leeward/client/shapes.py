"""What the service answers, by fields. The reference of the HTTP interface says what they mean.

Ids and times are texts, rates are in bits per second, and None is what is not known.
"""

from typing import Any, NotRequired, TypedDict


class Limit(TypedDict):
    """Where a decision is narrowest."""

    at: str
    value_bps: int


class Reason(TypedDict):
    """A candidate of a decision, and what came of it."""

    candidate: str
    limit: str | None
    sight: str | None
    value_bps: int | None
    verdict: str
    because: str | None
    objectives: NotRequired[dict[str, Any]]


class Decision(TypedDict):
    """Where work goes, and why."""

    id: str
    time: str
    kind: str
    request: dict[str, Any]
    policy: str
    hosts: list[str]
    limit: Limit | None
    epoch: int
    oldest_telemetry: str | None
    telemetry_age_s: float | None
    note: str | None
    why: list[Reason]
    promise: NotRequired[dict[str, Any]]
    client: str | None
    sequence: int | None
    key: str | None
    expires: str | None
    released: str | None


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
    """A decision that holds something."""

    decision: str
    kind: str
    time: str


class LinkPage(Link):
    """A link, with who holds something of it."""

    holds: list[Hold]


class Rack(TypedDict):
    """A rack, as one of many."""

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
    """A task that runs."""

    task: str
    decision: str
    job: str | None
    host: str
    tolerant: bool
    egress_bps: int
    ingress_bps: int


class RackPage(TypedDict):
    """A rack, with what is in it."""

    rack: str
    pod: str | None
    links: list[Link]
    hosts: list[Host]
    tasks: list[Task]
    replicas: list[dict[str, Any]]
    reservations: list[dict[str, Any]]


class Hotspot(TypedDict):
    """A link that is hot."""

    link: str
    since: str
    age_s: float
    utilization: float | None


class Series(TypedDict):
    """A link over time."""

    link: str
    utilization: list[float | None]


History = TypedDict("History", {"from": str | None, "step_s": int, "series": list[Series]})
"""Links over time: where the first step begins, and how long steps are."""


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
        "reason": str | None,
    },
)
"""A move that was advised."""


class Workload(TypedDict):
    """A workload that is promised its SLO, or was."""

    name: str
    priority: int
    slo: dict[str, float]
    bound_s: float | None
    by: str | None
    seen_s: float | None
    client: str
    volume: str
    path: list[str]
    stages: list[dict[str, Any]]
    decision: str
    time: str
    released: str | None


class Score(TypedDict):
    """How good a host is for a task: 0 to 100."""

    host: str
    score: int
    value_bps: int | None
    limit: str | None
    refused: str | None


class Scores(TypedDict):
    """How good hosts are, and what that rests on."""

    scores: list[Score]
    policy: str
    epoch: int
    telemetry_age_s: float | None


class Snapshot(TypedDict):
    """Every link at a moment, small."""

    epoch: int
    time: str
    columns: list[str]
    rows: list[list[Any]]
    clients: list[dict[str, Any]]


class Probe(TypedDict):
    """A survey, and what it came to."""

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
    """What became of a report."""

    links: int
    devices: int
    skipped: dict[str, int]
    unknown_devices: list[str]
    epoch: int


class Status(TypedDict):
    """What the service is, and how much it has."""

    version: str
    cluster: str
    cluster_version: str
    policies: dict[str, str | None]
    since: str
    time: str
    clock_behind_s: float
    interval_s: float
    hot_above: float
    epoch: int
    decisions: int
    decided: int
    samples: int
    slow_links: int
    waiting: int
    released_early: int
    store: str
    durability: str | None
    role: str
    leader: str | None
    stalled: str | None
    telemetry: dict[str, Any] | None
    demo: dict[str, Any] | None


class Reloaded(TypedDict):
    """Settings that were read again."""

    config: str | None
    reloaded: list[str]
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
"""A host over time: `from`, where the first step begins."""


class DeviceReport(TypedDict):
    """What a device did; what is not known is left out."""

    device: str
    busy: float
    read_bps: NotRequired[float]
    write_bps: NotRequired[float]
    queue: NotRequired[float]
    in_flight: NotRequired[int]


class HostReport(TypedDict, total=False):
    """What a host says of itself."""

    up: bool
    draining: bool
    stored: str


class TaskReport(TypedDict):
    """What a task carries across the links of its rack."""

    decision: str
    task: int
    egress_bps: int
    ingress_bps: int
