"""The README quotes results with their intervals, as the pages of papers have them."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ESTIMATE = re.compile(r"(?P<mean>[+-]?\d+(?:\.\d+)?)(?:x| %)? ± (?P<half>\d+(?:\.\d+)?)(?:x| %)?")


def estimates(text: str) -> Iterator[tuple[str, str]]:
    """Means and halves of intervals in a text, as written."""
    for found in ESTIMATE.finditer(text.replace("\u2212", "-")):
        yield found["mean"], found["half"]


def rounds_to(exact: str, quoted: str) -> bool:
    """True if a number is the other one with fewer digits."""
    digits = len(quoted.partition(".")[2])
    return abs(float(exact) - float(quoted)) <= 0.5 * 10**-digits + 1e-9


def test_each_result_of_the_readme_has_an_interval_that_the_page_of_its_paper_has() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Results compared with the papers")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 6
    for decision, favourable, less_favourable, paper in rows:
        names = re.findall(r"docs/papers/(\w+)\.md", paper)
        assert len(names) == 1, decision
        page = (ROOT / "papers" / names[0] / "results.md").read_text(encoding="utf-8")
        known = set(estimates(page))
        for cell in (favourable, less_favourable):
            quoted = list(estimates(cell))
            assert quoted, f"{decision}: `{cell}` has no interval"
            for mean, half in quoted:
                is_known = any(rounds_to(one, mean) and rounds_to(other, half) for one, other in known)
                assert is_known, f"{decision}: papers/{names[0]}/results.md has no {mean} ± {half}"


def test_numbers_are_quoted_with_fewer_digits_and_not_with_others() -> None:
    assert list(estimates("-41.6 ± 24.7 % and 1.41x ± 0.03x, +45 ± 23 %, 97.1 % ± 3.2 %")) == [
        ("-41.6", "24.7"),
        ("1.41", "0.03"),
        ("+45", "23"),
        ("97.1", "3.2"),
    ]
    assert rounds_to("8.5", "9")
    assert rounds_to("45.4", "45")
    assert not rounds_to("45.6", "45")
    assert not rounds_to("1.41", "1.42")
