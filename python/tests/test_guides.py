"""Self-contained command lines of the guides run as printed, and print the output that the page shows."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import split
from typing import NamedTuple

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

REPOSITORY = Path(__file__).parents[2]
GUIDES = REPOSITORY / "docs" / "guides"
NOT_RUN = (
    # These commands start or query a service, or measure other hosts, and have tests of their own.
    *("leeward serve", "leeward agent", "leeward probe", "leeward explain", "leeward top"),
    "leeward data get",
    # The page shows a folder of another machine.
    "device profile",
    # The command makes ten runs of several minutes.
    "--seeds 10",
    "...",
)
CSV = {"place-a-block.md": "loads.csv"}
"""Pages with a CSV file in a block: the first line of such a block cannot name the file."""
REFUSES = ("leeward slo admit", "leeward slo check")
"""Commands whose examples show a refusal, with exit code 1."""
SHELL = set("|&;<>$`*")
"""Characters with a meaning in a shell."""
FILE = re.compile(r"[\w./-]+\.(?:yaml|csv|json|parquet|npy|pcap|gz|conf|txt|tsv)")
OUTPUTS = ("--out", "--write", "--report", "--picture")


class Example(NamedTuple):
    """A command line of a page, and the lines that the page shows below it."""

    command: str
    output: list[str]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def examples(page: Path) -> Iterator[Example]:
    """Command lines of a page; a line that ends in a backslash is joined with the next."""
    for language, text in blocks(page):
        if language != "console":
            continue
        for part in re.split(r"^\$ ", re.sub(r"\s*\\\n\s*", " ", text), flags=re.MULTILINE)[1:]:
            command, *output = part.splitlines()
            yield Example(re.split(r"\s{3,}#", command)[0].strip(), output)


def write_files(page: Path, folder: Path) -> None:
    """Writes the files that a page shows: YAML blocks whose first line is a comment with the file's name."""
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    for language, text in blocks(page):
        first = text.partition("\n")[0]
        if language == "yaml" and re.fullmatch(r"# [\w-]+\.yaml", first):
            (folder / first[2:]).write_text(text)
        elif page.name in CSV and first == "link,load_bps":
            (folder / CSV[page.name]).write_text(text)


def runs_here(words: list[str], folder: Path) -> bool:
    """True if all files that a command reads exist."""
    read = [word for before, word in zip(["", *words], words, strict=False) if before not in OUTPUTS]
    files = [file for word in read if "://" not in word for file in FILE.findall(word)]
    return not any("data:" in word for word in read) and all((folder / file).exists() for file in files)


def collapse_spaces(line: str) -> str:
    return " ".join(line.split())


PAGES = sorted(GUIDES.glob("*.md"))
SELF_CONTAINED = 15
"""Minimum number of command lines that run here. Fewer would mean that `runs_here` rejects too many."""
_executed: list[str] = []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_command_lines_of_a_guide_run_as_printed_and_print_what_it_shows(
    run: Run, tmp_path: Path, page: Path
) -> None:
    write_files(page, tmp_path)
    for command, output in examples(page):
        if not command.startswith("leeward ") or any(words in command for words in NOT_RUN):
            continue
        if SHELL & set(command):
            continue
        words = split(command)[1:]
        if not runs_here(words, tmp_path):
            continue
        _executed.append(command)
        result = run(*words, HOME=str(tmp_path))
        refused = command.startswith(REFUSES) and result.returncode == 1
        assert result.returncode == 0 or refused, f"{command}\n{result.stderr}"
        printed = {collapse_spaces(line) for line in (result.stdout + result.stderr).splitlines()}
        for line in output:
            if line.strip() and "..." not in line:
                assert collapse_spaces(line) in printed, (
                    f"{command}\nthe page shows: {line}\n{result.stdout}{result.stderr}"
                )


def test_many_command_lines_of_the_guides_run_here(request: pytest.FixtureRequest) -> None:
    selected = [
        item
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.function is test_command_lines_of_a_guide_run_as_printed_and_print_what_it_shows
    ]
    if len(selected) < len(PAGES):
        pytest.skip("the test above is deselected for some pages")
    assert len(_executed) >= SELF_CONTAINED, _executed
