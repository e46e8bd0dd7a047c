"""Links that an operation crosses. Its latency is compared with the utilization of these links.

A rule lists the links of one kind of operation by ends and sides: `src:uplink,dst:downlink`. `src` is the
source of the bytes and `dst` their destination: for a read, `src` is the server; for a write, `src` is the
client. Table 4 and section 4.3 of Hotspots give the rules for its operations, and the user can add rules. A
latency that names its links needs no rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from leeward.errors import InputError

OPERATIONS = {
    "chunk-read": "dst:downlink,src:uplink?",
    "shuffle-write": "src:uplink,dst:downlink",
    "shuffle-read": "src:uplink,dst:downlink",
    "file-read": "src:uplink",
    "file-write": "dst:downlink",
    "query": "dst:downlink,dst:uplink,src:uplink?",
}
"""Table 4 of Hotspots has the first three. For file reads and writes the server's side counts (section 4.3).
The paper has no rule for a query; here both links of its workers (`dst`) count, and both links of its servers
(`src`) if they are known."""
SIDES = {
    "uplink": ("rack", "up"),
    "downlink": ("rack", "down"),
    "egress": ("host", "up"),
    "ingress": ("host", "down"),
}
"""Sides of a place: the owner of a link, and its direction."""
ENDS = ("src", "dst")


@dataclass(frozen=True)
class Crossing:
    """One part of a rule.

    Attributes:
        end: `src` or `dst`.
        side: One of `SIDES`.
        optional: True if an operation without this end skips this part.
    """

    end: str
    side: str
    optional: bool


Rules = Mapping[str, Sequence[Crossing]]
"""Rules of each kind of operation, by its name."""


def rules(overrides: Mapping[str, str] | None = None) -> dict[str, tuple[Crossing, ...]]:
    """Rules of `OPERATIONS`, with added and replaced rules.

    Args:
        overrides: Lists such as `src:uplink,dst:downlink?` by names of operations. A `?` marks an optional
            part, left out for a row without that end.

    Raises:
        InputError: A rule is invalid; the error names the argument `operations`.
    """
    return {name: _rule(name, text) for name, text in (OPERATIONS | dict(overrides or {})).items()}


def _rule(name: str, text: str) -> tuple[Crossing, ...]:
    result = []
    for part in text.split(","):
        end, _, side = part.strip().partition(":")
        optional = side.endswith("?")
        if end not in ENDS or side.removesuffix("?") not in SIDES:
            expected = f"expected one of {', '.join(ENDS)}, a colon, and one of {', '.join(SIDES)}"
            raise InputError("operations", None, None, name, f"`{part.strip()}`: {expected}")
        result.append(Crossing(end, side.removesuffix("?"), optional))
    return tuple(result)


class NoLinksError(ValueError):
    """An operation without links, with the reason under which it is counted."""

    def __init__(self, reason: str, why: str) -> None:
        """Takes the word for the reason, and the facts about this operation."""
        super().__init__(why)
        self.reason = reason


class Places:
    """Hosts, racks and links of a cluster by name."""

    def __init__(self, links: Any) -> None:
        """Takes the links of `Cluster.links()`."""
        self._link_by_name: dict[str, int] = {}
        self._rack: dict[str, str | None] = {}
        self._at: dict[tuple[str, str, str], int] = {}
        self.capacity: dict[int, int] = {}
        for row in links.to_pylist():
            self._link_by_name[row["name"]] = row["link"]
            self.capacity[row["link"]] = row["capacity_bps"]
            if row["host"] is not None:
                self._rack[row["host"]] = row["rack"]
                self._at["host", row["host"], row["direction"]] = row["link"]
            elif row["rack"] is not None:
                self._at["rack", row["rack"], row["direction"]] = row["link"]
            if row["rack"] is not None:
                self._rack.setdefault(row["rack"], row["rack"])

    def by_name(self, links: Sequence[str]) -> tuple[int, ...]:
        """Links by their names.

        Raises:
            NoLinksError: No link has that name.
        """
        for name in links:
            if name not in self._link_by_name:
                raise NoLinksError(
                    "unknown-link", f"`{name}`: the cluster has no such link{self._near(name)}"
                )
        return tuple(sorted({self._link_by_name[name] for name in links}))

    def known(self, name: str) -> str:
        """The place that a machine calls by this name: the name, or its part before the first dot.

        Machines report their names with or without a domain, in upper or lower case. An unknown name is
        unchanged.
        """
        short = name.partition(".")[0]
        candidates = (name, short, name.lower(), short.lower())
        return next((one for one in candidates if one in self._rack), name)

    def racks_of(self, names: Sequence[str]) -> tuple[str, ...]:
        """Racks of hosts, each once and in order; unknown names are unchanged."""
        return tuple(sorted({self._rack.get(name) or name for name in names}))

    def links_crossed(self, rule: Sequence[Crossing], ends: Mapping[str, Sequence[str]]) -> tuple[int, ...]:
        """Links that an operation crosses.

        Bytes between two hosts of a rack do not cross its uplink, and bytes within a host do not cross its
        interface: the link of a place does not count if the other end is known and inside the place.

        Args:
            rule: Rule of its kind.
            ends: Hosts or racks at `src` and `dst`, if known.

        Raises:
            NoLinksError: A place is not of this cluster, a required end is unknown, or no link is crossed.
        """
        for name in (name for end in ENDS for name in ends[end]):
            if name not in self._rack:
                raise NoLinksError(
                    "unknown-place", f"`{name}`: the cluster has no such host or rack{self._near(name)}"
                )
        links = set()
        for part in rule:
            if not ends[part.end] and not part.optional:
                raise NoLinksError("no-place", f"`{part.end}` is not stated")
            other = ends["dst" if part.end == "src" else "src"]
            kind, direction = SIDES[part.side]
            beyond = {self._within(kind, name) for name in other}
            for name in ends[part.end]:
                place = self._within(kind, name)
                link = None if place is None else self._at.get((kind, place, direction))
                if link is None:
                    raise NoLinksError("no-link", f"`{name}` has no {part.side}")
                if beyond != {place}:
                    links.add(link)
        if not links:
            raise NoLinksError("within", f"`{' '.join(ends['src'])}` and `{' '.join(ends['dst'])}`")
        return tuple(sorted(links))

    def _within(self, kind: str, name: str) -> str | None:
        """Rack or host of a place; None if a rule needs a host and the place is a rack."""
        if kind == "rack":
            return self._rack[name]
        return name if ("host", name, "up") in self._at or ("host", name, "down") in self._at else None

    def _near(self, name: str) -> str:
        near = get_close_matches(name, [*self._rack, *self._link_by_name], 3, 0.5)
        return f"; nearest: {', '.join(near)}" if near else ""
