"""Paths of the repository in the documentation exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "crates" / "README.md")
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
