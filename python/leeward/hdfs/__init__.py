"""HDFS: the state of a NameNode and of the Leeward policy in it, beside the state of the controller.

`NameNode` reads both over HTTP, from the servlet `/jmx` that every NameNode has, and `SavedNameNode` from a
file. `check` compares them with a controller, for `leeward hdfs check`.
"""

from leeward.hdfs.blocks import Block
from leeward.hdfs.checks import Check, State, check, check_alone
from leeward.hdfs.decisions import Match, match
from leeward.hdfs.differences import Differences, differences
from leeward.hdfs.namenode import DataNode, NameNode, NameNodeState, SavedNameNode
from leeward.hdfs.policy import PolicyState

__all__ = [
    "Block",
    "Check",
    "DataNode",
    "Differences",
    "Match",
    "NameNode",
    "NameNodeState",
    "PolicyState",
    "SavedNameNode",
    "State",
    "check",
    "check_alone",
    "differences",
    "match",
]
