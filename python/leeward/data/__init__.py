"""Traces that Leeward knows: what they are, where they come from, whether they are here and right.

None of them is part of Leeward. Scenarios name their files `data:SET/FILE`; `leeward data` lists and
fetches them.
"""

from leeward.data.folder import folder, found
from leeward.data.registry import NO_LICENCE, TraceFile, TraceSet, advised, find, sets

__all__ = [
    "NO_LICENCE",
    "TraceFile",
    "TraceSet",
    "advised",
    "find",
    "folder",
    "found",
    "sets",
]
