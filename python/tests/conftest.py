"""What the tests share: reference results, hypothesis profiles, the `leeward` command."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("test", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=5000)
settings.load_profile("test")

# What a shell starts in the background ignores interrupts, and so would every command that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of reference results."""
    if "LEEWARD_SHARED" not in os.environ:
        pytest.skip("LEEWARD_SHARED is not set: no reference results to compare with")
    return Path(os.environ["LEEWARD_SHARED"]) / "golden"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `leeward` with arguments in an empty folder, its output captured."""
    command = Path(sys.executable).with_name("leeward")
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "80"}

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *arguments],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=environment | variables,
            text=True,
        )

    return run
