"""HDFS: the state of a NameNode and of the Leeward policy in it, beside the state of the controller.

`NameNode` reads both over HTTP, from the servlet `/jmx` that every NameNode has. `check` compares them with a
controller, for `leeward hdfs check`.
"""

from leeward.hdfs.blocks import Block
from leeward.hdfs.checks import Check, State, check
from leeward.hdfs.decisions import Match, match
from leeward.hdfs.differences import Differences, differences
from leeward.hdfs.namenode import DataNode, NameNode, NameNodeState
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
    "State",
    "check",
    "differences",
    "match",
]
