"""Known traces: content, source, presence and checksums.

Leeward contains none of them. Scenarios name their files `data:SET/FILE`; `leeward data` lists and fetches
them.
"""

from leeward.data.folder import data_folder, folder
from leeward.data.registry import NO_LICENCE, TraceFile, TraceSet, find, hint_fetch, sets

__all__ = [
    "NO_LICENCE",
    "TraceFile",
    "TraceSet",
    "data_folder",
    "find",
    "folder",
    "hint_fetch",
    "sets",
]
