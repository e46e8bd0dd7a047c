"""`leeward kubernetes top|explain|hotspots|check`: the command becomes the program of the kubectl plugin."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leeward.cli.kubernetes.plugin import PROGRAM, SUMMARIES
from support.parts import lack

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-c", "from leeward_command import main; main()", "kubernetes"]
GO = Path(__file__).parents[2] / "integrations/kubernetes"


def leeward(*arguments: str, path: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, since it becomes another program."""
    environment = {**os.environ, "PATH": path} | variables
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env=environment
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program that prints its arguments and its variables, and fails."""
    script = tmp_path / PROGRAM
    script.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "own = {k: v for k, v in os.environ.items() if k.startswith(('LEEWARD_TOKEN', 'LEEWARD_CA'))}\n"
        "print(json.dumps([sys.argv[1:], os.environ['LEEWARD_CONTROLLER'], own]))\nsys.exit(7)\n"
    )
    script.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["top"],
        ["top", "--nodes", "--limit", "50", "-o", "json"],
        ["explain", "pod/web-0", "-n", "shop", "--kubeconfig=file"],
        ["hotspots", "--context", "east"],
        ["check", "--", "--help"],
    ],
    ids=" ".join,
)
def test_the_program_gets_all_arguments_and_its_exit_code_is_that_of_the_command(
    folder: Path, arguments: list[str]
) -> None:
    result = leeward(*arguments, path=str(folder))
    assert (result.returncode, result.stderr) == (7, "")
    given, controller, _ = json.loads(result.stdout)
    assert given == [one for one in arguments if one != "--"]
    assert controller == "http://127.0.0.1:7600"


def test_the_program_gets_the_address_of_the_service_from_the_environment(folder: Path) -> None:
    result = leeward("top", path=str(folder), LEEWARD_CONTROLLER="https://leeward:7600")
    assert json.loads(result.stdout)[1] == "https://leeward:7600"


def test_the_program_gets_the_token_and_the_authority_of_the_environment(folder: Path) -> None:
    variables = {"LEEWARD_TOKEN": "t", "LEEWARD_TOKEN_FILE": "token", "LEEWARD_CA_FILE": "ca.crt"}
    result = leeward("top", path=str(folder), **variables)
    assert json.loads(result.stdout)[2] == variables


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_missing_program_is_an_error_with_advice(run: Run, name: str) -> None:
    result = run("kubernetes", name, PATH="/nonexistent")
    assert (result.returncode, result.stdout) == (2, "")
    problem, hint = result.stderr.splitlines()
    assert problem == "error: kubectl-leeward: no such program on the path"
    assert "make kubernetes-binaries" in hint


def test_the_commands_are_those_of_the_program(tmp_path: Path) -> None:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        lack("no go: https://go.dev/dl has it")
    build = [go, "build", "-o", str(tmp_path / PROGRAM), "./cmd/kubectl-leeward"]
    subprocess.run(build, cwd=GO, check=True, capture_output=True)
    usage = subprocess.run([tmp_path / PROGRAM], capture_output=True, text=True, check=True).stdout
    commands = usage.split("Commands:\n")[1].split("\n\n")[0]
    assert dict(line.split(maxsplit=1) for line in commands.splitlines()) == SUMMARIES
    for name in SUMMARIES:
        result = leeward(name, "--", "--help", path=str(tmp_path))
        assert f"Usage: kubectl leeward {name}" in result.stdout
    result = leeward("top", "--output", "xml", path=str(tmp_path))
    assert (result.returncode, "expected table or json" in result.stderr) == (2, True)
