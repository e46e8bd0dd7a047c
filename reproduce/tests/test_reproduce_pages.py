"""Pages of results: their beginning, their reasons, and the anchors that pages of the book include."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward_reproduce import perform

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "papers"
NOT_RENEWED = {"choreo", "etalon", "hotspots", "sinbad", "slo"}
"""Papers whose `results.md` is of an earlier version: it has no summary, and lacks figures and variants."""
PAGES = {
    "results.md": perform.PAPERS,
    "lab.md": perform.LABS,
    "real.md": perform.REALS,
    "kubernetes.md": perform.KUBERNETES,
}
"""Pages of a paper's folder, and the modules that make them."""


def included(paper: str, page: str) -> list[str]:
    """Anchors of a page of results that the book's page of the paper includes."""
    text = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    return re.findall(rf"#include \.\./\.\./papers/{paper}/{re.escape(page)}:([\w.+-]+)\}}", text)


def written(page: str, paper: str) -> set[str]:
    """Anchors that `leeward reproduce` writes into a page."""
    if paper not in PAGES[page]:
        return set()
    names = PAGES[page][paper].FIGURES
    return {f"figure_{name}".replace(".", "_") for name in names} | {"summary"}


@pytest.mark.parametrize("paper", perform.PAPERS)
def test_the_book_includes_anchors_that_a_reproduction_writes(paper: str) -> None:
    for page in PAGES:
        assert set(included(paper, page)) <= written(page, paper), page
    assert set(included(paper, "results.md")) == written("results.md", paper)
    if paper not in NOT_RENEWED:
        text = (PAPERS / paper / "results.md").read_text(encoding="utf-8")
        anchors = set(re.findall(r"<!-- ANCHOR: ([\w.+-]+) -->", text))
        assert anchors == written("results.md", paper)


@pytest.mark.parametrize("paper", perform.PAPERS)
def test_main_results_are_rows_of_the_page_of_the_paper(paper: str) -> None:
    module = perform.PAPERS[paper]
    assert [one.name for one in module.MAIN][:1] == ["main"]
    assert {one.name for one in module.MAIN} == {"main", "less favourable"}
    known = {(cells[0], cells[1]) for cells in rows_of_page((PAPERS / paper / "results.md").read_text())}
    for one in module.MAIN:
        assert one.figure in module.FIGURES
        assert (one.figure, one.quantity) in known


@pytest.mark.parametrize("paper", perform.PAPERS)
def test_pages_begin_with_their_counts_and_each_row_that_is_far_has_a_reason(paper: str) -> None:
    page = (PAPERS / paper / "results.md").read_text(encoding="utf-8")
    found = re.search(r"\*\*(\d+) of (\d+) compared rows hold\*\*", page)
    # A page that was renewed leaves the list, so that it is checked from then on.
    assert (found is None) == (paper in NOT_RENEWED)
    if found is None:
        return
    assert page.index("ANCHOR: summary") < page.index("\n## ")
    compared, far = 0, 0
    for section in page.split("\n## ")[1:]:
        notes = dict(re.findall(r"^(\d+)\. (.*)$", section, re.MULTILINE))
        for cells in rows_of_page(section):
            deviation = cells[4]
            compared += bool(deviation)
            if is_far(deviation):
                far += 1
                assert re.search(r"\((tested: .+|untested)\)", notes.get(cells[5], "")), cells
    assert compared == int(found[2])
    assert far <= compared - int(found[1])


def is_far(deviation: str) -> bool:
    """True for a deviation of a row that does not hold."""
    number = re.match(r"([+-]?\d+) (%|points?)", deviation)
    if number is None:
        return False
    # Numbers are rounded here, so one at the limit may be of a row that does not hold.
    most = 15 if number[2] == "%" else 5
    return abs(int(number[1])) > most or deviation.endswith("opposite sign")


@pytest.mark.parametrize(
    ("deviation", "expected"),
    [
        ("+16 %", True),
        ("-15 %", False),
        ("within", False),
        ("0 points", False),
        ("6 points weaker", True),
        ("1 point, opposite sign", True),
        ("", False),
    ],
)
def test_a_deviation_tells_whether_its_row_holds(deviation: str, expected: bool) -> None:
    assert is_far(deviation) is expected


def rows_of_page(text: str) -> Iterator[list[str]]:
    """Cells of the rows of tables with the columns of results."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 6 and cells[0] not in ("figure", "---", "result"):
            yield cells
