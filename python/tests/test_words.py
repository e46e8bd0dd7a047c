"""Sources and pages avoid the phrases of the list below, and few comments begin with a question word."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("crates", "fuzz", "python", "reproduce", "scripts", "web/src", "web/mock", "web/e2e")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "crates/README.md", "reproduce/README.md")
SUFFIXES = (".rs", ".py", ".pyi", ".ts", ".svelte", ".sh", ".js", ".md", "")
LEFT_OUT = ("node_modules", "target", "__pycache__", "dist", "corpus", "seeds", "artifacts", "snapshots")

UNCLEAR_PHRASES = (
    r"\bwho asks\b",
    r"\bwho asked\b",
    r"\bwhoever\b",
    r"\bthat (is|are) none\b",
    r"\bso many\b",
    r"\bin the mean\b",
    r"\banew\b",
    r"\bto be had\b",
    r"\b(is|are) told\b",
    r"\bcame about\b",
    r"\bthat which\b",
    r"\bIts name\.",
)
# A phrase that a source may hold, by the end of its path.
ALLOWED = {
    "python/tests/test_words.py": UNCLEAR_PHRASES,
    # The text stands in docs/reference/ledger-vectors.json, which other implementations rely on.
    "crates/ledger/tests/it/vectors/scripts.rs": (r"\b(is|are) told\b",),
}

PRONOUN = re.compile(r'^\s*(//[/!]?|#|"""|\*)\s*(What|Who|Whose|Whoever|Whether|Which|How|Where|When|Why)\b')
MOST_PRONOUNS = 100


def sources() -> Iterator[tuple[str, list[str]]]:
    """Yields each source and page by its path from the root, with its lines."""
    paths = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*"))]
    book = sorted((ROOT / "docs").rglob("*.md"))
    for path in [*paths, *book, *(ROOT / page for page in PAGES)]:
        if path.suffix in SUFFIXES and path.is_file() and not set(LEFT_OUT) & set(path.parts):
            yield path.relative_to(ROOT).as_posix(), path.read_text(errors="replace").splitlines()


def test_no_source_contains_an_unclear_phrase() -> None:
    actual = [
        f"{name}:{number}: {phrase}: {line.strip()[:100]}"
        for name, lines in sources()
        for number, line in enumerate(lines, 1)
        for phrase in UNCLEAR_PHRASES
        if re.search(phrase, line) and phrase not in ALLOWED.get(name, ())
    ]
    assert not actual, "\n".join(actual)


def test_few_comments_begin_with_a_pronoun_or_a_question_word() -> None:
    counts = Counter({name: sum(bool(PRONOUN.match(line)) for line in lines) for name, lines in sources()})
    most = "\n".join(f"{count} {name}" for name, count in counts.most_common(10))
    assert counts.total() < MOST_PRONOUNS, f"{counts.total()} lines; the most are in\n{most}"
