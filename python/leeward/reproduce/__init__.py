"""Reproductions: what papers report, measured again on Leeward's simulator, side by side.

>>> from leeward.reproduce import reproduce
>>> rows = reproduce("sinbad", ["12"])
>>> rows[0].figure, round(rows[0].ours, 2)
('12', 2.0)
"""

from leeward.reproduce.perform import PAPERS, reproduce
from leeward.reproduce.rows import Row

__all__ = ["PAPERS", "Row", "reproduce"]
