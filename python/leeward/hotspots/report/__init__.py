"""Presentation of an analysis of hotspots: tables on the terminal, and one page with pictures."""

from leeward.hotspots.report.page import write_page
from leeward.hotspots.report.rows import answer, heading, sections
from leeward.hotspots.report.section import Section

__all__ = ["Section", "answer", "heading", "sections", "write_page"]
