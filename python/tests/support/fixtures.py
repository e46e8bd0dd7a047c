"""Fixtures of all tests: reference results, hypothesis profiles, the `leeward` command, Prometheus, Spark."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pytest
from hypothesis import settings

from leeward import cli
from leeward.sweep import cell
from leeward.telemetry import Engine
from support.parts import lack, require
from support.prometheus import Answer, servers

# Tests with slow examples divide this number, so fuzzing with a greater number has more of them too.
settings.register_profile("test", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=5000)
settings.load_profile("test")

# A process that a shell starts in the background ignores interrupts, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

Run = Callable[..., subprocess.CompletedProcess[str]]
Serve = Callable[..., AbstractContextManager[str]]
Promtool = Callable[..., subprocess.CompletedProcess[str]]
Backfill = Callable[[Path, Iterable[str]], AbstractContextManager[str]]
StartPrometheus = Callable[[Path, str], AbstractContextManager[str]]


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of reference results."""
    if "LEEWARD_SHARED" not in os.environ:
        pytest.skip("LEEWARD_SHARED is not set: no reference results to compare with")
    return Path(os.environ["LEEWARD_SHARED"]) / "golden"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `leeward` with arguments in an empty folder, and captures its output.

    The command runs in this process, because starting another takes longer than most commands. Tests of
    closed outputs, signals and imports start a process of their own.
    """

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = ["leeward", *map(str, arguments)]
        outputs = {name: TextIOWrapper(BytesIO(), "utf-8") for name in ("stdout", "stderr")}
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            environment = {"PATH": os.environ["PATH"], "COLUMNS": "80"} | variables
            for name in os.environ.keys() - environment:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", command)
            for name, output in outputs.items():
                patch.setattr(sys, name, output)
            # Cached scenarios are keyed by file names, which mean other files in another folder.
            cell._scenario.cache_clear()
            with pytest.raises(SystemExit) as ended:
                cli.main()
        code = ended.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(command, code, *map(_text, outputs.values()))

    return run


def _text(output: TextIOWrapper) -> str:
    output.flush()
    output.seek(0)
    return output.read()


LEEWARD = Path(sys.executable).with_name("leeward")


@pytest.fixture(scope="session")
def serve() -> Serve:
    """Serves a cluster from a folder with `leeward serve`; yields the address and requires exit code 0."""

    @contextmanager
    def start(folder: Path, cluster: dict[str, Any], *arguments: str) -> Iterator[str]:
        (folder / "c.json").write_text(json.dumps(cluster))
        command = [str(LEEWARD), "serve", "--cluster", "c.json", "--listen", "127.0.0.1:0", *arguments]
        if "--store" not in arguments:
            command += ["--store", "memory"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield read_address(process)
                process.terminate()
                assert process.wait(60) == 0
            finally:
                process.kill()

    return start


def read_address(process: subprocess.Popen[str]) -> str:
    """Returns the address on which a service listens, and discards its later output."""
    assert process.stderr is not None
    messages = []
    for line in process.stderr:
        messages.append(line)
        if line.startswith("listening on "):
            Thread(target=_drain, args=(process.stderr,), daemon=True).start()
            return line.split()[2]
    raise AssertionError("".join(messages))


def _drain(stream: IO[str]) -> None:
    # The owner may close the stream first.
    with suppress(ValueError):
        for _ in stream:
            pass


@pytest.fixture(scope="session")
def _spark() -> Iterator[Engine]:
    """One Spark session for all tests, because its start takes longer than most of them."""
    require("java", package="default-jre-headless")
    if find_spec("pyspark") is None:
        lack("no pyspark: pip install 'leeward[spark]'")
    with pytest.MonkeyPatch.context() as patch:
        # Compiling for a long run would take most of the time.
        java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--driver-java-options '{java}' pyspark-shell")
        engine = Engine.spark()
    # Tables are small: the start of a task and its compilation each take longer than the task itself.
    for name, value in {
        "shuffle.partitions": "1",
        "codegen.wholeStage": "false",
        "codegen.factoryMode": "NO_CODEGEN",
        "adaptive.enabled": "false",
    }.items():
        engine.connection.raw_sql(f"SET spark.sql.{name} = {value}")
    yield engine
    engine.connection.disconnect()


@pytest.fixture
def spark(_spark: Engine) -> Iterator[Engine]:
    """Spark on this machine."""
    yield _spark
    # The garbage collector closes Spark's sockets here, so that it does not close them during another test.
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignores warnings of Spark and its dependencies."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs promtool with arguments in a folder, and captures its output."""
    require("promtool", package="prometheus")

    def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["promtool", *arguments], capture_output=True, check=False, cwd=folder, text=True
        )

    return run


@pytest.fixture(scope="session")
def backfill() -> Backfill:
    """Starts a Prometheus in a folder, with the samples of lines of OpenMetrics; yields its address."""
    require("prometheus", "promtool", package="prometheus")

    @contextmanager
    def start(folder: Path, lines: Iterable[str]) -> Iterator[str]:
        (folder / "history.om").write_text("\n".join(lines) + "\n# EOF\n")
        # A single block is faster to create than many blocks.
        blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=2000h"]
        subprocess.run([*blocks, "history.om", "data"], cwd=folder, check=True, capture_output=True)
        with _prometheus(folder, "global: {}\n") as address:
            yield address

    return start


@pytest.fixture(scope="session")
def start_prometheus() -> StartPrometheus:
    """Starts a Prometheus in a folder, with a configuration; yields its address."""
    require("prometheus")
    return _prometheus


@contextmanager
def _prometheus(folder: Path, configuration: str) -> Iterator[str]:
    (folder / "prometheus.yml").write_text(configuration)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = {
        "config.file": "prometheus.yml",
        "storage.tsdb.path": "data",
        "storage.tsdb.retention.time": "100y",
        "web.listen-address": address,
    }
    command = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://{address}/-/ready", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        else:
            pytest.fail("prometheus did not become ready in a minute")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def fake() -> Iterator[Callable[[Callable[[int, str], Answer]], str]]:
    """Starts servers whose response is a function of the request's number and text."""
    with servers() as start:
        yield start
