"""Commands of README, tutorials and guides run as printed, and print what the page shows."""

from pathlib import Path

import pytest

from support.pages import (
    REPOSITORY,
    Command,
    PageError,
    Result,
    command_environment,
    difference,
    read_page,
    run_page,
)

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (
        REPOSITORY / "README.md",
        *(REPOSITORY / "docs" / "tutorials").glob("*.md"),
        *(REPOSITORY / "docs" / "guides").glob("*.md"),
    )
)
LEAST_COMMANDS = 80
"""Commands that run here at least. Fewer would mean that pages skip too many."""
PAGE = """\
```yaml
# a.yaml
x: 1
```

`b.csv`:

```text
link,load
```

```console
$ x=2; cat a.yaml \\
    b.csv   # both
# a.yaml
x: 1
link,load
$ echo 'a
b' $x
a
b 2
```

<!-- exit 3 -->
```console
$ exit_with() { return 3; }; exit_with
```

<!-- not run: another machine -->
```console
$ false
```

```python
assert open("a.yaml").read()
```
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_as_printed_and_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    page = read_page(REPOSITORY / name)
    results = run_page(page, tmp_path, command_environment())
    problems = [
        f"{name}:{command.line}: $ {command.text}\n{problem}"
        for command, result in zip(page.commands, results, strict=False)
        if (problem := difference(command, result))
    ]
    if page.python and results[-1].code != 0:
        problems.append(f"{name}: its Python\n{results[-1].stderr}")
    assert not problems, "\n\n".join(problems)


def test_most_commands_of_the_pages_run() -> None:
    pages = [read_page(REPOSITORY / name) for name in PAGES]
    commands = sum(len(page.commands) for page in pages)
    skipped = sum(len(page.skipped) for page in pages)
    assert commands > 2 * skipped
    assert commands >= LEAST_COMMANDS


@pytest.mark.parametrize(
    ("shown", "result", "problem"),
    [
        (["a", "b"], Result(0, "a\nb\n", "c\n"), None),
        (["a"], Result(0, "a\nb\n", ""), "printed, but not shown:\nb"),
        (["a", "..."], Result(0, "a\nb\n", ""), None),
        (["b", "a", "..."], Result(0, "a\nb\n", ""), "shown, but not printed: a"),
        (["a ... c"], Result(0, "a  b c\n", ""), None),
        (["a ... c"], Result(0, "a  c\n", ""), None),
        (["a ... c"], Result(0, "abc\n", ""), "shown, but not printed: a ... c"),
        (["note"], Result(0, "", "note\n"), None),
        (["x"], Result(1, "x\n", ""), "exit code 1, expected 0"),
        ([], Result(0, "x\n", ""), None),
        (["done after 3 s"], Result(0, "done after 12 s\n", ""), None),
        (["3 of 4 s"], Result(0, "5 of 4 s\n", ""), "printed, but not shown:\n5 of 4 s"),
    ],
)
def test_differences_between_page_and_output(shown: list[str], result: Result, problem: str | None) -> None:
    found = difference(Command("x", shown, 1), result)
    assert found is problem or (found is not None and problem is not None and found.startswith(problem))


def test_a_page_makes_files_and_runs_commands_in_one_shell(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    page = read_page(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    results = run_page(page, folder, command_environment())
    assert [difference(*pair) for pair in zip(page.commands, results, strict=False)] == [None, None, None]
    assert [result.code for result in results] == [0, 0, 3, 0]
    assert [reason for _line, reason in page.skipped] == ["another machine"]


@pytest.mark.parametrize(
    "text", ["<!-- not run: too hard -->\n```console\n$ x\n```\n", "```console\nno command\n```\n"]
)
def test_an_invalid_page_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.raises(PageError):
        read_page(path)
