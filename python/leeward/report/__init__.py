"""Presentation of a simulation: one table, and one page with pictures."""

from leeward.report.intervals import interval_rows
from leeward.report.page import write_page
from leeward.report.rows import Row, comparison_rows

__all__ = ["Row", "comparison_rows", "interval_rows", "write_page"]
