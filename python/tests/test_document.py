"""Pages: they share a skeleton, whose parts show any text unchanged."""

from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.report import document

PARTS: dict[str, Callable[[str], str]] = {
    "title": lambda text: document.document(text, "", [], []),
    "heading": lambda text: document.document("", text, [], []),
    "lead": lambda text: document.document("", "", [text], []),
    "section": document.section,
    "folded": document.details,
    "paragraph": document.paragraph,
    "listing": lambda text: document.listing([text]),
    "words": lambda text: document.words([(text, text)], {text: f"from {text}"}),
    "table": lambda text: document.table([text], [[text]]),
    "pictures": lambda text: document.pictures([(text, "<svg></svg>", text)]),
}


class Read(HTMLParser):
    """A page as a browser parses it: its tags, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.hypothesis
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")))
def test_text_is_escaped_in_every_part_of_a_page(part: Callable[[str], str], text: str) -> None:
    result = Read(part(text))
    assert text in "".join(result.texts)
    assert result.tags == Read(part("plain")).tags


def test_cells_are_aligned_by_column_and_long_ones_wrap() -> None:
    result = document.table(["a", "b", "c"], [["x", "1", "y" * 49]], "<><")
    assert '<th class="text">a</th><th>b</th><th class="text">c</th>' in result
    assert f'<td class="text">x</td><td>1</td><td class="text wide">{"y" * 49}</td>' in result
    assert 'class="text">b' not in document.table(["a", "b"], [])


def test_an_empty_glossary_renders_no_text() -> None:
    assert document.words([]) == ""
