"""Crates stay small. A manifest disables the tests or doctests of a library exactly if it has none.

Cargo then builds less.
"""

import re
import tomllib
from pathlib import Path

import pytest

CRATES = sorted(path.parent for path in (Path(__file__).resolve().parents[2] / "crates").glob("*/Cargo.toml"))
UNIT_TEST = re.compile(r"^\s*#\[test\]|^\s*proptest! \{", re.MULTILINE)
FENCE = re.compile(r"//[/!] ```([a-z_,]*)")
# Most lines of a crate's sources. A crate with more lines has more than one concern, and takes long to build.
MOST_LINES = 10_000
NOT_RUN = ("text", "ignore", "json", "yaml", "toml", "sh", "console")


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_manifests_disable_exactly_the_missing_tests_and_doctests(crate: Path) -> None:
    library = tomllib.loads((crate / "Cargo.toml").read_text()).get("lib", {})
    sources = [path.read_text() for path in sorted((crate / "src").rglob("*.rs"))]
    has_tests = any(UNIT_TEST.search(source) for source in sources)
    # Every second fence closes a block.
    has_examples = any(kind not in NOT_RUN for source in sources for kind in FENCE.findall(source)[::2])
    assert library.get("test", True) == has_tests
    assert library.get("doctest", True) == has_examples


def test_no_crate_has_too_many_lines() -> None:
    sources = {crate.name: (crate / "src").rglob("*.rs") for crate in CRATES}
    lines = {name: sum(path.read_text().count("\n") for path in paths) for name, paths in sources.items()}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
