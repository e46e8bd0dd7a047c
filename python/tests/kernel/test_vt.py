"""Virtual time: clocks and waits of programs under `libleeward_vt.so`."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.kernel import FACTOR, Environment, dilated, limited, run, server, within
from support.parts import require
from support.repeats import ATTEMPTS, repeated

TOLERANCE = 0.1
"""Relative error of virtual rates and latencies."""


def test_each_call_waits_for_virtual_time(parts: Path, programs: Path) -> None:
    names: list[str] = []
    wrong: list[list[str]] = []
    for attempt in range(1, ATTEMPTS + 1):
        output = run(programs / "vt_waits", *names, env=dilated(parts))
        lines = [line.split() for line in output.splitlines()]
        assert len(lines) == (len(names) or 45)
        wrong = [
            line
            for line in lines
            # A busy machine makes a wait longer, or delays a program between two readings.
            if line[3] != "1"
            or not 10 <= float(line[1]) < 50
            or float(line[1]) * FACTOR != pytest.approx(float(line[2]), abs=1)
        ]
        if not wrong:
            break
        print(f"attempt {attempt}: {wrong}")
        names = [line[0] for line in wrong]
    assert wrong == []


@repeated
def test_a_factor_with_decimals_is_exact(parts: Path, programs: Path) -> None:
    output = run(programs / "vt_waits", "poll", "clock_nanosleep_abs", "timerfd", env=dilated(parts, "2.5"))
    for line in output.splitlines():
        _, virtual, real, _ = line.split()
        assert float(virtual) * 2.5 == pytest.approx(float(real), abs=1)


def test_clocks_and_options_and_stamps_are_virtual(parts: Path, programs: Path) -> None:
    # A busy machine delays some of the checks, other ones each time.
    failed: set[str] | None = None
    for _ in range(ATTEMPTS):
        lines = run(programs / "vt_reads", env=dilated(parts)).splitlines()
        assert len(lines) == 34
        wrong = {line for line in lines if not line.endswith(" 1")}
        failed = wrong if failed is None else failed & wrong
        if not failed:
            return
        print(f"failed: {sorted(wrong)}")
    assert failed == set()


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
        assert first == second
        assert int(first) > 0
    assert run("sh", "-c", script, env=dilated(parts, LEEWARD_VT_EPOCH="17")).split() == ["17", "17"]


def test_a_clock_is_continuous_at_the_epoch_and_slower_after_it(parts: Path) -> None:
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    epoch = now - 10**9
    code = "import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns())"
    monotonic, date = map(
        int, run(sys.executable, "-c", code, env=dilated(parts, 100, LEEWARD_VT_EPOCH=str(epoch))).split()
    )
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert 0.01e9 <= monotonic - epoch <= (after - epoch) / 100
    offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    # A clock that is not virtual differs by more than 0.9 s.
    assert date - offset == pytest.approx(monotonic, abs=0.1e9)


def elapsed(*command: str | Path, env: Environment) -> float:
    start = time.monotonic()
    run(*command, env=env)
    return time.monotonic() - start


def test_programs_sleep_in_virtual_time(parts: Path) -> None:
    environment = dilated(parts)
    # Without the library this takes 0.1 s. The upper limits leave a busy machine at least a second.
    assert 0.1 * FACTOR <= elapsed("sleep", "0.1", env=environment) < 0.3 * FACTOR
    code = (
        "import select, threading, time\n"
        "waits = lambda: time.sleep(0.05), lambda: select.select([], [], [], 0.05), "
        "lambda: threading.Event().wait(0.05), lambda: select.poll().poll(50)\n"
        "for wait in waits:\n"
        "    start = time.perf_counter(), time.time(); wait()\n"
        "    print(time.perf_counter() - start[0], time.time() - start[1])\n"
    )
    values = run(sys.executable, "-c", code, env=environment).split()
    assert len(values) == 8
    for value in values:
        assert 0.0485 <= float(value) < 0.15


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
        long parked = System.nanoTime();
        for (long nanos : new long[] {slept - start, waited - slept, parked - waited})
            System.out.println(nanos / 1e9);
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
    assert len(values) == 3
    for value in values:
        # 0.5 is a clock that is not virtual, 0.02 a wait that is not.
        assert 0.09 <= float(value) < 0.3


FRAGMENTS = "rate 1mbit burst 1600 limit 40kb"
"""A limit of 12 ms for each packet of 1500 bytes, whose bucket holds one."""


def iperf3(hosts: tuple[str, str], seconds: float, env: Environment | None = None) -> float:
    """The rate in bit/s that the receiver has measured."""
    require("iperf3")
    # Without --forceflush the server's first line stays in its buffer.
    with server(*within(hosts[1], "iperf3", "-s", "-1", "--forceflush"), ready="listening", env=env):
        time.sleep(0.2)
        output = run(
            *within(hosts[0], "iperf3", "-J", "-c", "10.0.1.2", "-t", str(seconds)), timeout=200, env=env
        )
    return float(json.loads(output)["end"]["sum_received"]["bits_per_second"])


def test_iperf3_reads_the_virtual_rate(parts: Path, hosts: tuple[str, str]) -> None:
    with limited(hosts, "rate 100mbit burst 16kb limit 200kb"):
        plain = virtual = 0.0
        for _ in range(ATTEMPTS):
            # Other load only makes rates lower.
            plain = max(plain, iperf3(hosts, 2))
            virtual = max(virtual, iperf3(hosts, 1, env=dilated(parts, 3)))
            if virtual == pytest.approx(3 * plain, rel=TOLERANCE):
                break
            print(f"plain {plain}, virtual {virtual}")
    assert virtual == pytest.approx(3 * plain, rel=TOLERANCE)


def round_trip(hosts: tuple[str, str], interval: str, env: Environment | None = None) -> float:
    """The shortest round trip of ping, in ms."""
    require("ping", package="iputils-ping")
    output = run(*within(hosts[0], "ping", "-c", "8", "-i", interval, "-s", "10000", "10.0.1.2"), env=env)
    match = re.search(r"= ([\d.]+)/", output)
    assert match, output
    return float(match[1])


@repeated
def test_ping_reads_the_virtual_round_trip(parts: Path, hosts: tuple[str, str]) -> None:
    # A packet of 10,000 bytes has 7 fragments. The bucket holds the first one; the others wait 12 ms each.
    with limited(hosts, FRAGMENTS):
        plain = round_trip(hosts, "0.24")
        time.sleep(0.3)
        virtual = round_trip(hosts, "0.06", env=dilated(parts, 4))
    assert plain > 50
    assert virtual * 4 == pytest.approx(plain, rel=TOLERANCE)


def latency(hosts: tuple[str, str], env: Environment | None = None) -> float:
    """The median latency of sockperf's messages of 1400 bytes, in us: half of a round trip."""
    require("sockperf")
    options = ("-i", "10.0.1.2", "-p", "7001")
    with server(*within(hosts[1], "sockperf", "sr", *options), ready="to block on socket", env=env):
        output = run(*within(hosts[0], "sockperf", "pp", *options, "-m", "1400", "-t", "1"), env=env)
    match = re.search(r"percentile 50\.000 = +([\d.]+)", output)
    assert match, output
    return float(match[1])


@repeated
def test_sockperf_reads_the_virtual_latency(parts: Path, hosts: tuple[str, str]) -> None:
    with limited(hosts, FRAGMENTS):
        plain = latency(hosts)
        virtual = latency(hosts, env=dilated(parts, 2))
    assert plain > 5000
    assert virtual * 2 == pytest.approx(plain, rel=TOLERANCE)
