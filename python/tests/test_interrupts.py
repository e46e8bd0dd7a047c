"""An interrupt (Ctrl-C) ends a command at any moment: code 130, no traceback, no half-written file."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MARK_ENTRY = """
import sys

def mark(frame, event, argument):
    if frame.f_code.co_name == "_run":
        sys.setprofile(None)
        os.write(1, b".")

sys.setprofile(mark)
"""
"""Program that prints a byte when the entry point begins."""
LOAD, START = "import os; from leeward_command import main; ", "main()"
FABRIC = (str(EXAMPLES / "telemetry/fabric.parquet"), "--cluster", str(EXAMPLES / "clusters/fabric.yaml"))
VOLUMES = (str(EXAMPLES / "slo/volumes.yaml"), "--cluster", str(EXAMPLES / "slo/servers.yaml"))
SCENARIO = str(EXAMPLES / "scenarios/first.yaml")
COMMANDS: dict[str, tuple[str, ...]] = {
    "help": ("--help",),
    "hotspots": ("hotspots", *FABRIC, "--out", "result", "--report", "page.html"),
    "simulate": ("simulate", SCENARIO, "--out", "result"),
    "threads": ("simulate", SCENARIO, "--seeds", "3", "--out", "result"),
    "processes": ("simulate", SCENARIO, "--seeds", "3", "--backend", "loky", "--out", "result"),
    "trial": ("trial", "--days", "1", "--out", "page.html"),
    "pack": ("slo", "pack", *VOLUMES, "--out", "packed.yaml"),
    "reproduce": ("reproduce", "sinbad", "--figure", "8", "--seeds", "2", "--horizon", "2min"),
}
MOMENTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.2)
"""Seconds from the start of the entry point to the interrupt."""
PROBLEMS = ("Traceback", "Error", "Warning", "Exception", "leaked")


def interrupt(arguments: tuple[str, ...], folder: Path, after: float) -> tuple[int, str]:
    """Runs a command in a folder, and interrupts it and its children. Returns exit code and stderr.

    Args:
        arguments: Arguments of the command.
        folder: Current folder.
        after: Seconds from the start of the entry point to the interrupt.
    """
    # Before the entry point, the interpreter itself would print a traceback.
    program = f"{MARK_ENTRY}{LOAD}{START}"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    time.sleep(after)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.decode()


@pytest.mark.parametrize("after", MOMENTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_ends_a_command_quietly(tmp_path: Path, command: str, after: float) -> None:
    code, errors = interrupt(COMMANDS[command], tmp_path, after)
    assert code in (0, 130)
    assert not [line for line in errors.splitlines() if any(word in line for word in PROBLEMS)], errors
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if path.name.startswith(".") or path.parent.name.startswith(".")]
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".parquet":
            assert path.read_bytes()[-4:] == b"PAR1"
        elif path.suffix == ".html":
            assert path.read_text().rstrip().endswith("</html>")


def run_as_command(source: str, folder: Path) -> tuple[int, str]:
    """Runs the entry point with a source as its module `leeward.cli`. Returns exit code and stderr."""
    modules = "import atexit, os, signal, sys, threading, time, types, warnings\n"
    program = (
        "import sys, types; cli = types.ModuleType('leeward.cli');"
        f" exec({modules + source!r}, cli.__dict__); sys.modules['leeward.cli'] = cli; {LOAD}{START}"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return result.returncode, result.stderr


IN_COMMAND = {
    "as another exception": """
def main():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("numpy") from None
""",
    "lost in a destructor": """
class Lost:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def main():
    Lost()
    time.sleep(60)
""",
    "with a destructor of an unfinished object": """
class Unfinished:
    def __init__(self):
        signal.raise_signal(signal.SIGINT)
        self.state = 0

    def __del__(self):
        self.state

def main():
    Unfinished()
""",
    "as another exit code": """
def main():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        sys.exit(1)
""",
    "with warnings of libraries": """
def main():
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        warnings.warn("2 tasks were cancelled")
""",
    "and again while threads end": """
def main():
    threading.Thread(target=time.sleep, args=[60]).start()
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    signal.raise_signal(signal.SIGINT)
""",
}


@pytest.mark.parametrize("source", IN_COMMAND.values(), ids=IN_COMMAND)
def test_no_library_changes_the_outcome_of_an_interrupt(tmp_path: Path, source: str) -> None:
    assert run_as_command(source, tmp_path) == (130, "")


def test_an_interrupt_after_the_command_keeps_its_exit_code(tmp_path: Path) -> None:
    source = """
def main():
    atexit.register(signal.raise_signal, signal.SIGINT)
    sys.exit(2)
"""
    assert run_as_command(source, tmp_path) == (2, "")


def test_a_command_whose_parent_ignores_interrupts_goes_on(tmp_path: Path) -> None:
    # A child inherits this only as the action of its parent at its start.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, errors = interrupt(("policies",), tmp_path, 0.05)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, errors) == (0, "")
