"""A recording: nodes, pods, and traffic of a time, with all that a trial needs.

Times are in milliseconds since 1970, rates in bits per second. Traffic is the mean of each interval; an
unknown mean is NaN. Processors count in thousandths, memory and storage in bytes.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

Rates = NDArray[numpy.float64]

REASONS = {
    "bound_to_node": "a DaemonSet's pod or a static pod runs on one node",
    "host_network": "the pod shares the network of its node, so its traffic is unknown",
    "owner_gone": "neither the pod nor its owner exists, so its constraints are unknown",
    "pod_affinity": "the trial does not know required affinity between pods",
    "topology_spread": "the trial does not know spread constraints with DoNotSchedule",
    "volumes": "the trial does not know the nodes of persistent volumes",
    "host_ports": "the trial does not know ports of nodes",
    "resource_claims": "the trial does not know devices of resource claims",
    "invalid_spec": "a request, a selector or a toleration has a form that the trial does not know",
    "node_unknown": "the node of the pod is gone, or has no rack",
    "filters_changed": "the node of the pod has other labels or taints now, which exclude the pod",
    "no_demand": "nothing says the peak rate of the pod: no annotation, no measured peak, no limit",
    "no_traffic": "the traffic of the pod was not recorded",
    "no_telemetry": "the load of the pod's rack, or of all others, was unknown when the pod came",
    "no_room": "no node had room for the pod",
}
"""Reasons for which a pod stays without a judgment, and their meanings."""


@dataclass(frozen=True)
class Taint:
    """A taint of a node, or the part of a toleration that it is compared with."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class Toleration:
    """A toleration of a pod; an empty key or effect tolerates all."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True)
class Expression:
    """A condition on a label; the label `metadata.name` of a field is the name of the node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    of_field: bool = False


@dataclass(frozen=True)
class Node:
    """A node as it is at the end of the recording.

    Attributes:
        name: Name.
        rack: Rack that its labels name; None without a label.
        created_ms: Creation of the node.
        cordoned: True if it takes no new pods.
        labels: Labels.
        taints: Taints with the effects NoSchedule and NoExecute, without those of the node's lifecycle.
        room: Allocatable amount of each resource, `pods` among them.
    """

    name: str
    rack: str | None
    created_ms: int
    cordoned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    room: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Template:
    """Requirements of a pod, from its own object or from its owner's template.

    Attributes:
        requests: Requested amount of each resource, without `pods`.
        terms: Terms of which a node must match one, each a list of conditions that must all hold.
        tolerations: Tolerations.
        peak_bps: Annotated peak rate out of the pod and into it.
        limit_bps: Rate to which Kubernetes shapes its traffic, out of the pod and into it.
        unfit: Reason in `REASONS` for which the trial cannot judge the pod.
    """

    requests: Mapping[str, int] = field(default_factory=dict)
    terms: tuple[tuple[Expression, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    peak_bps: tuple[int | None, int | None] = (None, None)
    limit_bps: tuple[int | None, int | None] = (None, None)
    unfit: str | None = None


@dataclass(frozen=True)
class Pod:
    """A pod that ran on a node during the recording.

    Attributes:
        namespace: Namespace.
        name: Name.
        uid: Identity.
        workload: Kind and name of the owner, such as `Deployment/web`.
        node: Node where it ran.
        created_ms: Creation.
        ended_ms: End; None if it still ran when the recording ended.
        template: Position of its template among those of the recording.
    """

    namespace: str
    name: str
    uid: str
    workload: str
    node: str
    created_ms: int
    ended_ms: int | None
    template: int


@dataclass(frozen=True)
class Traffic:
    """Traffic of a pod, from its first known interval on.

    Attributes:
        first: Number of the interval of the first rate.
        out: Rate out of the pod in each interval.
        into: Rate into the pod in each interval.
    """

    first: int
    out: Rates
    into: Rates


@dataclass(frozen=True)
class Recording:
    """Nodes, pods and traffic of a time.

    Attributes:
        begin_ms: Beginning.
        interval_ms: Length of an interval.
        intervals: Number of intervals.
        rack_bps: Rate of the link of each rack, in each direction.
        nodes: Nodes.
        templates: Templates of pods.
        pods: Pods, by creation.
        out: For each rack, the rate out of it in each interval.
        into: For each rack, the rate into it in each interval.
        traffic: Traffic of pods, by position.
        notes: Sentences about parts that are missing or estimated.
    """

    begin_ms: int
    interval_ms: int
    intervals: int
    rack_bps: Mapping[str, int]
    nodes: tuple[Node, ...]
    templates: tuple[Template, ...]
    pods: tuple[Pod, ...]
    out: Mapping[str, Rates]
    into: Mapping[str, Rates]
    traffic: Mapping[int, Traffic]
    notes: tuple[str, ...] = ()

    @property
    def end_ms(self) -> int:
        """End of the last interval."""
        return self.begin_ms + self.intervals * self.interval_ms

    def interval_of(self, time_ms: int) -> int:
        """Number of the interval that holds a time; negative before the first one."""
        return (time_ms - self.begin_ms) // self.interval_ms


def as_json(value: Any) -> Any:
    """A node, template or pod as JSON; default values are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        content = {}
        for one in fields(value):
            item = getattr(value, one.name)
            default = one.default_factory() if one.default_factory is not MISSING else one.default
            if default is MISSING or item != default:
                content[one.name] = as_json(item)
        return content
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
