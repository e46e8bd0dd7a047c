"""Programs that the tests of the lab's parts in C run: in virtual time, at hosts, and in control groups."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KERNEL = Path(__file__).parents[3] / "kernel"
TESTS = KERNEL / "tests"
FACTOR = 10
"""The dilation factor of most tests."""
Environment = dict[str, str]


def run(*command: str | Path, timeout: float = 60, env: Environment | None = None) -> str:
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False, env=env
    )
    assert result.returncode == 0, (command, result.returncode, result.stdout, result.stderr)
    return result.stdout


def dilated(parts: Path, factor: float | str = FACTOR, **more: str) -> dict[str, str]:
    """The environment of a program in virtual time."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEEWARD_VT_")}
    return {**kept, "LD_PRELOAD": str(parts / "libleeward_vt.so"), "LEEWARD_VT_FACTOR": str(factor), **more}


def within(namespace: str, *command: str | Path) -> list[str]:
    return ["ip", "netns", "exec", namespace, *map(str, command)]


@contextmanager
def limited(hosts: tuple[str, str], limit: str) -> Iterator[None]:
    """Limits the rate of the first host."""
    run(*f"tc -n {hosts[0]} qdisc add dev eth0 root tbf {limit}".split())
    try:
        yield
    finally:
        run(*f"tc -n {hosts[0]} qdisc del dev eth0 root".split())


@contextmanager
def server(*command: str, ready: str, env: Environment | None = None) -> Iterator[subprocess.Popen[str]]:
    """A program in the background that has printed a certain text, which it must do in a minute."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as program:
        stop = threading.Timer(60, program.kill)
        stop.start()
        try:
            assert program.stdout is not None
            seen = []
            for line in program.stdout:
                seen.append(line)
                if ready in line:
                    break
            else:
                pytest.fail(f"{command} has ended: {seen}")
            stop.cancel()
            yield program
        finally:
            stop.cancel()
            program.kill()


@contextmanager
def loaded(loader: Path, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """The loader, ready. Its standard output remains to be read after the `with` block."""
    # Those of a former loader go a little after its end.
    for _ in range(100):
        if not {name_of("re"), name_of("td")} & set(controls()):
            break
        time.sleep(0.1)
    with server(*map(str, (loader, *arguments)), ready="ready") as program:
        yield program


def end(program: subprocess.Popen[str]) -> dict[str, dict[str, int]]:
    """Ends the loader by its standard input, and returns its counters."""
    rest, _ = program.communicate(timeout=20)
    assert program.returncode == 0, rest
    counters = {}
    for line in rest.splitlines():
        if "has skipped a program" in line:
            continue
        part, *values = line.split()
        counters[part] = {key: int(value) for key, value in (item.split("=") for item in values)}
    return counters


def controls() -> list[str]:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def inside(cgroup: Path, *command: str | Path) -> list[str]:
    """The command, in a cgroup."""
    return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(cgroup), *map(str, command)]


def name_of(part: str) -> str:
    return f"{part}_{os.getpid()}"
