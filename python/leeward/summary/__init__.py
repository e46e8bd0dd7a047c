"""Presentation of a summary: one text, and one page to mail."""

from leeward.summary.page import write_page
from leeward.summary.rows import effect_sentence, hot_rows, kind_rows, mattered_rows, move_sentence

__all__ = ["effect_sentence", "hot_rows", "kind_rows", "mattered_rows", "move_sentence", "write_page"]
