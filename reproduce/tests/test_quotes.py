"""The README quotes results with their intervals, as the pages of papers have them."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = r"(?:x| %)?"
NUMBER = r"[+-]?\d+(?:\.\d+)?"
ESTIMATE = re.compile(
    rf"(?P<mean>{NUMBER}){UNIT} "
    rf"(?:± (?P<half>{NUMBER})|\((?P<low>{NUMBER}){UNIT} to (?P<high>{NUMBER}){UNIT}\))"
)
PAGES = ("results.md", "real.md")
"""Pages of a paper's folder that the README may quote."""


def estimates(text: str) -> Iterator[tuple[str, ...]]:
    """Estimates in a text, as written: a mean and the half of its interval, or a mean and both ends."""
    for found in ESTIMATE.finditer(text.replace("\u2212", "-")):
        yield tuple(part for part in found.groups() if part is not None)


def rounds_to(exact: str, quoted: str) -> bool:
    """True if a number is the other one with fewer digits."""
    digits = len(quoted.partition(".")[2])
    return abs(float(exact) - float(quoted)) <= 0.5 * 0.1**digits + 1e-9


def is_quoted_from(known: tuple[str, ...], quoted: tuple[str, ...]) -> bool:
    """True if a quoted estimate is the known one with fewer digits."""
    return len(known) == len(quoted) and all(map(rounds_to, known, quoted))


def test_each_result_of_the_readme_has_an_interval_that_a_page_of_its_paper_has() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Results compared with the papers")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 6
    for decision, favourable, less_favourable, paper in rows:
        names = re.findall(r"docs/papers/(\w+)\.md", paper)
        assert len(names) == 1, decision
        pages = [ROOT / "papers" / names[0] / page for page in PAGES]
        known = {
            estimate
            for page in pages
            if page.exists()
            for estimate in estimates(page.read_text(encoding="utf-8"))
        }
        for cell in (favourable, less_favourable):
            quoted = list(estimates(cell))
            assert quoted, f"{decision}: `{cell}` has no interval"
            for estimate in quoted:
                is_known = any(is_quoted_from(one, estimate) for one in known)
                assert is_known, f"{decision}: no page of papers/{names[0]} has {estimate}"


def test_numbers_are_quoted_with_fewer_digits_and_not_with_others() -> None:
    assert list(estimates("-41.6 ± 24.7 % and 1.41x ± 0.03x, +45 ± 23 %, 97.1 % ± 3.2 %")) == [
        ("-41.6", "24.7"),
        ("1.41", "0.03"),
        ("+45", "23"),
        ("97.1", "3.2"),
    ]
    assert (
        list(estimates("1.21x (1.09x to 1.35x) and 1.21x (1.09 to 1.35)")) == [("1.21", "1.09", "1.35")] * 2
    )
    assert rounds_to("8.5", "9")
    assert rounds_to("45.4", "45")
    assert not rounds_to("45.6", "45")
    assert not rounds_to("1.41", "1.42")
    assert is_quoted_from(("45.4", "22.8"), ("45", "23"))
    assert not is_quoted_from(("1.21", "1.09", "1.35"), ("1.21", "0.14"))
