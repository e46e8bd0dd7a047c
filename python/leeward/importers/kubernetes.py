"""Kubernetes: nodes with labels, as `kubectl get nodes -o json` (or `-o yaml`) prints them.

Labels of a node name its rack and its pod; a pod is a group of racks here, not a Kubernetes pod. Topograph
and some clouds label a node with its switch, or the group of its nearest switches, and those above; each has
label keys of its own (`FAMILIES`). Kubernetes itself has no label for a rack, so without these the user gives
the label's key. The `capacity` of a node is the capacity for tasks.
"""

import json
import re
from decimal import Decimal
from typing import Any

import yaml

from leeward.errors import InputError
from leeward.importers.topology import Host, Topology

TOPOGRAPH = "network.topology.nvidia.com"
ZONE = "topology.kubernetes.io/zone"
FAMILIES = (
    (f"{TOPOGRAPH}/leaf", f"{TOPOGRAPH}/spine"),
    (f"{TOPOGRAPH}/block", f"{TOPOGRAPH}/spine"),
    ("fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1"),
    # Google Kubernetes Engine: a sub-block of a block.
    ("cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block"),
    # Amazon: layer 1 is the top; the last layer is next to the instance.
    ("topology.k8s.aws/network-node-layer-4", "topology.k8s.aws/network-node-layer-3"),
    ("topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-2"),
    # Oracle: a local block of a network block.
    ("oci.oraclecloud.com/rdma.local_block_id", "oci.oraclecloud.com/rdma.network_block_id"),
    ("oci.oraclecloud.com/host.rack_id", "oci.oraclecloud.com/host.network_block_id"),
    # CoreWeave: a group of leaf switches of a superpod.
    ("backend.coreweave.cloud/leafgroup", "backend.coreweave.cloud/superpod"),
    ("ib.coreweave.cloud/leafgroup", "ib.coreweave.cloud/superpod"),
    ("node.coreweave.cloud/rack", "backend.coreweave.cloud/superpod"),
    ("topology.kubernetes.io/rack", ZONE),
)
"""Labels that name a node's rack and its pod; the first family whose label of a rack a node has counts.

A node without the family's label of a pod is in the pod of its zone.
"""
_TOPOLOGY_LABEL = re.compile(rf"(topology\.kubernetes\.io|{re.escape(TOPOGRAPH)}|[a-z]+\.topograph\.run)/.+")
_QUANTITY = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?", re.ASCII
)
_MULTIPLES: dict[str, Decimal] = {
    **{letter: Decimal(10) ** (3 * power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(2) ** (10 * power) for power, letter in enumerate("KMGTPE", 1)},
    "m": Decimal("0.001"),
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
}
_MOST_DEPTH = 100
"""Maximum nesting depth of YAML."""
_MOST_LABELS = 10
"""Maximum number of labels in a hint."""


def read(topology: Topology, rack_label: str | None, pod_label: str | None) -> None:
    """Adds the nodes of all files.

    Raises:
        InputError: A file is neither JSON nor YAML, or has no nodes; or no node names a rack.
    """
    pods = dict.fromkeys((*(pod for _, pod in FAMILIES), ZONE))
    families = [
        (rack, ((pod, ZONE) if rack_label is None else tuple(pods)) if pod_label is None else (pod_label,))
        for rack, pod in (FAMILIES if rack_label is None else [(rack_label, ZONE)])
    ]
    hint_labels: dict[str, None] = {}
    for file, text in topology.texts():
        for field, node in _items(topology, file, text):
            _add(topology, file, field, node, families, hint_labels)
    if not topology.hosts and "no-rack-label" in topology.left_out.counts:
        keys = rack_label or "that names a rack, such as those of topograph or of a cloud"
        error = InputError.about(topology.files[0], f"no node has a label {keys}")
        if hint_labels:
            error.add_note(f"labels that nodes have: {', '.join(list(hint_labels)[:_MOST_LABELS])}")
        error.add_note("--rack-label KEY is the label that names a node's rack")
        raise error


def _items(topology: Topology, file: str, text: str) -> list[tuple[str, dict[str, Any]]]:
    """Nodes of a file and their names in errors."""
    content = _parse(file, text)
    if isinstance(content, dict) and content.get("kind") == "Node":
        return [("Node", content)]
    items = content.get("items") if isinstance(content, dict) else content
    if not isinstance(items, list):
        error = InputError(file, None, None, "items", "expected a list of nodes")
        error.add_note("kubectl get nodes -o json prints one")
        raise error
    result = []
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError(file, None, None, f"items[{number}]", "expected a node, an object with metadata")
        if item.get("kind", "Node") == "Node":
            result.append((f"items[{number}]", item))
        else:
            topology.left_out.count("not-a-node", 1, f"items[{number}]: {str(item['kind'])[:40]}")
    return result


def _parse(file: str, text: str) -> Any:
    try:
        if text.lstrip()[:1] in ("{", "["):
            return json.loads(text)
        _check_depth(file, text)
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except json.JSONDecodeError as error:
        raise InputError(file, error.lineno, error.colno, None, f"not valid JSON: {error.msg}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise InputError(file, line, column, None, f"not valid YAML: {error.problem}") from None
    except RecursionError:
        raise InputError.about(file, "nested too deeply for a list of nodes") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError.about(file, f"not valid YAML: {str(error)[:100]}") from None


def _check_depth(file: str, text: str) -> None:
    """Rejects YAML nested too deep for the stack of the loader, which is recursive C."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise InputError.about(file, "nested too deeply for a list of nodes")


def _add(
    topology: Topology,
    file: str,
    field: str,
    node: dict[str, Any],
    families: list[tuple[str, tuple[str, ...]]],
    hint_labels: dict[str, None],
) -> None:
    """Adds one node; the labels of a node without a rack go to `hint_labels`."""
    metadata = _object(file, f"{field}.metadata", node.get("metadata"))
    labels = _object(file, f"{field}.metadata.labels", metadata.get("labels") or {})
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError(
                file, None, None, f"{field}.metadata.labels", f"`{key}`: expected a text as key and as value"
            )
    name = metadata.get("name") or labels.get("kubernetes.io/hostname")
    if not isinstance(name, str):
        raise InputError(file, None, None, f"{field}.metadata.name", "expected the node's name, a text")
    rack, pods = next((family for family in families if labels.get(family[0])), (None, ()))
    if rack is None:
        hint_labels.update(dict.fromkeys(sorted(labels)))
        topology.left_out.count("no-rack-label", 1, name)
        return
    pod = next((key for key in pods if labels.get(key)), None)
    label_keys = {rack, pod}
    unused_keys = [key for key in labels if _TOPOLOGY_LABEL.fullmatch(key) and key not in label_keys]
    topology.left_out.count("label-not-used", len(unused_keys), *unused_keys[:3])
    status = _object(file, f"{field}.status", node.get("status") or {})
    capacity = _object(file, f"{field}.status.capacity", status.get("capacity") or {})
    cpus = quantity(file, f"{field}.status.capacity.cpu", capacity.get("cpu"))
    memory = quantity(file, f"{field}.status.capacity.memory", capacity.get("memory"))
    where = f"{field}.metadata.labels"
    host = Host(
        topology.name(name, file, None, f"{field}.metadata.name"),
        topology.name(labels[rack], file, None, where),
        None if pod is None else topology.name(labels[pod], file, None, where),
        None if cpus is None else _cpus(cpus),
        None if memory is None else _size(int(memory)),
    )
    topology.add(host, file, None, field)


def _object(file: str, field: str, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise InputError(file, None, None, field, "expected an object")
    return value


def quantity(file: str, field: str, value: Any) -> Decimal | None:
    """A quantity of Kubernetes; None if it is absent.

    Raises:
        InputError: The value is no quantity from 0 to 10^18.
    """
    if value is None:
        return None
    match = _QUANTITY.fullmatch(str(value)) if len(str(value)) < 40 else None
    if match is None or isinstance(value, bool):
        raise InputError(
            file, None, None, field, f"`{str(value)[:40]}`: expected a quantity, such as 96 or 512Gi"
        )
    unit = match["unit"] or ""
    number = Decimal(match["number"])
    result = number.scaleb(int(unit[1:])) if unit[:1] in ("e", "E") and unit[1:] else number
    result *= _MULTIPLES.get(unit, Decimal(1))
    if result > 10**18:
        raise InputError(file, None, None, field, f"`{value}`: more than 10^18")
    return result


def _cpus(number: Decimal) -> str:
    """Formats a number of processors: a whole number, or thousandths with the suffix `m`."""
    thousandths = int(number * 1000)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def _size(number: int) -> str:
    """Formats a size in the largest unit that divides it."""
    for unit, multiple in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number and number % multiple == 0:
            return f"{number // multiple}{unit}"
    return f"{number}B"
