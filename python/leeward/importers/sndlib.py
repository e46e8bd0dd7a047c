"""SNDlib networks, native or in XML (https://sndlib.put.poznan.pl). Capacities have no unit there."""

import re

from leeward.errors import InputError
from leeward.importers import graph, xml
from leeward.importers.topology import Topology

_LINK = re.compile(r"(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)")
_NODE = re.compile(r"(\S+)\s*\(([^()]*)\)")
_SECTION = re.compile(r"([A-Z_]+)\s*\($")


def read(topology: Topology) -> None:
    """Adds the hosts of each file.

    Raises:
        InputError: A file is in neither format, or its graph is not a tree.
    """
    for file, text in topology.texts():
        found = _xml(topology, file, text) if text.lstrip().startswith("<") else _native(topology, file, text)
        topology.left_out.count("link-speed", len(found.links))
        graph.place(topology, found, file, directed=True)


def _link(topology: Topology, file: str, found: graph.Graph, ends: tuple[str, str], line: int) -> None:
    for end in ends:
        if end not in found.lines:
            raise InputError(file, line, None, "link", f"`{end[:40]}`: no node has this name")
    if ends[0] == ends[1]:
        topology.left_out.count("own-neighbour", 1, ends[0])
        return
    found.link(*ends, 0, line)


def _node(file: str, found: graph.Graph, name: str, line: int) -> None:
    if not name or name in found.lines:
        message = f"`{name[:40]}`: expected a name that no other node has"
        raise InputError(file, line, None, "node", message)
    found.lines[name] = line


def _xml(topology: Topology, file: str, text: str) -> graph.Graph:
    root = xml.parse(file, text)
    structures = root.below("networkStructure")
    if root.tag != "network" or len(structures) != 1:
        message = f"`{root.tag[:40]}`: expected `network` with a `networkStructure`"
        raise InputError(file, root.line, None, None, message)
    found = graph.Graph()
    for nodes in structures[0].below("nodes"):
        for node in nodes.below("node"):
            _node(file, found, node.attributes.get("id", ""), node.line)
    for links in structures[0].below("links"):
        for link in links.below("link"):
            ends = (link.first_text("source"), link.first_text("target"))
            _link(topology, file, found, ends, link.line)
    return found


def _native(topology: Topology, file: str, text: str) -> graph.Graph:
    found = graph.Graph()
    section = None
    # Blocks within a section of no interest, such as those of ADMISSIBLE_PATHS.
    depth = 0
    seen = set()
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("#")[0].strip()
        if not line or line.startswith("?"):
            continue
        heading = _SECTION.fullmatch(line)
        if section is None and heading is not None:
            section = heading[1]
            seen.add(section)
        elif line == ")":
            if depth == 0:
                section = None
            depth = max(depth - 1, 0)
        elif line.endswith("(") and section not in (None, "NODES", "LINKS"):
            depth += 1
        elif section == "NODES":
            match = _NODE.match(line)
            if match is None:
                message = f"`{line[:60]}`: expected a node, as in `N1 ( 12.5 48.1 )`"
                raise InputError(file, number, None, "node", message)
            _node(file, found, match[1], number)
        elif section == "LINKS":
            match = _LINK.match(line)
            if match is None:
                message = f"`{line[:60]}`: expected a link, as in `L1 ( N1 N2 ) 0 0 0 0 ( )`"
                raise InputError(file, number, None, "link", message)
            _link(topology, file, found, (match[2], match[3]), number)
        elif section is None:
            message = f"`{line[:60]}`: expected a section, as in `NODES (`"
            raise InputError(file, number, None, None, message)
    if section is not None or not {"NODES", "LINKS"} <= seen:
        problem = f"the section {section} has no end" if section else "no sections NODES and LINKS"
        raise InputError.about(file, f"{problem}: is the file complete?")
    return found
