"""Cells: several controllers, each with its part of a network, which share a spine.

A scenario has equal cells whose hosts write blocks. The copies of some blocks go to other cells, which decide
where. A cell knows the others by digests of their links from the core, which may be old or lost. The same
blocks are also placed with one ledger for the whole network, so the difference is the price of the division.

>>> from leeward import cells
>>> runs = cells.simulate({
...     "cells": 3,
...     "cluster": {
...         "racks": 8, "hosts_per_rack": 4, "pods": 2, "nic": "10Gbps", "oversubscription": 2,
...         "pod_oversubscription": 2,
...     },
...     "rate": "2Gbps",
...     "writes": {"load": 100},
...     "exchange": {"intervals": ["0s", "2s"], "losses": [0, 0.1]},
...     "horizon": "10s",
... })
>>> runs.runs()["decided_by"].to_pylist()
['one-ledger', 'cells', 'cells', 'cells', 'cells']
"""

from leeward._native import CellsRuns, CellsScenario
from leeward.cells.simulation import read, simulate
from leeward.cells.summary import summary
from leeward.cells.tables import TABLES, tables

__all__ = ["TABLES", "CellsRuns", "CellsScenario", "read", "simulate", "summary", "tables"]
