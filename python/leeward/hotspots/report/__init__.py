"""Presentation of an analysis of hotspots: tables on the terminal, and one page with pictures."""

from leeward.hotspots.report.page import write_page
from leeward.hotspots.report.rows import heading, sections
from leeward.hotspots.report.section import Section

__all__ = ["Section", "heading", "sections", "write_page"]
