"""The stored decision about a block.

The NameNode chooses the hosts of a block before the block has a name. A decision has the path that the file
had then: `hdfs dfs -put` writes `x._COPYING_` and renames it, and jobs write below `_temporary`. So decisions
are found by the hosts of the block, and paths decide among several.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.hdfs.blocks import Block

_COPYING = "._COPYING_"
"""End of the name of a file that `hdfs dfs -put` still writes."""


@dataclass(frozen=True)
class Match:
    """The decision that gave a block its hosts.

    Attributes:
        decision: The decision.
        note: Reason for which it may be that about another block; None if it cannot be.
    """

    decision: dict[str, Any]
    note: str | None


def match(block: Block, decisions: Iterable[dict[str, Any]]) -> Match | None:
    """The latest decision with the hosts of a block, of its file if there is one.

    A decision about further copies has the earlier ones in `existing`, and all hosts count.

    Args:
        block: The block.
        decisions: Stored decisions, the latest first.
    """
    found = [one for one in decisions if one["hosts"] and _hosts(one) == set(block.hosts)]
    ranked = sorted(found, key=lambda one: _distance(str(one.get("path", "")), block.path))
    if not ranked:
        return None
    decision = ranked[0]
    path = str(decision.get("path", ""))
    others = sum(
        _distance(str(one.get("path", "")), block.path) == _distance(path, block.path) for one in found
    )
    notes = []
    if path != block.path:
        notes.append(
            f"the file was {path or 'without a path'} at the time of the decision, or this is another file"
        )
    if others > 1:
        notes.append(f"{others} such decisions have these hosts, and this is the latest")
    return Match(decision, "; ".join(notes) or None)


def _hosts(decision: Mapping[str, Any]) -> set[str]:
    return {*decision["hosts"], *decision.get("existing", ())}


def _distance(path: str, other: str) -> int:
    """0 for one path, 1 for one name in two folders, 2 for two names."""
    name = path.removesuffix(_COPYING)
    if path == other:
        return 0
    return 1 if name.rpartition("/")[2] == other.rpartition("/")[2] else 2
