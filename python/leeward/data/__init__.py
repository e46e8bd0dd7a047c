"""Known traces: content, source, presence and checksums.

Leeward contains none of them. Scenarios name their files `data:SET/FILE`; `leeward data` lists and fetches
them.
"""

from leeward.data.folder import data_folder, folder
from leeward.data.registry import NO_LICENCE, TraceFile, TraceSet, advised, find, sets

__all__ = [
    "NO_LICENCE",
    "TraceFile",
    "TraceSet",
    "advised",
    "data_folder",
    "find",
    "folder",
    "sets",
]
