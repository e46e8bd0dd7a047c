"""Help, manual pages and completion of all commands, from one description of each."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from leeward import cli
from leeward.cli import manual
from leeward.cli.completion import VARIABLE
from leeward.cli.help import Group, examples

Run = Callable[..., subprocess.CompletedProcess[str]]
NARROW, WIDE = 60, 80
COMMAND = [sys.executable, "-c", "from leeward_command import main; main()"]


def commands(command: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """Yields the names of each command and group, such as `("place", "tasks")`."""
    yield names
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from commands(child, *names, name)


COMMANDS = list(commands(typer.main.get_command(cli.app)))


def words(text: str) -> list[str]:
    """Words of a help text, without signs that continue a command or begin a comment."""
    # A line may end after a hyphen.
    return [word for word in re.sub(r"-\n +", "-", text).split() if word not in ("\\", "#")]


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_help_fits_a_narrow_terminal_without_breaking_words(run: Run, names: tuple[str, ...]) -> None:
    narrow, wide = (
        run(*names, "--help", COLUMNS=str(columns), HOME="/").stdout for columns in (NARROW, WIDE)
    )
    assert sorted(words(narrow)) == sorted(words(wide))
    # An option stays beside its value, even if both are longer than a line.
    long = [line for line in narrow.splitlines() if len(line) > NARROW and len(words(line)) > 2]
    assert not long


def test_every_visible_command_is_in_one_section_of_the_help(run: Run) -> None:
    root: Any = typer.main.get_command(cli.app)
    visible = [name for name, command in root.commands.items() if not command.hidden]
    in_sections = [
        module.__name__.rpartition(".")[2] for _title, modules in cli.SECTIONS for module in modules
    ]
    assert sorted({*in_sections, "reproduce"} & {*visible}) == sorted(visible)
    assert len(in_sections) == len(set(in_sections))
    text = run("--help").stdout
    titles = ["Start here:", *(f"{title}:" for title, _modules in cli.SECTIONS)]
    assert [line for line in text.splitlines() if line in titles] == titles
    assert isinstance(root, Group)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("  leeward a --b c", ["  leeward a --b c"]),
        ("  leeward abc --def ghi", ["  leeward abc \\", "      --def ghi"]),
        ("  leeward a \\\n      --b c", ["  leeward a --b c"]),
        ("  leeward 'a b c d e f g h i'", ["  leeward \\", "      'a b c d e f g h i'"]),
        ("some words of a text", ["some words of a text"]),
        ("some words of a long text", ["some words of a long", "text"]),
        ("a\n\nb", ["a", "", "b"]),
    ],
)
def test_examples_wrap_where_a_shell_continues_them(text: str, lines: list[str]) -> None:
    assert list(examples(text, 20)) == lines


def test_every_command_has_a_manual_page_that_groff_reads(tmp_path: Path) -> None:
    assert manual.write(cli.app, tmp_path) == len(COMMANDS)
    assert {path.stem for path in tmp_path.iterdir()} == {"-".join(("leeward", *names)) for names in COMMANDS}
    page = (tmp_path / "leeward-place-replicas.1").read_text()
    for part in (".SH NAME", ".SH SYNOPSIS", "leeward place replicas", "\\-\\-writer HOST", ".SH EXAMPLES"):
        assert part in page
    if shutil.which("groff"):
        pages = sorted(tmp_path.iterdir())
        groff = subprocess.run(
            ["groff", "-man", "-ww", "-Kutf8", "-Tascii", "-z", *pages],
            capture_output=True,
            text=True,
            check=True,
        )
        assert groff.stderr == ""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("leeward hots", {"hotspots"}),
        ("leeward place ", {"replicas", "tasks"}),
        ("leeward slo curve --out", {"--output"}),
        ("leeward policies -o ", {"table", "json"}),
        ("leeward completion ", {"bash", "zsh", "fish"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_completions(shell: str, line: str, offered: set[str]) -> None:
    *done, last = line.split(" ")
    variables = {
        "bash": {"COMP_WORDS": "\n".join([*done, last]), "COMP_CWORD": str(len(done))},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    result = subprocess.run(
        COMMAND,
        env={**os.environ, **variables[shell], VARIABLE: f"complete_{shell}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not result.stderr
    assert all(f"{word}" in result.stdout for word in offered)


def test_bash_completes_with_the_script(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "leeward.bash"
    script.write_text(run("completion", "bash").stdout)
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "leeward"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    program = f"""
        . {script}
        COMP_WORDS=(leeward place ""); COMP_CWORD=2
        _leeward_completion leeward
        echo "${{COMPREPLY[@]}}"
    """
    shell = subprocess.run(
        ["bash", "-c", program],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shell.stdout.split() == ["replicas", "tasks"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_reads_the_script(run: Run, tmp_path: Path, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).stdout)
    subprocess.run([shell, "-n", script], check=True)


def test_completion_of_another_shell_is_refused(run: Run) -> None:
    result = run("completion", "tcsh")
    assert result.returncode == 2
    assert "expected one of bash, zsh, fish" in result.stderr
