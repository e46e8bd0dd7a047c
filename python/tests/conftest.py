"""What the tests share: reference results, hypothesis profiles, the `leeward` command, a Spark."""

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from leeward.telemetry import Engine

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


@pytest.fixture(scope="session")
def _spark() -> Iterator[Engine]:
    """One Spark for all tests: to start it takes longer than most of them."""
    if shutil.which("java") is None:
        pytest.skip("no java: nothing for Spark to run on")
    pytest.importorskip("pyspark", reason="no pyspark: pip install 'leeward[spark]'")
    engine = Engine.spark()
    # Tables are small: what starts a task takes longer than the task.
    engine.connection.raw_sql("SET spark.sql.shuffle.partitions = 2")
    yield engine
    engine.connection.disconnect()


@pytest.fixture
def spark(_spark: Engine) -> Iterator[Engine]:
    """Spark on this machine."""
    yield _spark
    # Its sockets are left to the collector, which is not to come in another test.
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What Spark and its parts warn of is theirs."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore"))
