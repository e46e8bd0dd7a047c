"""Slurm's `topology.yaml`: several named topologies, of which the default one counts.

https://slurm.schedmd.com/topology.yaml.html
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from leeward.errors import InputError
from leeward.importers.topology import Topology

_WORDS = {"switch": "switchname", "children": "switches", "nodes": "nodes", "block": "blockname"}
"""Fields, and the words of `topology.conf` with the same meaning."""
_MOST_DEPTH = 20
"""Greatest depth of the file."""


def is_yaml(text: str) -> bool:
    """True for a text of `topology.yaml`: it begins as a list."""
    lines = (line.split("#", 1)[0].rstrip() for line in text.splitlines())
    first = next((line for line in lines if line and line != "---" and not line.startswith("%")), "")
    return re.match(r"- *\w+:|-$", first) is not None


def yaml_lines(topology: Topology, file: str, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines and words of the default topology, as `topology.conf` would have them.

    Raises:
        InputError: The file is not of this form, or its default topology is neither a tree nor of blocks.
    """
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_DEPTH:
                raise InputError.about(file, "nested too deeply for a topology")
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise InputError(file, line, column, None, f"not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError.about(file, f"not valid YAML: {str(error)[:100]}") from None
    found = [(_fields(file, node), node) for node in _items(file, root, "a list of topologies")]
    if not found:
        raise InputError.about(file, "no topology; expected `- topology: NAME` with `tree:` or `block:`")
    default = next((one for one in found if _text(one[0].get("cluster_default")) == "true"), found[0])
    for fields, node in found:
        if fields is not default[0]:
            name = _text(fields.get("topology")) or f"line {node.start_mark.line + 1}"
            topology.left_out.count("other-topology", 1, name[:60])
    yield from _default(topology, file, *default)


def _default(
    topology: Topology, file: str, fields: dict[str, Any], node: Any
) -> Iterator[tuple[int, dict[str, str]]]:
    kind = next((kind for kind in ("tree", "block") if kind in fields), None)
    if kind is None:
        name, there = _text(fields.get("topology")) or "", ", ".join(fields)
        message = f"`{name[:60]}`: expected `tree:` or `block:`, which have racks; there are: {there[:80]}"
        raise InputError(file, node.start_mark.line + 1, None, "topology", message)
    inside = _fields(file, fields[kind])
    if kind == "block" and "block_sizes" in inside:
        topology.left_out.count("block-sizes", 1)
    items = "switches" if kind == "tree" else "blocks"
    if items not in inside:
        raise InputError(file, fields[kind].start_mark.line + 1, None, kind, f"expected `{items}:`")
    for item in _items(file, inside[items], f"a list of {items}"):
        line, words = item.start_mark.line + 1, {}
        for key, value in _fields(file, item).items():
            if key not in _WORDS:
                raise InputError(
                    file, line, None, key[:60], f"not known; expected one of {', '.join(_WORDS)}"
                )
            words[_WORDS[key]] = _text(value) or ""
        if not words.keys() & {"switchname", "blockname"}:
            raise InputError(file, line, None, items, "expected `switch:` or `block:`, a name")
        yield line, words


def _items(file: str, node: Any, expected: str) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        line = node.start_mark.line + 1 if node is not None else None
        raise InputError(file, line, None, None, f"expected {expected}")
    return list(node.value)


def _fields(file: str, node: Any) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise InputError(file, node.start_mark.line + 1, None, None, "expected fields with values")
    return {str(key.value): value for key, value in node.value}


def _text(node: Any) -> str | None:
    """A text, or a list of texts joined by commas."""
    if isinstance(node, yaml.SequenceNode):
        return ",".join(str(one.value) for one in node.value if isinstance(one, yaml.ScalarNode))
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None
