"""Fields of the service's answers about promises in force. The reference of the HTTP interface explains them.

Ids and times are texts, and None stands for unknown values.
"""

from typing import Any, Literal, NotRequired, TypedDict


class WorkloadCounters(TypedDict):
    """Counters of a workload at an enforcer since it began, or sums of all enforcers."""

    bytes: int
    requests: int
    over_limit: int
    late: int


class EnforcementPlace(TypedDict):
    """Enforcement of a promise at a place.

    `state` is `applied`, `drifted`, `refused`, `pending`, `expired` or `absent`.
    """

    kind: str
    host: str
    stage: str
    state: str
    enforcer: str | None
    version: int | None
    detail: str | None


class BurnRate(TypedDict):
    """Share of late requests in a window, relative to the share that the percentile of the SLO permits."""

    window_s: float
    rate: float | None


class Enforcement(TypedDict):
    """Enforcement of a promise that holds, and what its requests experience.

    `state` is `decided`, `partial`, `enforced`, `seen` or `unenforced`.
    """

    state: str
    places: list[EnforcementPlace]
    total: WorkloadCounters
    counted_since: str | None
    seen_by: str | None
    burn: list[BurnRate]
    alerts: list[str]


class Workload(TypedDict):
    """A workload with a granted SLO, or an earlier one."""

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
    version: int
    enforcement: Enforcement | None
    decision: str
    time: str
    released: str | None


class Workloads(TypedDict):
    """A page of workloads, with the version of the promises of all workloads."""

    items: list[Workload]
    next: str | None
    set: str
    version: int


class TraceSource(TypedDict):
    """Trace that curves and models were computed from."""

    sha256: str
    requests: NotRequired[int | None]
    seconds: NotRequired[float | None]


CopyPlan = TypedDict(
    "CopyPlan",
    {
        "from": str,
        "to": str,
        "bytes": str,
        "rate_bps": int | None,
        "seconds": float | None,
        "guaranteed": bool,
        "workloads": list[dict[str, Any]],
    },
)
"""Copy of a volume to another server, planned as workloads of its own."""


class Redecision(TypedDict):
    """Last decision about a workload whose requests have changed.

    `outcome` is `keeps`, `limits`, `priority`, `moved`, `move` or `nowhere`.
    """

    outcome: str
    reason: str | None
    trace: TraceSource | None
    server: str | None
    volume: str | None
    bound_s: float | None
    copy: CopyPlan | None


class EnforcedWorkload(TypedDict):
    """A workload at an enforcer. `state` is `applied`, `refused` or `drifted`."""

    workload: str
    state: str
    detail: str | None
    counters: WorkloadCounters


class Enforcer(TypedDict):
    """A program that applies the promises of a host. `state` is `live` or `expired`."""

    enforcer: str
    kind: str
    host: str
    device: str | None
    addresses: list[str]
    state: str
    since: str
    heard: str | None
    lease_s: float
    set: str
    version: int | None
    current: int
    workloads: list[EnforcedWorkload]


class AcknowledgedEnforcer(Enforcer):
    """An enforcer after its acknowledgement, with the workloads that it need not apply any more."""

    unknown: list[str]


class NetPromise(TypedDict):
    """Packets of a workload that leave a host."""

    workload: str
    stage: str
    peer: str
    peer_addresses: list[str]
    priority: int
    limits: list[dict[str, float]]


class NfsPromise(TypedDict):
    """Requests of a workload to a volume of a host."""

    workload: str
    client: str
    client_addresses: list[str]
    priority: int
    limits: list[dict[str, float]]
    slo: dict[str, float]
    over: NotRequired[Literal["held", "demoted"]]
    outstanding: NotRequired[int]


class EnforcerPromises(TypedDict):
    """Promises that an enforcer applies."""

    enforcer: str
    kind: str
    host: str
    set: str
    version: int
    lease_s: float
    net: list[NetPromise]
    nfs: list[NfsPromise]


class SeenLatency(TypedDict):
    """A percentile of the latencies that an enforcer has seen recently, in percent and seconds."""

    percentile: float
    seconds: float


class WorkloadReport(TypedDict):
    """A workload as an enforcer acknowledges it.

    `state` is `applied`, `refused` or `drifted`; the last two need a `detail`. Counters only grow while the
    enforcer runs.
    """

    workload: str
    state: str
    detail: NotRequired[str]
    counters: NotRequired[dict[str, int]]
    latencies: NotRequired[list[SeenLatency]]
