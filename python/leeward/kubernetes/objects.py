"""Objects of the API server as records: nodes, and templates of pods with the constraints that a trial knows.

The constraints are those of kube-scheduler's filters: requests of resources, node selectors, required node
affinity, taints. A pod with any other constraint is `unfit`: its reason says which.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leeward.errors import InputError
from leeward.kubernetes.quantities import amount, rate, time_ms
from leeward.kubernetes.recording import Expression, Node, Taint, Template, Toleration

RACK_LABELS = ("leeward.dev/rack", "fabric.topograph.run/tier-0", "topology.kubernetes.io/rack")
"""Labels of nodes that name a rack; the first that a node has counts, as in the sync of nodes."""
RACK_LINK = "leeward.dev/rack-link"
"""Annotation of nodes: rate of the links of the node's rack. The largest of a rack's nodes counts."""
LIFECYCLE = ("node.kubernetes.io/", "node.cloudprovider.")
"""Beginnings of taints that come and go with the state of a node."""
PEAKS = ("leeward.dev/peak-egress", "leeward.dev/peak-ingress")
LIMITS = ("kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth")
LIMIT_BOUNDS = (10**3, 10**15)
"""Bounds of shaping limits in bits per second, by the bandwidth plugin of the CNI."""
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


def node_of(item: Mapping[str, Any], rack_labels: Iterable[str]) -> Node:
    """A node.

    Raises:
        InputError: An amount of a resource is no quantity.
    """
    metadata, spec, status = (_object(item.get(key)) for key in ("metadata", "spec", "status"))
    labels = {str(key): str(value) for key, value in _object(metadata.get("labels")).items()}
    taints = (
        Taint(str(one.get("key", "")), str(one.get("value") or ""), str(one.get("effect", "")))
        for one in _objects(spec.get("taints"))
    )
    return Node(
        str(metadata.get("name", "")),
        next((labels[key] for key in rack_labels if labels.get(key)), None),
        time_ms(metadata.get("creationTimestamp")) or 0,
        spec.get("unschedulable") is True,
        labels,
        tuple(one for one in taints if one.effect in _KEEPS_AWAY and not one.key.startswith(LIFECYCLE)),
        {str(name): amount(str(name), value) for name, value in _object(status.get("allocatable")).items()},
    )


def rack_link_of(item: Mapping[str, Any]) -> int:
    """Rate of the links of a node's rack by its annotation; 0 without a valid one."""
    return rate(_object(_object(item.get("metadata")).get("annotations")).get(RACK_LINK)) or 0


def addresses_of(item: Mapping[str, Any]) -> Iterator[str]:
    """Names and addresses by which others may know a node."""
    metadata, status = _object(item.get("metadata")), _object(item.get("status"))
    yield str(metadata.get("name", ""))
    yield str(_object(metadata.get("labels")).get("kubernetes.io/hostname", ""))
    for one in _objects(status.get("addresses")):
        yield str(one.get("address", ""))


def controller_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and name of the controller that owns an object; empty without one."""
    for owner in _objects(_object(item.get("metadata")).get("ownerReferences")):
        if owner.get("controller") is True:
            return str(owner.get("kind", "")), str(owner.get("name", ""))
    return "", ""


def workload_of(kind: str, name: str, pod: str, labels: Mapping[str, Any]) -> str:
    """Workload of a pod: its controller, the Deployment of a ReplicaSet, or the pod itself.

    A Deployment names its ReplicaSets by its own name and the hash of the template, which is a label.
    """
    end = f"-{labels.get('pod-template-hash')}"
    if kind == "ReplicaSet" and len(end) > 1 and name.endswith(end) and name != end:
        return f"Deployment/{name.removesuffix(end)}"
    return f"{kind}/{name}" if kind else f"Pod/{pod}"


def template_of(item: Mapping[str, Any], kind: str) -> Template:
    """Requirements of a pod, or of a template of pods.

    Args:
        item: An object with `metadata` and `spec`.
        kind: Kind of the controller.
    """
    spec = _object(item.get("spec"))
    annotations = _object(_object(item.get("metadata")).get("annotations"))
    peaks = (rate(annotations.get(PEAKS[0])), rate(annotations.get(PEAKS[1])))
    egress, ingress = (rate(annotations.get(name), *LIMIT_BOUNDS) for name in LIMITS)
    try:
        requests, terms, tolerations = _requests(spec), _terms(spec), _tolerations(spec)
    except (InputError, TypeError, ValueError):
        return Template(peak_bps=peaks, limit_bps=(egress, ingress), unfit="invalid_spec")
    return Template(requests, terms, tolerations, peaks, (egress, ingress), _unfit(spec, kind))


def _unfit(spec: Mapping[str, Any], kind: str) -> str | None:
    """First reason for which the trial cannot judge a pod."""
    affinity = _object(spec.get("affinity"))
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spreads = _objects(spec.get("topologySpreadConstraints"))
    containers = [*_objects(spec.get("containers")), *_objects(spec.get("initContainers"))]
    reasons = {
        "bound_to_node": kind in ("DaemonSet", "Node"),
        "host_network": spec.get("hostNetwork") is True,
        "pod_affinity": any(
            _object(affinity.get(one)).get(required) for one in ("podAffinity", "podAntiAffinity")
        ),
        "topology_spread": any(one.get("whenUnsatisfiable") != "ScheduleAnyway" for one in spreads),
        "volumes": any(
            "persistentVolumeClaim" in one or "ephemeral" in one for one in _objects(spec.get("volumes"))
        ),
        "host_ports": any(port.get("hostPort") for one in containers for port in _objects(one.get("ports"))),
        "resource_claims": bool(spec.get("resourceClaims")),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Requests of a pod: those of its containers together, or the largest of an init container if more.

    An init container that is restarted always runs beside the others. Requests of the pod itself count
    before those of its containers.
    """
    running: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)
    for one in _objects(spec.get("initContainers")):
        for name, value in _amounts(one.get("resources")).items():
            most[name] = max(most[name], running[name] + value)
            if one.get("restartPolicy") == "Always":
                running[name] += value
    for one in _objects(spec.get("containers")):
        for name, value in _amounts(one.get("resources")).items():
            running[name] += value
    total = {name: max(running[name], most[name]) for name in {*running, *most}}
    total |= _amounts(spec.get("resources"))
    for name, value in _object(spec.get("overhead")).items():
        total[name] = total.get(name, 0) + amount(name, value)
    return {name: value for name, value in sorted(total.items()) if value > 0}


def _amounts(resources: Any) -> dict[str, int]:
    """Requests of a container; a limit without a request is a request."""
    parts = _object(resources)
    amounts = {**_object(parts.get("limits")), **_object(parts.get("requests"))}
    return {str(name): amount(str(name), value) for name, value in amounts.items()}


def _terms(spec: Mapping[str, Any]) -> tuple[tuple[Expression, ...], ...]:
    """Terms of the node selector and of the required node affinity."""
    selector = tuple(
        Expression(str(key), "In", (str(value),))
        for key, value in sorted(_object(spec.get("nodeSelector")).items())
    )
    affinity = _object(_object(spec.get("affinity")).get("nodeAffinity"))
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return (selector,) if selector else ()
    terms = []
    for term in _objects(_object(required).get("nodeSelectorTerms")):
        conditions = [
            _expression(one, field == "matchFields")
            for field in ("matchExpressions", "matchFields")
            for one in _objects(term.get(field))
        ]
        # An empty term matches no node.
        if conditions:
            terms.append((*selector, *conditions))
    if not terms:
        raise ValueError("no term")
    return tuple(terms)


def _expression(one: Mapping[str, Any], of_field: bool) -> Expression:
    key, operator = str(one.get("key", "")), str(one.get("operator", ""))
    if operator not in OPERATORS or (of_field and key != "metadata.name"):
        raise ValueError(operator)
    return Expression(key, operator, tuple(str(value) for value in one.get("values") or ()), of_field)


def _tolerations(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            str(one.get("key") or ""),
            str(one.get("operator") or "Equal"),
            str(one.get("value") or ""),
            str(one.get("effect") or ""),
        )
        for one in _objects(spec.get("tolerations"))
    )


def _object(value: Any) -> dict[str, Any]:
    """An object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    """Objects of a list; anything else is left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
