"""Paths of the repository in the documentation exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "crates/README.md")),
)
FOLDERS = ("crates", "python", "reproduce", "scripts", "web", "examples", "docs")
# The root has no such folder: a path that begins here lacks its crate.
WITHIN_A_CRATE = ("tests", "benches")
BUILT = ("docs/book",)
"""Paths that a target of the Makefile creates."""
FENCE = re.compile(r"^\s*(```|~~~)")
SPAN = re.compile(r"`([^`]+)`")


def paths(text: str) -> Iterator[tuple[int, str]]:
    """Yields each path of a page in backticks, outside of fenced blocks, with the number of its line."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= bool(FENCE.match(line))
        for span in () if fenced else SPAN.findall(line):
            for word in span.split():
                path = word.partition("#")[0]
                if path.partition("/")[0] in (*FOLDERS, *WITHIN_A_CRATE) and "/" in path:
                    yield number, path


def exists(path: str) -> bool:
    """True for a file or folder of the repository; `*` stands for any name."""
    return path in BUILT or any(ROOT.glob(path.rstrip("/")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see `crates/x/src/lib.rs` and `make`", ["crates/x/src/lib.rs"]),
        ("run `python3 scripts/a.py --out b`", ["scripts/a.py"]),
        ("`tests/a.rs`, `docs/a.md#part`, `docs`", ["tests/a.rs", "docs/a.md"]),
        ("```\n`crates/none`\n```\n`web/src`", ["web/src"]),
    ],
)
def test_paths_are_found_in_backticks_outside_of_blocks(text: str, expected: list[str]) -> None:
    assert [path for _, path in paths(text)] == expected


def test_every_path_in_the_documentation_exists() -> None:
    missing = [
        f"{page.relative_to(ROOT)}:{number}: {path}"
        for page in PAGES
        for number, path in paths(page.read_text())
        if not exists(path)
    ]
    assert not missing, "\n".join(missing)


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]*)\)")
HEADING = re.compile(r"^#+ +(.*)$")


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub and mdBook make them."""
    found: dict[str, int] = {}
    for _, line in outside_of_blocks(page.read_text()):
        if match := HEADING.match(line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
            found[slug] = found.get(slug, 0) + 1
    return {*found, *(f"{slug}-{at}" for slug, count in found.items() for at in range(1, count))}


def outside_of_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines outside of fenced blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= bool(FENCE.match(line))
        if not fenced:
            yield number, line


def broken_links(page: Path) -> Iterator[str]:
    for number, line in outside_of_blocks(page.read_text()):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            name, _, anchor = target.partition("#")
            other = (page.parent / name).resolve() if name else page
            if not target or "://" in target:
                continue
            if not other.exists() or (anchor and anchor not in anchors(other)):
                yield f"{page.relative_to(ROOT)}:{number}: {target}"


def test_every_link_leads_to_a_page_and_a_heading() -> None:
    broken = [link for page in PAGES for link in broken_links(page)]
    assert not broken, "\n".join(broken)


def test_every_page_is_in_the_table_of_contents() -> None:
    summary = ROOT / "docs" / "SUMMARY.md"
    listed = {(summary.parent / target).resolve() for target in LINK.findall(summary.read_text()) if target}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page != summary}
    assert pages == listed


SPEED = re.compile(
    r"\d[\d,.]* ?(?:million |thousand )?"
    r"(?:events|packets|placements|requests|decisions|samples|reports|flows|rows)(?:/s| (?:a|per) second)"
)
"""A rate of Leeward itself. `speed.md` has them, from the file that the benchmarks write."""
DURATION = re.compile(
    r"(?<!about )\b(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
    r" (?:us|ms|s|min|seconds?|minutes?|hours?)\b[^.|;]*\bcores?\b"
)
"""An exact time of a command. A page may say `about ten minutes on two cores`."""
GENERATED = re.compile(r"<!-- speed [a-z]+ -->.*?<!-- end -->", re.DOTALL)


def exact_figures(text: str) -> list[str]:
    """Rates and times of Leeward itself in a page, apart from fenced blocks and generated tables."""
    text = " ".join(line for _, line in outside_of_blocks(GENERATED.sub("", text)))
    return [match[0] for pattern in (SPEED, DURATION) for match in pattern.finditer(text)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It makes 12,000 placements per\nsecond.", 1),
        ("It simulates 1.4 million events/s.", 1),
        ("The figures take 9 min 18 s\non two cores.", 1),
        ("The figures take about nine minutes on two cores.", 0),
        ("A report comes every 10 s. A host has two cores.", 0),
        ("<!-- speed service -->\n| HTTP | 12,000 placements per second |\n<!-- end -->", 0),
    ],
)
def test_exact_figures_are_found_outside_of_generated_tables(text: str, count: int) -> None:
    assert len(exact_figures(text)) == count


def test_rates_and_times_of_leeward_stand_in_generated_tables_only() -> None:
    found = [
        f"{page.relative_to(ROOT)}: {figure}" for page in PAGES for figure in exact_figures(page.read_text())
    ]
    assert not found, "\n".join(found)
