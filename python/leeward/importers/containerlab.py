"""containerlab: a topology file (`.clab.yml`) or its `topology-data.json` (https://containerlab.dev).

Nodes of the kind `linux` are hosts, and all others are switches. A node with a `group` of a known word, such
as `spine` or `server`, is of this kind. Racks and pods follow from links, as those of LLDP. Speeds are
not known.
"""

from typing import Any

import yaml

from leeward.errors import InputError
from leeward.importers import lldp
from leeward.importers.graph import HOST_WORDS, SWITCH_WORDS
from leeward.importers.topology import Topology

_HOST_KINDS = {"linux", "k8s-kind", "generic_vm"}
_OUTSIDE = {"host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch"}
"""Ends and types of links that lead out of the topology."""


def read(topology: Topology, tors: str | None, spines: str | None) -> None:
    """Adds the hosts, racks and pods of each file.

    Raises:
        InputError: A file does not have this form, or no host has a link to a switch.
    """
    view = lldp.View()
    for file, text in topology.texts():
        _file(topology, file, text, view)
    lldp.place(topology, view, tors, spines)


def _file(topology: Topology, file: str, text: str, view: lldp.View) -> None:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
            raise InputError.about(file, "a YAML alias: expected each value in its place")
        document = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise InputError(file, line, None, None, f"not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError.about(file, f"not valid YAML: {str(error)[:80]}") from None
    whole = _object(file, "file", document)
    part = _object(file, "topology", whole["topology"]) if "topology" in whole else whole
    nodes = _object(file, "nodes", part.get("nodes"))
    defaults = _object(file, "defaults", part.get("defaults") or {})
    groups = _object(file, "groups", part.get("groups") or {})
    names = {}
    for name, content in nodes.items():
        node = _object(file, f"nodes.{name}", content or {})
        group = str(node.get("group", ""))
        of_group = groups.get(group)
        kind = node.get("kind") or (of_group or {}).get("kind") or defaults.get("kind")
        if not isinstance(kind, str):
            raise InputError(file, None, None, f"nodes.{str(name)[:40]}", "expected `kind`")
        names[str(name)] = valid = topology.name(str(name), file, None, "nodes")
        word = group.lower().rstrip("s0123456789-_")
        view.places.setdefault(valid, file)
        view.announcers.add(valid)
        if word in SWITCH_WORDS or (kind not in _HOST_KINDS and word not in HOST_WORDS):
            view.switches.add(valid)
    links = part.get("links") or []
    if not isinstance(links, list):
        raise InputError(file, None, None, "links", "expected a list")
    for number, link in enumerate(links):
        field = f"links[{number}]"
        ends = _ends(file, field, link)
        outside = [end for end in ends if end in _OUTSIDE and end not in names]
        if outside or len(ends) == 1:
            topology.left_out.count("outside-link", 1, f"{field}: {', '.join(ends)}")
            continue
        for end in ends:
            if end not in names:
                raise InputError(file, None, None, field, f"`{end[:40]}`: no node has this name")
        one, other = sorted(names[end] for end in ends)
        if one == other:
            topology.left_out.count("own-neighbour", 1, one)
            continue
        view.links.setdefault((one, other), {}).setdefault(one, []).append(0)


def _ends(file: str, field: str, link: Any) -> list[str]:
    """Nodes at the ends of a link, in any of the forms of containerlab."""
    content = _object(file, field, link)
    ends = content.get("endpoints", content)
    if isinstance(ends, dict):
        ends = [ends[end] for end in ("a", "z") if end in ends]
        ends = ends or [content["endpoint"]] if "endpoint" in content else ends
    nodes = []
    for end in ends if isinstance(ends, list) else []:
        if isinstance(end, str):
            nodes.append(end.partition(":")[0])
        elif isinstance(end, dict) and isinstance(end.get("node"), str):
            nodes.append(end["node"])
    outside = content.get("type") in _OUTSIDE
    if len(nodes) != 2 and not (outside and len(nodes) == 1):
        raise InputError(file, None, None, field, "expected two endpoints, as in `[leaf1:e1-1, host1:eth1]`")
    return nodes


def _object(file: str, field: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(file, None, None, field[:60], "expected an object, as containerlab writes it")
    return value
