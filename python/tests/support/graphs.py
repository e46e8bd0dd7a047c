"""Graphs with the methods of those of networkx."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Drawn:
    """A graph of named nodes."""

    directed: bool
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    links: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def is_directed(self) -> bool:
        return self.directed

    def nodes(self, data: bool = False) -> Iterable[tuple[Any, Mapping[str, Any]]]:
        assert data
        return list(self.attributes.items())

    def edges(self, data: bool = False) -> Iterable[tuple[Any, Any, Mapping[str, Any]]]:
        assert data
        return list(self.links)


def drawn(links: Iterable[tuple[str, str, Any]], directed: bool, field_name: str, **nodes: Any) -> Drawn:
    """A graph of links, each with a value of one field; `nodes` have attributes."""
    graph = Drawn(directed)
    for one, other, value in links:
        for name in (one, other):
            graph.attributes.setdefault(name, nodes.get(name, {}))
        graph.links.append((one, other, {field_name: value}))
    return graph
