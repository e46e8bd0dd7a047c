"""Nodes that can take a pod: the filters of kube-scheduler that a trial knows.

These are NodeResourcesFit (all resources, and the number of pods), NodeAffinity (selector and required
affinity), TaintToleration and NodeUnschedulable. Cordons, labels and taints are those at the end of the
recording, because nothing records earlier ones.
"""

from collections.abc import Mapping, Sequence

import numpy
from numpy.typing import NDArray

from leeward.kubernetes.recording import Expression, Node, Taint, Template, Toleration

Flags = NDArray[numpy.bool_]


def accepts(node: Node, template: Template) -> bool:
    """True if the labels and the taints of a node let a pod run on it."""
    terms = template.terms
    return all(any(_tolerates(one, taint) for one in template.tolerations) for taint in node.taints) and (
        not terms or any(all(_holds(one, node) for one in term) for term in terms)
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator == "Equal" and bool(toleration.key) and toleration.value == taint.value


def _holds(one: Expression, node: Node) -> bool:
    value = node.name if one.of_field else node.labels.get(one.key)
    match one.operator:
        case "In":
            return value in one.values
        case "NotIn":
            return value not in one.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    # Gt and Lt compare whole numbers.
    try:
        number, bound = int(value or ""), int(one.values[0] if one.values else "")
    except ValueError:
        return False
    return number > bound if one.operator == "Gt" else number < bound


class Room:
    """Free amounts of all resources on all nodes, and the filters of each template."""

    def __init__(self, nodes: Sequence[Node], templates: Sequence[Template]) -> None:
        """Starts with empty nodes."""
        self._nodes, self._templates = nodes, templates
        names = {"pods"}.union(*(template.requests for template in templates))
        self._free = {
            name: numpy.array([node.room.get(name, 0) for node in nodes], dtype=numpy.int64)
            for name in sorted(names)
        }
        self._open = numpy.array([not node.cordoned for node in nodes], dtype=numpy.bool_)
        self._created = numpy.array([node.created_ms for node in nodes], dtype=numpy.int64)
        self._accepting: dict[int, Flags] = {}

    def take(self, node: int, template: int, times: int = 1) -> None:
        """Takes the requests of a pod from a node; with -1, gives them back."""
        for name, value in self._wanted(template).items():
            self._free[name][node] -= times * value

    def accepting(self, template: int) -> Flags:
        """Nodes whose labels and taints let a pod run."""
        if template not in self._accepting:
            one = self._templates[template]
            flags = [accepts(node, one) for node in self._nodes]
            self._accepting[template] = numpy.array(flags, dtype=numpy.bool_)
        return self._accepting[template]

    def candidates(self, template: int, own: int, time_ms: int) -> Flags:
        """Nodes that can take a pod at a time.

        The pod's own node took it, so a cordon of today does not count there.

        Args:
            template: Template of the pod.
            own: Node where the pod ran.
            time_ms: Time.
        """
        is_open = self._open.copy()
        is_open[own] = True
        flags = is_open & self.accepting(template) & (self._created <= time_ms)
        for name, value in self._wanted(template).items():
            flags &= self._free[name] >= value
        return flags

    def _wanted(self, template: int) -> Mapping[str, int]:
        return {**self._templates[template].requests, "pods": 1}
