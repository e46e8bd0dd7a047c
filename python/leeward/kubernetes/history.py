"""Pods of a time by kube-state-metrics, also those that have ended and that the API server has forgotten."""

from dataclasses import dataclass, field

from leeward.kubernetes.quantities import CPU, MOST
from leeward.kubernetes.series import COMPLETED, CREATED, POD_INFO, REQUESTS, Labels, Period, Queries

ID = "namespace,pod,uid"
STEPS = 4
"""Number of queries for each day."""


@dataclass
class PastPod:
    """A pod as Prometheus knows it. Times are in milliseconds since 1970.

    Attributes:
        namespace: Namespace.
        name: Name.
        uid: Identity.
        node: Node where it ran.
        kind: Kind of its controller; empty without one.
        owner: Name of its controller.
        host_network: True if it shares the network of its node.
        seen_ms: Last time at which it existed.
        created_ms: Creation; None if it is unknown.
        completed_ms: Time at which it completed; None if it did not, or if it is unknown.
        requests: Requested thousandths of processors and bytes of memory.
    """

    namespace: str
    name: str
    uid: str
    node: str
    kind: str
    owner: str
    host_network: bool
    seen_ms: int
    created_ms: int | None = None
    completed_ms: int | None = None
    requests: dict[str, int] = field(default_factory=dict)

    def ended_ms(self, period: Period) -> int | None:
        """End of the pod; None if it still existed at the end of the period.

        A pod without a known end ended after the interval in which it was last seen.
        """
        if self.completed_ms is not None:
            return self.completed_ms
        after = self.seen_ms + period.interval_ms
        return after if after < period.end_ms - period.interval_ms else None


def past_pods(queries: Queries) -> dict[str, PastPod]:
    """Pods that ran on a node in a period, by identity.

    Raises:
        InputError: The server does not answer.
    """
    pods: dict[str, PastPod] = {}
    by = f"{ID},node,created_by_kind,created_by_name,host_network"
    step = f"{queries.period.interval_ms}ms"
    for labels, value in queries.largest(
        by, lambda length: f"max_over_time(timestamp({POD_INFO})[{length}:{step}])"
    ):
        uid, seen_ms = labels.get("uid", ""), round(value * 1000)
        if uid not in pods or seen_ms > pods[uid].seen_ms:
            pods[uid] = _pod(labels, seen_ms)
    for labels, value in queries.largest(ID, lambda length: f"max_over_time({CREATED}[{length}])"):
        if pod := pods.get(labels.get("uid", "")):
            pod.created_ms = round(value * 1000)
    for labels, value in queries.largest(ID, lambda length: f"max_over_time({COMPLETED}[{length}])"):
        if pod := pods.get(labels.get("uid", "")):
            pod.completed_ms = round(value * 1000)
    # Several instances of kube-state-metrics have the same series.
    for labels, value in queries.largest(
        f"{ID},resource",
        lambda length: f"sum by ({ID},resource,instance) (max_over_time({REQUESTS}[{length}]))",
    ):
        if pod := pods.get(labels.get("uid", "")):
            resource = labels.get("resource", "")
            pod.requests[resource] = min(round(value * (1000 if resource == CPU else 1)), MOST)
    return pods


def _pod(labels: Labels, seen_ms: int) -> PastPod:
    def text(name: str) -> str:
        value = labels.get(name, "")
        # kube-state-metrics 1 writes `<none>`.
        return "" if value == "<none>" else value

    return PastPod(
        text("namespace"),
        text("pod"),
        text("uid"),
        text("node"),
        text("created_by_kind"),
        text("created_by_name"),
        text("host_network") == "true",
        seen_ms,
    )
