"""Objects of a cluster at one moment: nodes with racks, pods, and the owners of pods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leeward._quantities import some
from leeward.errors import InputError
from leeward.kubernetes.kubectl import Kubectl
from leeward.kubernetes.objects import (
    RACK_LABELS,
    RACK_LINK,
    addresses_of,
    node_of,
    rack_link_of,
    template_of,
)
from leeward.kubernetes.recording import Node, Template

LISTS: Mapping[str, str] = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "Job": "/apis/batch/v1/jobs",
}
"""Path of each list that is read. The owners have the templates of pods that have ended."""


@dataclass(frozen=True)
class Owner:
    """The owner of pods.

    Attributes:
        template: Requirements of its pods.
        labels: Labels of its pods.
    """

    template: Template
    labels: Mapping[str, Any]


@dataclass(frozen=True)
class Cluster:
    """Objects of a cluster.

    Attributes:
        nodes: Nodes.
        known_as: Node of each name and address.
        rack_bps: Rate of the links of each rack.
        pods: Pods that run on a node or did, by identity.
        owners: Owners of pods by namespace, kind and name.
        notes: Sentences about parts that are missing.
    """

    nodes: tuple[Node, ...]
    known_as: Mapping[str, str]
    rack_bps: Mapping[str, int]
    pods: Mapping[str, Mapping[str, Any]]
    owners: Mapping[tuple[str, str, str], Owner] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_cluster(
    kubectl: Kubectl,
    rack_label: str | None = None,
    rack_bps: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Cluster:
    """Reads a cluster.

    Args:
        kubectl: Connection to the API server.
        rack_label: Label of nodes that names their rack; by default the first of `RACK_LABELS`.
        rack_bps: Rate of the links of a rack whose nodes have no annotation `RACK_LINK`.
        advance: Called after each list.

    Raises:
        InputError: The API server does not answer, no node names a rack, or the rate of a rack is unknown.
    """
    items = {}
    for kind, path in LISTS.items():
        items[kind] = list(kubectl.items(path))
        advance(1)
    nodes, known_as, rates = _nodes(items["Node"], rack_label, rack_bps)
    return Cluster(
        nodes,
        known_as,
        rates,
        {str(pod["metadata"].get("uid")): pod for pod in items["Pod"] if _node_name(pod)},
        {
            (str(metadata.get("namespace")), kind, str(metadata.get("name"))): _owner(item, kind)
            for kind in ("ReplicaSet", "StatefulSet", "Job")
            for item in items[kind]
            if (metadata := _metadata(item))
        },
        _notes(nodes),
    )


def _nodes(
    items: Sequence[Mapping[str, Any]], rack_label: str | None, rack_bps: int | None
) -> tuple[tuple[Node, ...], dict[str, str], dict[str, int]]:
    labels = RACK_LABELS if rack_label is None else (rack_label,)
    nodes: list[Node] = []
    known_as: dict[str, str] = {}
    rates: dict[str, int] = {}
    for item in items:
        node = node_of(item, labels)
        nodes.append(node)
        known_as |= {name: node.name for name in addresses_of(item) if name}
        if node.rack is not None:
            rates[node.rack] = max(rates.get(node.rack, 0), rack_link_of(item))
    # A name of a node counts before an address that another node has too.
    known_as |= {node.name: node.name for node in nodes}
    if not rates:
        error = InputError.about("nodes", f"none of {len(nodes):,} has a label {' or '.join(labels)}")
        error.add_note(
            "kubectl label node NODE leeward.dev/rack=RACK names its rack; --rack-label KEY is another label"
        )
        raise error
    missing = sorted(rack for rack, bps in rates.items() if bps == 0)
    if missing and rack_bps is None:
        error = InputError.about("racks", f"the rate of the links of {some(missing)} is unknown")
        error.add_note(f"--rack-link RATE, or the annotation {RACK_LINK} of a node, says it")
        raise error
    return tuple(nodes), known_as, {rack: bps or rack_bps or 0 for rack, bps in sorted(rates.items())}


def _notes(nodes: Sequence[Node]) -> tuple[str, ...]:
    without = [node.name for node in nodes if node.rack is None]
    if not without:
        return ()
    return (f"nodes without the label of a rack take no part: {some(sorted(without))}",)


def _owner(item: Mapping[str, Any], kind: str) -> Owner:
    spec = item.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    template = template if isinstance(template, dict) else {}
    labels = _metadata(template).get("labels")
    return Owner(template_of(template, kind), labels if isinstance(labels, dict) else {})


def _metadata(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = item.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _node_name(pod: Mapping[str, Any]) -> str:
    spec = pod.get("spec")
    return str(spec.get("nodeName") or "") if isinstance(spec, dict) and _metadata(pod) else ""
