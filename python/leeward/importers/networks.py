"""Graphs of networkx, which must be trees of switches and hosts.

A node is named by its key. `type`, `kind` or `role` of a node tell hosts from switches, and `cpus` and
`memory` are those of a host. A link's rate is the first of `bandwidth`, `capacity`, `speed` and `rate`: a
text with a unit, or a number of bits per second.
"""

from dataclasses import replace
from typing import Any

from leeward._inputs import Graph, size_text
from leeward._quantities import MOST_BPS, read_rate
from leeward.errors import InputError
from leeward.importers import graph
from leeward.importers.topology import Topology

_KINDS = ("type", "kind", "role")
_RATES = ("bandwidth", "capacity", "speed", "rate")
_NAME = "graph"
"""Name of the graph in errors."""


def read(topology: Topology, network: Graph) -> None:
    """Adds the hosts of a graph.

    Raises:
        InputError: The graph is not a tree, or a rate is invalid.
    """
    found = graph.Graph()
    attributes = {}
    for number, (node, values) in enumerate(network.nodes(data=True), 1):
        name = str(node)
        if name in found.lines:
            raise InputError.about(_NAME, f"`{name[:40]}`: two nodes have this name")
        found.lines[name] = number
        attributes[name] = values
        for field in _KINDS:
            found.kind(name, str(values.get(field, "")))
    for one, other, values in network.edges(data=True):
        names = str(one), str(other)
        if names[0] == names[1]:
            topology.left_out.count("own-neighbour", 1, names[0])
            continue
        found.link(*names, _rate(names, values), 0)
    try:
        graph.place(topology, found, _NAME, network.is_directed())
    except InputError as error:
        # A graph in memory has no lines.
        raise InputError(_NAME, None, None, error.field, error.message) from None
    for at, host in enumerate(topology.hosts):
        values = attributes.get(host.name, {})
        cpus, memory = values.get("cpus"), values.get("memory")
        topology.hosts[at] = replace(
            host,
            cpus=None if cpus is None else str(cpus),
            memory=None if memory is None else size_text("memory", memory),
        )


def _rate(names: tuple[str, str], values: Any) -> int:
    """Rate of a link in bits per second; 0 if unknown."""
    field = next((name for name in _RATES if values.get(name) is not None), None)
    if field is None:
        return 0
    value = values[field]
    where = f"link {names[0]} - {names[1]}"
    if isinstance(value, str):
        try:
            return read_rate(field, value)
        except InputError as error:
            raise InputError(_NAME, None, None, field, f"{where}: {error.message}") from None
    try:
        rate = round(value)
    except (TypeError, ValueError, OverflowError):
        rate = 0
    if not 0 < rate <= MOST_BPS:
        message = f"{where}: `{str(value)[:40]}`: expected bits per second above 0, or a text with a unit"
        raise InputError(_NAME, None, None, field, message)
    return int(rate)
