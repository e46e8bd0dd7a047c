"""The parts of the lab that run beside a kernel: virtual time, demand, and BPF programs."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.parts import lack, require, require_root

KERNEL = Path(__file__).parents[2] / "kernel"
TESTS = KERNEL / "tests"
OWN = os.getpid()
FACTOR = 10
"""The dilation factor of most tests."""
TOLERANCE = 0.03
"""Relative error of virtual rates and latencies."""


def run(*command: str | Path, timeout: float = 60, **others: object) -> str:
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False, **others
    )
    assert result.returncode == 0, (command, result.returncode, result.stdout, result.stderr)
    return result.stdout


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the parts that this system can build."""
    require("make")
    require("cc", package="gcc")
    if folder := os.environ.get("LEEWARD_KERNEL"):
        return Path(folder)
    out = tmp_path_factory.mktemp("kernel")
    run("make", "-s", "-C", KERNEL, f"OUT={out}", timeout=300)
    return out


@pytest.fixture(scope="module")
def loader(parts: Path) -> Path:
    """The loader, on a system that can run it."""
    require_root()
    require("clang")
    require("tc", "ip", "ss", package="iproute2")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        lack("the kernel has no BTF")
    if not (parts / "leeward-bpf").exists():
        lack("no bpf/libbpf.h: as root, apt-get install libbpf-dev")
    return parts / "leeward-bpf"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the C programs of the tests."""
    require("cc", package="gcc")
    out = tmp_path_factory.mktemp("programs")
    for source in TESTS.glob("*.c"):
        if not source.name.endswith(".bpf.c"):
            run("cc", "-O2", "-Wall", "-Wextra", "-o", out / source.stem, source, "-lpthread", "-lrt", "-ldl")
    return out


def dilated(parts: Path, factor: float | str = FACTOR, **more: str) -> dict[str, str]:
    """The environment of a program in virtual time."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEEWARD_VT_")}
    return {**kept, "LD_PRELOAD": str(parts / "libleeward_vt.so"), "LEEWARD_VT_FACTOR": str(factor), **more}


# Virtual time.


def test_each_call_waits_for_virtual_time(parts: Path, programs: Path) -> None:
    lines = [line.split() for line in run(programs / "vt_waits", env=dilated(parts)).splitlines()]
    assert len(lines) == 40
    for name, virtual, real, right in lines:
        assert right == "1", name
        # Timers may be late, and a busy machine delays programs; they are never early.
        assert 10 <= float(virtual) < 20, name
        assert float(virtual) * FACTOR == pytest.approx(float(real), abs=1), name


def test_a_factor_with_decimals_is_exact(parts: Path, programs: Path) -> None:
    output = run(programs / "vt_waits", "poll", "clock_nanosleep_abs", "timerfd", env=dilated(parts, "2.5"))
    for line in output.splitlines():
        _, virtual, real, _ = line.split()
        assert float(virtual) * 2.5 == pytest.approx(float(real), abs=1)


def test_clocks_and_options_and_stamps_are_virtual(parts: Path, programs: Path) -> None:
    lines = run(programs / "vt_reads", env=dilated(parts)).splitlines()
    assert lines, "no checks"
    assert [line for line in lines if not line.endswith(" 1")] == []


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"LEEWARD_VT_FACTOR": "0.5"}, "LEEWARD_VT_FACTOR=0.5: invalid"),
        ({"LEEWARD_VT_FACTOR": "fast"}, "LEEWARD_VT_FACTOR=fast: invalid"),
        ({"LEEWARD_VT_FACTOR": ""}, "LEEWARD_VT_FACTOR=: invalid"),
        ({"LEEWARD_VT_FACTOR": "-3"}, "LEEWARD_VT_FACTOR=-3: invalid"),
        ({"LEEWARD_VT_FACTOR": "1000001"}, "LEEWARD_VT_FACTOR=1000001: invalid"),
        ({"LEEWARD_VT_FACTOR": "1e3"}, "LEEWARD_VT_FACTOR=1e3: invalid"),
        ({"LEEWARD_VT_EPOCH": "now"}, "LEEWARD_VT_EPOCH=now: invalid"),
        ({"LEEWARD_VT_EPOCH": "99999999999999999999"}, "LEEWARD_VT_EPOCH=99999999999999999999: invalid"),
    ],
)
def test_an_invalid_environment_ends_the_program(parts: Path, variables: dict[str, str], reason: str) -> None:
    result = subprocess.run(
        ["echo", "ran"], env=dilated(parts, **variables), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (127, "")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_factor_ends_the_program(parts: Path) -> None:
    environment = dilated(parts)
    del environment["LEEWARD_VT_FACTOR"]
    result = subprocess.run(["echo", "ran"], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (127, "")
    assert "LEEWARD_VT_FACTOR=: not set" in result.stderr


def test_children_have_the_epoch_of_their_parent(parts: Path) -> None:
    script = "echo $LEEWARD_VT_EPOCH; sh -c 'echo $LEEWARD_VT_EPOCH'"
    for shell in ("sh", "bash"):
        first, second = run(shell, "-c", script, env=dilated(parts)).split()
        assert first == second and int(first) > 0
    assert run("sh", "-c", script, env=dilated(parts, LEEWARD_VT_EPOCH="17")).split() == ["17", "17"]


def test_a_clock_is_continuous_at_the_epoch_and_slower_after_it(parts: Path) -> None:
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    epoch = now - 10**9
    code = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns())"
    monotonic, date = map(int, run(sys.executable, "-c", code, env=dilated(parts, 100, LEEWARD_VT_EPOCH=str(epoch))).split())
    assert 0.01e9 <= monotonic - epoch < 0.03e9
    offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert date - offset == pytest.approx(monotonic, abs=0.001e9)


def elapsed(*command: str | Path, **others: object) -> float:
    start = time.monotonic()
    run(*command, **others)
    return time.monotonic() - start


def test_programs_sleep_in_virtual_time(parts: Path) -> None:
    environment = dilated(parts, 20)
    assert elapsed("sleep", "0.1", env=environment) == pytest.approx(2, rel=TOLERANCE)
    code = (
        "import select, threading, time\n"
        "waits = lambda: time.sleep(0.05), lambda: select.select([], [], [], 0.05), "
        "lambda: threading.Event().wait(0.05), lambda: select.poll().poll(50)\n"
        "for wait in waits:\n"
        "    start = time.perf_counter(), time.time(); wait()\n"
        "    print(time.perf_counter() - start[0], time.time() - start[1])\n"
    )
    for line in run(sys.executable, "-c", code, env=environment).splitlines():
        for value in line.split():
            assert float(value) == pytest.approx(0.05, rel=TOLERANCE, abs=0.001)


JAVA = """
public class Waits {
    public static void main(String[] arguments) throws Exception {
        Object lock = new Object();
        long start = System.nanoTime();
        Thread.sleep(100);
        long slept = System.nanoTime();
        synchronized (lock) { lock.wait(100); }
        long waited = System.nanoTime();
        java.util.concurrent.locks.LockSupport.parkNanos(100000000L);
        System.out.println((slept - start) / 1e9 + " " + (waited - slept) / 1e9 + " " + (System.nanoTime() - waited) / 1e9);
    }
}
"""


def test_java_waits_in_virtual_time(parts: Path, tmp_path: Path) -> None:
    require("java", package="default-jre-headless")
    require("javac", package="default-jdk-headless")
    (tmp_path / "Waits.java").write_text(JAVA)
    run("javac", "-d", tmp_path, tmp_path / "Waits.java")
    start = time.monotonic()
    values = run("java", "-Xint", "-cp", tmp_path, "Waits", env=dilated(parts, 5)).split()
    assert time.monotonic() - start > 3 * 0.1 * 5
    for value in values:
        assert float(value) == pytest.approx(0.1, rel=TOLERANCE, abs=0.003)


# Networks.


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[str, str]]:
    """Two namespaces joined by a veth pair: 10.78.0.1 and 10.78.0.2."""
    require_root()
    require("ip", "tc", package="iproute2")
    names = tuple(f"leeward-kernel-{OWN}-{end}" for end in "ab")
    attempt = subprocess.run(["ip", "netns", "add", names[0]], capture_output=True, text=True, check=False)
    if attempt.returncode:
        lack(f"no network namespace can be created: {attempt.stderr.strip()}")
    try:
        run("ip", "netns", "add", names[1])
        run(*f"ip link add cable netns {names[0]} mtu 1500 type veth peer cable netns {names[1]}".split())
        for number, name in enumerate(names, 1):
            run(*f"ip -n {name} addr add 10.78.0.{number}/24 dev cable".split())
            run(*f"ip -n {name} link set cable up".split())
            run(*f"ip -n {name} link set lo up".split())
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_ecn=0")
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def within(namespace: str, *command: str | Path) -> list[str]:
    return ["ip", "netns", "exec", namespace, *map(str, command)]


@pytest.fixture
def limited(hosts: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The hosts with a link of 100 Mbit/s."""
    run(*f"tc -n {hosts[0]} qdisc add dev cable root tbf rate 100mbit burst 16kb limit 200kb".split())
    yield hosts
    run(*f"tc -n {hosts[0]} qdisc del dev cable root".split())


@contextmanager
def server(*command: str, ready: str, **others: object) -> Iterator[subprocess.Popen[str]]:
    """A program in the background that has printed a certain text."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **others) as program:
        try:
            assert program.stdout is not None
            seen = []
            for line in program.stdout:
                seen.append(line)
                if ready in line:
                    break
            else:
                pytest.fail(f"{command} has ended: {seen}")
            yield program
        finally:
            program.kill()


def iperf3(hosts: tuple[str, str], seconds: float, **others: object) -> dict[str, object]:
    require("iperf3")
    # Without --forceflush the server's first line stays in its buffer.
    with server(*within(hosts[1], "iperf3", "-s", "-1", "--forceflush"), ready="listening", **others):
        time.sleep(0.2)
        output = run(*within(hosts[0], "iperf3", "-J", "-c", "10.78.0.2", "-t", str(seconds)), timeout=200, **others)
    result: dict[str, object] = json.loads(output)
    return result


def test_iperf3_reads_the_virtual_rate(parts: Path, limited: tuple[str, str]) -> None:
    plain = iperf3(limited, 3)["end"]["sum_received"]["bits_per_second"]
    virtual = iperf3(limited, 1, env=dilated(parts, 5))["end"]["sum_received"]["bits_per_second"]
    assert virtual == pytest.approx(5 * plain, rel=TOLERANCE)


def round_trip(hosts: tuple[str, str], interval: str, **others: object) -> float:
    """The mean round trip of ping, in ms."""
    require("ping", package="iputils-ping")
    output = run(*within(hosts[0], "ping", "-c", "8", "-i", interval, "-s", "10000", "10.78.0.2"), **others)
    match = re.search(r"= [\d.]+/([\d.]+)/", output)
    assert match, output
    return float(match[1])


def test_ping_reads_the_virtual_round_trip(parts: Path, hosts: tuple[str, str]) -> None:
    # A packet of 10,000 bytes has 7 fragments. The bucket holds the first one, and the others wait 12 ms each.
    run(*f"tc -n {hosts[0]} qdisc add dev cable root tbf rate 1mbit burst 1600 limit 40kb".split())
    try:
        plain = round_trip(hosts, "0.24")
        time.sleep(0.3)
        virtual = round_trip(hosts, "0.06", env=dilated(parts, 4))
    finally:
        run(*f"tc -n {hosts[0]} qdisc del dev cable root".split())
    assert plain > 50
    assert virtual * 4 == pytest.approx(plain, rel=TOLERANCE)
