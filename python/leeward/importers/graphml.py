"""GraphML, as the Internet Topology Zoo and networkx write it (http://graphml.graphdrawing.org/specification.html).

A node is named by its `label`, if all labels differ, and otherwise by its id. A link's rate is `LinkSpeedRaw`
(bits per second), `LinkSpeed` with `LinkSpeedUnits`, or a value with a unit of `bandwidth`, `capacity`,
`speed` or `rate`. `type`, `kind` or `role` tell hosts from switches.
"""

from leeward._quantities import read_rate
from leeward.errors import InputError
from leeward.importers import graph, xml
from leeward.importers.topology import Topology

_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_RATES = ("bandwidth", "capacity", "speed", "rate")
_KINDS = ("type", "kind", "role")


def read(topology: Topology) -> None:
    """Adds the hosts of each file.

    Raises:
        InputError: A file is not GraphML, or its graph is not a tree.
    """
    for file, text in topology.texts():
        root = xml.parse(file, text)
        graphs = root.below("graph")
        if root.tag != "graphml" or len(graphs) != 1:
            message = f"`{root.tag[:40]}` with {len(graphs)} graphs: expected `graphml` with one `graph`"
            raise InputError(file, root.line, None, None, message)
        _graph(topology, file, root, graphs[0])


def _graph(topology: Topology, file: str, root: xml.Element, element: xml.Element) -> None:
    keys = {key.attributes.get("id", ""): key for key in root.below("key")}

    def data(of: xml.Element, domain: str) -> dict[str, str]:
        values = {
            key.attributes.get("attr.name", name).lower(): key.first_text("default")
            for name, key in keys.items()
            if key.attributes.get("for") in (domain, "all") and key.below("default")
        }
        for item in of.below("data"):
            name = item.attributes.get("key", "")
            key = keys.get(name)
            values[(name if key is None else key.attributes.get("attr.name", name)).lower()] = (
                item.text.strip()
            )
        return values

    for child in element.children:
        if child.tag not in ("node", "edge", "data", "desc") or child.below("graph"):
            message = (
                f"`{child.tag[:40]}`: expected nodes and edges; hyperedges and nested graphs are not read"
            )
            raise InputError(file, child.line, None, None, message)
    ids = {}
    for node in element.below("node"):
        name = node.attributes.get("id", "")
        if not name or name in ids:
            message = f"`{name[:40]}`: expected an id that no other node has"
            raise InputError(file, node.line, None, "node", message)
        ids[name] = (node, data(node, "node"))
    labels = [values.get("label", "") for _, values in ids.values()]
    labelled = all(labels) and len(set(labels)) == len(labels)
    names = {name: values["label"] if labelled else name for name, (_, values) in ids.items()}
    found = graph.Graph()
    for name, (node, values) in ids.items():
        found.lines[names[name]] = node.line
        for field in _KINDS:
            found.kind(names[name], values.get(field, ""))
    directed = element.attributes.get("edgedefault") == "directed"
    for edge in element.below("edge"):
        ends = [edge.attributes.get(end, "") for end in ("source", "target")]
        for end in ends:
            if end not in names:
                raise InputError(file, edge.line, None, "edge", f"`{end[:40]}`: no node has this id")
        if ends[0] == ends[1]:
            topology.left_out.count("own-neighbour", 1, names[ends[0]])
            continue
        rate = _rate(topology, file, edge, data(edge, "edge"))
        found.link(names[ends[0]], names[ends[1]], rate, edge.line)
    graph.place(topology, found, file, directed)


def _rate(topology: Topology, file: str, edge: xml.Element, values: dict[str, str]) -> int:
    """Rate of a link in bits per second; 0 if unknown."""
    field = next((name for name in ("linkspeedraw", "linkspeed", *_RATES) if values.get(name)), None)
    if field is None:
        return 0
    text = values[field]
    try:
        if field not in ("linkspeedraw", "linkspeed"):
            if text.replace(".", "", 1).isdigit():
                topology.left_out.count("link-speed", 1, f"line {edge.line}: {field} {text[:20]}")
                return 0
            return read_rate(field, text)
        unit = 1
        if field == "linkspeed":
            unit = _UNITS.get(values.get("linkspeedunits", "")[:1].lower(), 0)
            if not unit:
                topology.left_out.count("link-speed", 1, f"line {edge.line}: {text[:20]}")
                return 0
        rate = round(float(text) * unit)
    except InputError as error:
        raise InputError(file, edge.line, None, field, error.message) from None
    except (ValueError, OverflowError):
        rate = 0
    if not 0 < rate < 10**18:
        raise InputError(file, edge.line, None, field, f"`{text[:40]}`: expected a rate above 0")
    return rate
