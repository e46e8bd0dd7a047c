"""Slurm: `topology.conf`, of the tree plugin (switches) or the block plugin (blocks), or `topology.yaml`.

A switch with `Nodes=` is a rack, the switch above it a pod, and switches above that a core without limits. A
block is a rack; a block without nodes is counted. `topology.yaml`, which Slurm reads first since 25.05, may
have several topologies: the default one is imported. `LinkSpeed=` has no unit, and Slurm does not use it; the
importer counts it and does not read it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from leeward.errors import InputError
from leeward.importers.hostlist import expand
from leeward.importers.slurm_yaml import is_yaml, yaml_lines
from leeward.importers.topology import MOST_HOSTS, Host, Topology

_KEYS = {"switchname": {"switchname", "nodes", "switches", "linkspeed"}, "blockname": {"blockname", "nodes"}}
_FILE_WIDE = {"blocksizes", "blockratio"}
_WORD = re.compile(r"(?P<key>[A-Za-z]+)\s*=\s*(?P<value>\"[^\"]*\"|\S+)")

_MOST_LEVELS = 20

Place = tuple[str, int]


@dataclass
class _Switches:
    """Children of each switch with their lines, and the number of names that are still allowed."""

    nodes: dict[str, tuple[Place, list[str]]] = field(default_factory=dict)
    switches: dict[str, tuple[Place, list[str]]] = field(default_factory=dict)
    room: int = 2 * MOST_HOSTS


def read(topology: Topology) -> None:
    """Adds hosts, racks and pods of all files.

    Raises:
        InputError: A line is invalid, or switches form a cycle.
    """
    tree = _Switches()
    for file, text in topology.texts():
        if is_yaml(text):
            for number, words in yaml_lines(topology, file, text):
                _define(topology, (file, number), words, tree)
            continue
        for place, line in _included(file, text):
            _line(topology, place, line, tree)
    parents: dict[str, str] = {}
    for switch, ((file, number), below) in tree.switches.items():
        for child in below:
            if child not in tree.nodes and child not in tree.switches:
                message = f"`{child[:60]}`: no line defines this switch"
                raise InputError(file, number, None, "Switches", message)
            if parents.setdefault(child, switch) != switch:
                parent = parents[child]
                topology.left_out.count("second-parent", 1, f"{child}: below {parent}, not below {switch}")
    above = {switch: _above(switch, parents, place) for switch, (place, _) in tree.nodes.items()}
    _count_levels(topology, list(above.values()), tree)
    for switch, ((file, number), below) in tree.nodes.items():
        rack = topology.name(switch, file, number, "SwitchName")
        pod = topology.name(above[switch][0], file, number, "SwitchName") if above[switch] else None
        for node in below:
            topology.add(Host(topology.name(node, file, number, "Nodes"), rack, pod), file, number, "Nodes")


def _above(switch: str, parents: dict[str, str], place: Place) -> list[str]:
    """Switches above a switch, from the nearest to the topmost."""
    result: list[str] = []
    while switch in parents:
        switch = parents[switch]
        result.append(switch)
        if len(result) > _MOST_LEVELS:
            message = f"more than {_MOST_LEVELS} levels of switches above it; is one of them above itself?"
            raise InputError(*place, None, result[0][:60], message)
    return result


def _count_levels(topology: Topology, above: list[list[str]], tree: _Switches) -> None:
    """Counts the levels above a tree of racks, pods and one core."""
    topmost = {line[-1] for line in above if line}
    # A single switch above everything is the core.
    levels = max(map(len, above), default=0) - 1 - (len(topmost) == 1)
    topology.left_out.count("level-above-pods", max(levels, 0))
    with_nodes = {switch for line in above for switch in line}
    empty = [switch for switch in tree.switches if switch not in with_nodes]
    topology.left_out.count("switch-without-nodes", len(empty), *empty[:3])


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments; a line that ends in a backslash is joined with the next."""
    result: list[tuple[int, str]] = []
    start, joined = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].rstrip()
        start = start or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        if (joined + line).strip():
            result.append((start, (joined + line).strip()))
        start, joined = 0, ""
    if joined.strip():
        result.append((start, joined.strip()))
    return result


def _included(file: str, text: str, above: tuple[Path, ...] = ()) -> Iterator[tuple[Place, str]]:
    """Lines of a file and of those that it includes, with their places."""
    for number, line in _lines(text):
        include = re.fullmatch(r"(?i:include)\s+(\S.*)", line)
        if include is None:
            yield (file, number), line
            continue
        path = Path(file).parent / include[1].strip()
        if path.resolve() in above or len(above) == _MOST_LEVELS:
            message = f"`{include[1][:60]}`: files include each other"
            raise InputError(file, number, None, "include", message)
        try:
            ((inner, inner_text),) = Topology("slurm", [str(path)]).texts()
        except InputError as error:
            raise InputError(file, number, None, "include", str(error)) from None
        yield from _included(inner, inner_text, (*above, path.resolve()))


def _line(topology: Topology, place: Place, line: str, tree: _Switches) -> None:
    """Reads one line."""
    words = {match["key"].lower(): match["value"].strip('"') for match in _WORD.finditer(line)}
    if _WORD.sub("", line).strip() or not words:
        message = f"`{line[:60]}`: expected words such as SwitchName=s1 Nodes=node[01-16]"
        raise InputError(*place, None, None, message)
    if words.keys() <= _FILE_WIDE:
        topology.left_out.count("block-sizes", 1)
        return
    if not words.keys() & _KEYS.keys():
        raise InputError(*place, None, None, f"`{line[:60]}`: expected SwitchName= or BlockName=")
    _define(topology, place, words, tree)


def _define(topology: Topology, place: Place, words: dict[str, str], tree: _Switches) -> None:
    """Adds the switch or block of one line."""
    kind = next(key for key in _KEYS if key in words)
    for key in sorted(words.keys() - _KEYS[kind]):
        allowed = ", ".join(sorted(_KEYS[kind]))
        raise InputError(*place, None, key, f"not known; expected one of {allowed}")
    if "linkspeed" in words:
        topology.left_out.count("link-speed", 1, f"{words[kind]}: {words['linkspeed']}"[:80])
    if kind == "blockname" and not words.get("nodes"):
        topology.left_out.count("empty-block", 1, words[kind][:60])
        return
    if ("nodes" in words) == ("switches" in words):
        raise InputError(*place, None, words[kind][:60], "expected either Nodes= or Switches=")
    key = "nodes" if "nodes" in words else "switches"
    below = _names(place, key, words[key], tree)
    for name in _names(place, kind, words[kind], tree):
        if before := tree.nodes.get(name) or tree.switches.get(name):
            message = f"already defined on line {before[0][1]} of {before[0][0]}"
            raise InputError(*place, None, name[:60], message)
        (tree.nodes if key == "nodes" else tree.switches)[name] = (place, below)


def _names(place: Place, key: str, text: str, tree: _Switches) -> list[str]:
    try:
        names = expand(text, tree.room)
    except ValueError as error:
        raise InputError(*place, None, key, str(error)) from None
    tree.room -= len(names)
    return names
