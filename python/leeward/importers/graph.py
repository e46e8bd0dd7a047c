"""General graphs as clusters, where they are trees.

The nodes at the ends of the tree are hosts, unless the file says which nodes are hosts. A switch with hosts
is a rack, the switch above it is its pod, and the switch in the middle is the core. Parallel links of two
nodes are a bundle: their rates add up. A graph with a cycle, in several pieces, or without a middle is an
error that names the nodes.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from leeward.errors import InputError
from leeward.importers.groups import Groups
from leeward.importers.topology import Host, Topology

HOST_WORDS = {"host", "server", "compute", "end-host", "endhost", "vm", "storage", "gpu"}
SWITCH_WORDS = {"switch", "router", "tor", "leaf", "spine", "core", "aggregation", "agg", "edge", "fabric"}
_MOST_NAMES = 12


@dataclass
class Graph:
    """Nodes and links of a file.

    Attributes:
        lines: Line of each node.
        kinds: True for nodes that the file calls hosts, false for those that it calls switches.
        links: For each pair of nodes in sorted order, the rates of its links by source, in bits per second;
            0 if unknown.
        cables: Places of links, by pair.
    """

    lines: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, bool] = field(default_factory=dict)
    links: dict[tuple[str, str], dict[str, list[int]]] = field(default_factory=dict)
    cables: dict[tuple[str, str], int] = field(default_factory=dict)

    def link(self, one: str, other: str, rate: int, line: int) -> None:
        """Adds a link."""
        pair = (one, other) if one < other else (other, one)
        self.links.setdefault(pair, {}).setdefault(one, []).append(rate)
        self.cables.setdefault(pair, line)

    def kind(self, name: str, word: str) -> None:
        """Keeps the word of a file for a node, such as `host` or `switch`, if it is known."""
        if word.lower() in HOST_WORDS | SWITCH_WORDS:
            self.kinds[name] = word.lower() in HOST_WORDS


def place(topology: Topology, graph: Graph, file: str, directed: bool) -> None:
    """Adds hosts, racks and pods of a graph.

    Args:
        topology: Takes the hosts.
        graph: The graph.
        file: Name of its file.
        directed: True if links in opposite directions are one link; false if these are two links.

    Raises:
        InputError: The graph is not a tree, or has no hosts or no middle.
    """
    near: dict[str, list[str]] = {name: [] for name in graph.lines}
    _check_tree(graph, near, file)
    hosts = [name for name in near if graph.kinds.get(name)]
    if not hosts:
        hosts = [name for name, beside in near.items() if len(beside) == 1 and name not in graph.kinds]
        topology.notes.append("the file names no hosts: nodes with links to a single other node are hosts")
    if not hosts:
        raise InputError.about(file, "no hosts: no node is named a host, and none has a single neighbour")
    for host in hosts:
        if len(near[host]) != 1:
            several = ", ".join(near[host][:_MOST_NAMES])
            message = f"host {host}: has links to {several}; expected one switch"
            raise InputError(file, graph.lines[host], None, "node", message)
    known = set(hosts)
    between = {name: [other for other in beside if other not in known] for name, beside in near.items()}
    racks = list(dict.fromkeys(near[host][0] for host in hosts))
    if any(rack in known for rack in racks):
        raise InputError.about(file, f"hosts {racks[0]} and {near[racks[0]][0]} have no switch between them")
    rates = {pair: _rate(ends, directed) for pair, ends in graph.links.items()}
    bundles = [pair for pair, ends in graph.links.items() if _number(ends, directed) > 1]
    if bundles:
        most = max(_number(graph.links[pair], directed) for pair in bundles)
        topology.notes.append(
            f"{len(bundles):,} bundles of parallel links, of at most {most:,}; their rates add up"
        )
    above = _above(between, racks, graph, file) if len(racks) > 1 else {}
    deepest = _uplinks(topology, graph, file, racks, above, rates)
    for host in hosts:
        [rack] = near[host]
        pod = above.get(rack) if deepest > 1 else None
        names = [topology.name(name, file, graph.lines[name], "node") for name in (host, rack)]
        nic = rates[min(host, rack), max(host, rack)] or None
        pod_name = None if pod is None else topology.name(pod, file, graph.lines[pod], "node")
        topology.add(Host(names[0], names[1], pod_name, nic_bps=nic), file, graph.lines[host])
    used = {*hosts, *racks, *above.values()}
    without = [name for name in near if name not in used]
    topology.left_out.count("switch-without-nodes", len(without), *without[:3])


def _uplinks(
    topology: Topology,
    graph: Graph,
    file: str,
    racks: list[str],
    above: dict[str, str],
    rates: dict[tuple[str, str], int],
) -> int:
    """Adds the rates of the uplinks of racks and pods; returns the number of switches above a rack."""
    deepest = 0
    for rack in racks:
        chain = [rack]
        while chain[-1] in above:
            chain.append(above[chain[-1]])
        deepest = max(deepest, len(chain) - 1)
        levels = (topology.rack_links, topology.pod_links)
        for links, (lower, upper) in zip(levels, pairwise(chain), strict=False):
            rate = rates[min(lower, upper), max(lower, upper)]
            if rate:
                links[topology.name(lower, file, graph.lines[lower], "node")] = rate
    if deepest > 2:
        topology.left_out.count("level-above-pods", deepest - 2)
    return deepest


def _number(ends: dict[str, list[int]], directed: bool) -> int:
    counts = [len(rates) for rates in ends.values()]
    return max(counts) if directed else sum(counts)


def _rate(ends: dict[str, list[int]], directed: bool) -> int:
    """Rate of all links of a pair; 0 if that of one of them is unknown."""
    groups = list(ends.values())
    if not all(rate for rates in groups for rate in rates):
        return 0
    return min(map(sum, groups)) if directed else sum(map(sum, groups))


def _check_tree(graph: Graph, near: dict[str, list[str]], file: str) -> None:
    """Fills the neighbours of all nodes; rejects a cycle, and a graph in pieces."""
    if not near:
        raise InputError.about(file, "no nodes")
    pieces = Groups()
    for one, other in graph.links:
        if pieces.of(one) == pieces.of(other):
            cycle = _path(_before(near, one), other)
            names = [*cycle[:_MOST_NAMES], *(["..."] if len(cycle) > _MOST_NAMES else []), cycle[0]]
            message = f"not a tree: the links {' - '.join(names)} are a cycle"
            raise InputError(file, graph.cables[one, other], None, "link", message)
        pieces.join(one, other)
        near[one].append(other)
        near[other].append(one)
    first = next(iter(near))
    for name in near:
        if pieces.of(name) != pieces.of(first):
            message = f"not a tree: no links join {name} and {first}"
            raise InputError(file, graph.lines[name], None, "node", message)


def _before(near: dict[str, list[str]], root: str) -> dict[str, str]:
    """The node before each node on the path from a root, which is its own."""
    before = {root: root}
    queue = deque([root])
    while queue:
        at = queue.popleft()
        for name in near[at]:
            if name not in before:
                before[name] = at
                queue.append(name)
    return before


def _path(before: dict[str, str], end: str) -> list[str]:
    """Nodes from an end to the root."""
    path = [end]
    while before[path[-1]] != path[-1]:
        path.append(before[path[-1]])
    return path


def _above(near: dict[str, list[str]], racks: list[str], graph: Graph, file: str) -> dict[str, str]:
    """The switch above each switch between the racks and the core."""
    before = _before(near, racks[0])
    far = max((_path(before, rack) for rack in racks), key=len)[0]
    before = _before(near, far)
    longest = max((_path(before, rack) for rack in racks), key=len)
    if len(longest) % 2 == 0:
        one, other = longest[len(longest) // 2 - 1 : len(longest) // 2 + 1]
        message = f"no core: {one} and {other} are both in the middle; expected one switch above all racks"
        raise InputError(file, graph.lines[one], None, "node", message)
    core = longest[len(longest) // 2]
    before = _before(near, core)
    above: dict[str, str] = {}
    for rack in racks:
        path = _path(before, rack)
        if len(path) != len(longest) // 2 + 1:
            levels = f"{len(path) - 1} below {core}, but {far} is {len(longest) // 2}"
            message = f"rack {rack} is {levels}; expected all racks at one depth"
            raise InputError(file, graph.lines[rack], None, "node", message)
        above.update(pairwise(path))
    return above
