"""The parts of the lab that run beside a kernel: virtual time, demand, and BPF programs."""

import functools
import json
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from support.labs import two_hosts
from support.parts import lack, require, require_root

KERNEL = Path(__file__).parents[2] / "kernel"
TESTS = KERNEL / "tests"
OWN = os.getpid()
FACTOR = 10
"""The dilation factor of most tests."""
TOLERANCE = 0.1
"""Relative error of virtual rates and latencies."""
ATTEMPTS = 3


Environment = dict[str, str]
Arguments = ParamSpec("Arguments")


def repeated(test: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Repeats a test that fails, up to twice.

    It is for tests that measure times, rates and windows: other load makes these worse, never better.
    """

    @functools.wraps(test)
    def attempts(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> None:
        for attempt in range(1, ATTEMPTS):
            try:
                test(*arguments, **keywords)
            except AssertionError as error:
                print(f"attempt {attempt} of {test.__name__}: {error}")
            else:
                return
        test(*arguments, **keywords)

    return attempts


def run(*command: str | Path, timeout: float = 60, env: Environment | None = None) -> str:
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False, env=env
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
            static = ["-static"] if source.stem == "talk" else []
            run(
                "cc",
                "-O2",
                "-Wall",
                "-Wextra",
                *static,
                "-o",
                out / source.stem,
                source,
                "-lpthread",
                "-lrt",
                "-ldl",
            )
    return out


def dilated(parts: Path, factor: float | str = FACTOR, **more: str) -> dict[str, str]:
    """The environment of a program in virtual time."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEEWARD_VT_")}
    return {**kept, "LD_PRELOAD": str(parts / "libleeward_vt.so"), "LEEWARD_VT_FACTOR": str(factor), **more}


# Virtual time.


def test_each_call_waits_for_virtual_time(parts: Path, programs: Path) -> None:
    names: list[str] = []
    wrong: list[list[str]] = []
    for attempt in range(1, ATTEMPTS + 1):
        output = run(programs / "vt_waits", *names, env=dilated(parts))
        lines = [line.split() for line in output.splitlines()]
        assert len(lines) == (len(names) or 40)
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
        assert len(lines) == 32
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


# Networks.


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[str, str]]:
    """Namespaces of two hosts of a lab."""
    with two_hosts() as names:
        for name in names:
            # A client that a busy machine delays for longer than its timeout keeps its window.
            settings = ["net.ipv4.tcp_ecn=0", "net.ipv4.tcp_slow_start_after_idle=0"]
            # The kernel lets a socket queue more in its host, so that windows fill queues and cause losses.
            settings += ["net.ipv4.tcp_pacing_ss_ratio=1000", "net.ipv4.tcp_pacing_ca_ratio=1000"]
            run("ip", "netns", "exec", name, "sysctl", "-qw", *settings)
            # A queue splits large packets and drops some of the parts, which TCP then repairs as losses.
            run(*f"ip -n {name} link set eth0 gso_max_segs 65535".split())
        yield names


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


FRAGMENTS = "rate 1mbit burst 1600 limit 40kb"
"""A limit of 12 ms for each packet of 1500 bytes, whose bucket holds one."""


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


# BPF.


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of version 2."""
    require_root()
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [fields[1] for fields in mounts if fields[2] == "cgroup2"]
    if not roots:
        lack("no cgroup2 file system is mounted")
    group = Path(roots[0]) / f"leeward-kernel-{OWN}"
    group.mkdir()
    try:
        yield group
    finally:
        # Processes that a test has left.
        (group / "cgroup.kill").write_text("1")
        for _ in range(100):
            # Processes leave a cgroup a little after their end.
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)
        else:
            group.rmdir()


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
    return f"{part}_{OWN}"


def refuse(loader: Path, *arguments: str | Path) -> str:
    """The one line that the loader prints when it fails."""
    result = subprocess.run(
        [str(part) for part in (loader, *arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("leeward-bpf: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def attached(cgroup: Path) -> list[str]:
    """The programs of a cgroup."""
    require("bpftool")
    lines = run("bpftool", "cgroup", "show", cgroup).splitlines()
    return [line for line in lines if line.split()[:1] and line.split()[0].isdigit()]


def test_all_that_the_loader_attaches_goes_with_it(loader: Path, cgroup: Path, tmp_path: Path) -> None:
    arguments = (
        "--cgroup", cgroup, "--timers", "rto_min_us=100000,delack_max_us=40000", "--retcp", name_of("re"),
        "--tdtcp", name_of("td"), "--adu", tmp_path / "socket",
    )  # fmt: skip
    for stop in (None, signal.SIGTERM, signal.SIGKILL):
        with loaded(loader, *arguments) as program:
            assert {name_of("re"), name_of("td")} <= set(controls())
            assert len(attached(cgroup)) == 6
            if stop is None:
                assert set(end(program)) == {"timers", "retcp", "tdtcp"}
            else:
                program.send_signal(stop)
                program.communicate(timeout=20)
        # The kernel frees links after their process has ended.
        for _ in range(100):
            if not {name_of("re"), name_of("td")} & set(controls()) and not attached(cgroup):
                break
            time.sleep(0.1)
        assert not {name_of("re"), name_of("td")} & set(controls()), stop
        assert not attached(cgroup), stop


def test_the_loader_says_why_it_fails(loader: Path, cgroup: Path, tmp_path: Path) -> None:
    assert "--cgroup is required" in refuse(loader, "--retcp", "x")
    assert "nothing to load" in refuse(loader, "--cgroup", cgroup)
    assert "No such file" in refuse(loader, "--cgroup", tmp_path / "none", "--retcp", "x")
    assert "is not in a cgroup2 file system" in refuse(loader, "--cgroup", tmp_path, "--retcp", "x")
    assert "1 to 15 letters" in refuse(loader, "--cgroup", cgroup, "--retcp", "x" * 16)
    assert "alpha must be at least 1" in refuse(loader, "--cgroup", cgroup, "--retcp", "x,alpha=0.5")
    assert "beta must be at most 1" in refuse(loader, "--cgroup", cgroup, "--retcp", "x,beta=1.5")
    assert "unknown key: gamma" in refuse(loader, "--cgroup", cgroup, "--retcp", "x,gamma=1")
    assert "at most 200000" in refuse(loader, "--cgroup", cgroup, "--timers", "rto_min_us=400000")
    assert "retcp.bpf.o: No such file" in refuse(
        loader, "--cgroup", cgroup, "--retcp", "x", "--objects", tmp_path
    )
    assert "in use on this machine: reno" in refuse(loader, "--cgroup", cgroup, "--retcp", "reno")
    with loaded(loader, "--cgroup", cgroup, "--retcp", name_of("re")):
        assert f"in use on this machine: {name_of('re')}" in refuse(
            loader, "--cgroup", cgroup, "--tdtcp", name_of("re")
        )


PAIR = """
import json, os, socket, struct, subprocess, sys
import time

end = socket.create_connection(("10.0.1.2", 7000))
def info():
    values = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    numbers = struct.unpack("8B24I", values)
    # Retransmission timeout in us, window in segments, threshold, and total of retransmissions.
    places = {"rto": 8, "window": 26, "threshold": 25, "again": 31}
    return {name: numbers[place] for name, place in places.items()}
def exchange(count, pause=0.002):
    for _ in range(count):
        end.sendall(b"x")
        end.recv(1)
        time.sleep(pause)
def echo(on):
    kind = "add" if on else "del"
    filter = "bpf da obj ECHO sec tc" if on else ""
    subprocess.run(f"tc -n PEER filter {kind} dev eth0 egress pref 1 {filter}".split(), check=True)
"""
"""A client that exchanges bytes with a server, and sets and clears the echo bit of packets that arrive."""

SERVER = """
import socket, threading
listener = socket.create_server(("10.0.1.2", 7000))
print("listening", flush=True)
end, _ = listener.accept()
# A run of n bytes is answered by one.
while data := end.recv(1 << 20):
    end.sendall(b"y")
"""


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory, loader: Path) -> Path:
    """The program that sets the echo bit."""
    out = tmp_path_factory.mktemp("echo") / "echo.bpf.o"
    folder = f"-I/usr/include/{run('cc', '-print-multiarch').strip()}"
    run("clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", folder, "-c", "-o", out, TESTS / "echo.bpf.c")
    return out


def converse(hosts: tuple[str, str], cgroup: Path, classifier: Path, control: str | None, script: str) -> Any:
    """Runs a script of a client in the cgroup, and returns what it prints in JSON."""
    run(*f"tc -n {hosts[1]} qdisc add dev eth0 clsact".split())
    try:
        with server(*inside(cgroup, *within(hosts[1], sys.executable, "-c", SERVER)), ready="listening"):
            code = PAIR.replace("PEER", hosts[1]).replace("ECHO", str(classifier))
            # The client moves itself after the congestion control of its namespace is set.
            if control:
                run(*within(hosts[0], "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={control}"))
            output = run(*inside(cgroup, *within(hosts[0], sys.executable, "-c", code + script)))
    finally:
        run(*f"tc -n {hosts[1]} qdisc del dev eth0 clsact".split())
        run(*within(hosts[0], "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"))
    return json.loads(output)


@repeated
def test_timers_apply_to_both_sides(
    loader: Path, cgroup: Path, hosts: tuple[str, str], classifier: Path
) -> None:
    # The window is read first, because a busy machine can cause a timeout, which shortens it.
    script = "window = info()['window']\nexchange(80)\nprint(json.dumps([window, info()['rto']]))"
    with loaded(
        loader, "--cgroup", cgroup, "--timers", "rto_min_us=48000,delack_max_us=20000,initial_window=33"
    ) as program:
        window, timeout = converse(hosts, cgroup, classifier, "reno", script)
        assert end(program) == {"timers": {"connections": 2, "rejected": 0}}
    plain_window, plain_timeout = converse(hosts, cgroup, classifier, "reno", script)
    assert plain_timeout > 200000
    # Measured round trips lengthen it, on a busy machine more. 200 ms is the kernel's lower limit.
    assert 48000 <= timeout < 150000
    assert window >= 33 > plain_window


@pytest.mark.parametrize(
    ("alpha", "beta", "windows"), [("2", "0.5", [10, 20, 10, 20, 10]), ("1.5", "0.1", [10, 15, 2, 3, 2])]
)
@repeated
def test_retcp_scales_the_window_when_the_echo_changes(
    loader: Path,
    cgroup: Path,
    hosts: tuple[str, str],
    classifier: Path,
    alpha: str,
    beta: str,
    windows: list[int],
) -> None:
    # A byte at a time does not fill the window, so that nothing but the echo changes it.
    script = (
        "seen = []\n"
        "for on in (None, True, False, True, False):\n"
        "    if on is not None: echo(on)\n"
        "    exchange(10); seen.append(info()['window'])\n"
        "print(json.dumps(seen))"
    )
    with loaded(
        loader, "--cgroup", cgroup, "--retcp", f"{name_of('re')},alpha={alpha},beta={beta}"
    ) as program:
        assert converse(hosts, cgroup, classifier, name_of("re"), script) == windows
        assert end(program) == {"retcp": {"ups": 2, "downs": 2, "mended": 0}}


@repeated
def test_retcp_repairs_losses_and_keeps_the_link_busy(
    loader: Path, cgroup: Path, hosts: tuple[str, str], classifier: Path
) -> None:
    script = (
        "import threading\n"
        "bytes_sent, toggles = 0, threading.Event()\n"
        "def toggle():\n"
        "    for step in range(16):\n"
        "        time.sleep(0.25); echo(step % 2 == 0)\n"
        "    time.sleep(0.25); toggles.set()\n"
        "def drain():\n"
        "    while end.recv(1 << 16): pass\n"
        "for work in toggle, drain: threading.Thread(target=work, daemon=True).start()\n"
        "start, windows = time.monotonic(), []\n"
        "while not toggles.is_set():\n"
        "    bytes_sent += end.send(bytes(65536)); windows.append(info()['window'])\n"
        "rate = bytes_sent * 8 / (time.monotonic() - start)\n"
        "print(json.dumps([rate, info()['again'], max(windows), info()['threshold']]))"
    )
    with (
        limited(hosts, "rate 100mbit burst 16kb limit 40kb"),
        loaded(loader, "--cgroup", cgroup, "--retcp", name_of("re")) as program,
    ):
        rate, again, most, threshold = converse(hosts, cgroup, classifier, name_of("re"), script)
        counters = end(program)["retcp"]
    # A repair that spans a circuit hides both of its transitions. Repairs take longer on a busy machine.
    assert 5 <= counters["ups"] <= 8
    assert counters["ups"] - counters["downs"] in (0, 1)
    assert again > 0
    assert threshold < 0x7FFFFFFF
    # The kernel can have shown a window before the program corrected it.
    assert most < 500 or counters["mended"]
    # A timeout of 200 ms after each transition would leave less than a quarter.
    assert rate > 50e6


@repeated
def test_tdtcp_has_a_window_for_each_kind_of_path(
    loader: Path, cgroup: Path, hosts: tuple[str, str], classifier: Path
) -> None:
    script = (
        "seen = []\n"
        "for _ in range(6):\n"
        "    end.sendall(bytes(200000))\n"
        "    time.sleep(0.02)\n"
        "end.settimeout(0.2)\n"
        "try:\n"
        "    while end.recv(1000): pass\n"
        "except TimeoutError: pass\n"
        "end.settimeout(None)\n"
        "for on in (None, True, False, True, False):\n"
        "    if on is not None: echo(on)\n"
        "    exchange(10); seen.append(info()['window'])\n"
        "print(json.dumps(seen))"
    )
    with loaded(loader, "--cgroup", cgroup, "--tdtcp", name_of("td")) as program:
        first, *rest = converse(hosts, cgroup, classifier, name_of("td"), script)
        assert end(program) == {"tdtcp": {"ups": 2, "downs": 2, "mended": 0}}
    assert first > 20
    assert rest == [10, first, 10, first]


# Demand.

RECORD = struct.Struct("<IBBH4s4s2s2sIQ")
WRITTEN, CLOSED = 1, 2


Report = tuple[int, tuple[str, int, str, int], int]
"""The kind of a record, its local and remote address and port, and its bytes."""


def parse(data: bytes) -> Report:
    magic, version, kind, zero, local, remote, local_port, remote_port, zero_too, written = RECORD.unpack(
        data
    )
    assert (magic, version, zero, zero_too) == (0x4C574144, 1, 0, 0)
    ports = (int.from_bytes(local_port, "big"), int.from_bytes(remote_port, "big"))
    return kind, (socket.inet_ntoa(local), ports[0], socket.inet_ntoa(remote), ports[1]), written


class Reports:
    """The switch's end of the demand. A thread reads at once, because the kernel queues few datagrams."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: queue.Queue[bytes] = queue.Queue()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        while data := self.socket.recv(100):
            self.records.put(data)

    def send(self, data: bytes) -> None:
        """Sends a datagram, which the thread reads after those that have been sent before."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(data, str(self.path))

    def close(self) -> None:
        """Ends the thread, by an empty datagram."""
        self.send(b"")
        self.thread.join()
        self.socket.close()

    def next(self) -> Report:
        return parse(self.records.get(timeout=30))

    def all(self) -> list[Report]:
        """The records that have been sent."""
        self.send(b"last")
        return [parse(data) for data in iter(lambda: self.records.get(timeout=30), b"last")]


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[Reports]:
    receiver = Reports(tmp_path / "demand")
    yield receiver
    receiver.close()


CONNECTED = """
import ctypes, os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
def drain(end):
    while end.recv(1 << 20): pass
def connect(family=socket.AF_INET, read=True):
    client = socket.socket(family, socket.SOCK_STREAM)
    address = "::ffff:127.0.0.1" if family == socket.AF_INET6 else "127.0.0.1"
    client.connect((address, listener.getsockname()[1]))
    server = listener.accept()[0]
    if read: threading.Thread(target=drain, args=(server,), daemon=True).start()
    return client, server
"""


def demand(parts: Path, reports: Reports, script: str, **more: str) -> list[tuple[int, int]]:
    """Kinds and bytes of the records of the last connection of a script, which prints its port."""
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so"), **more}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    port = int(run(sys.executable, "-c", CONNECTED + script, env=environment))
    return [
        (kind, written) for kind, ends, written in reports.all() if ends[0] == "127.0.0.1" and ends[1] == port
    ]


PORT = "\nprint(client.getsockname()[1], flush=True)\n"


SHORT_FILE = """
with open("short", "wb") as file: file.write(bytes(300))
file = open("short", "rb")
os.sendfile(client.fileno(), file.fileno(), 100, 1 << 30)
"""
PIPE = """
pipe = os.pipe(); os.write(pipe[1], bytes(500))
assert ctypes.CDLL(None).splice(pipe[0], None, client.fileno(), None, 65536, 0) == 500
"""
MESSAGES = """
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint),
        ("parts", ctypes.POINTER(Part)), ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int), ("sent", ctypes.c_ulong),
    ]
parts = (Part * 2)((b"x" * 10, 10), (b"y" * 20, 20))
messages = (Message * 2)((None, 0, parts, 2), (None, 0, parts, 1))
assert ctypes.CDLL(None).sendmmsg(client.fileno(), messages, 2, 0) == 2
"""


@pytest.mark.parametrize(
    ("write", "sizes"),
    [
        ("client.send(bytes(10)); client.send(bytes(20))", [10, 30]),
        ("os.write(client.fileno(), bytes(10))", [10]),
        ("os.writev(client.fileno(), [bytes(10), bytes(5)])", [15]),
        ("client.sendmsg([bytes(10), bytes(7)])", [17]),
        ("client.sendto(bytes(9), client.getpeername())", [9]),
        ("file = open(sys.executable, 'rb'); os.sendfile(client.fileno(), file.fileno(), 0, 1000)", [1000]),
        (SHORT_FILE, [200]),
        (PIPE, [500]),
        (MESSAGES, [40]),
    ],
)
def test_each_writing_call_reports_its_bytes(
    parts: Path,
    reports: Reports,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: str,
    sizes: list[int],
) -> None:
    monkeypatch.chdir(tmp_path)
    records = demand(parts, reports, f"client, server = connect()\n{write}{PORT}client.close()")
    assert records == [*((WRITTEN, size) for size in sizes), (CLOSED, sizes[-1])]


def test_a_mapped_address_is_an_address(parts: Path, reports: Reports) -> None:
    script = f"client, server = connect(socket.AF_INET6)\nclient.send(b'abc'){PORT}"
    assert demand(parts, reports, script) == [(WRITTEN, 3), (CLOSED, 3)]


def test_other_descriptors_report_nothing(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect()\n"
        "udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.sendto(b'x', ('127.0.0.1', 9))\n"
        "six = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
        "end = socket.create_connection(six.getsockname()[:2])\n"
        "end.send(b'x'); pair = socket.socketpair(); pair[0].send(b'x'); os.write(os.pipe()[1], b'x')" + PORT
    )
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    run(sys.executable, "-c", CONNECTED + script, env=environment)
    assert reports.all() == []


def test_demand_is_known_before_a_call_blocks_and_corrected_after_it(parts: Path, reports: Reports) -> None:
    script = (
        "import time\n"
        "client, server = connect(read=False)\n"
        "client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (1).to_bytes(8, 'little') + bytes(8))\n"
        f"sent = client.send(bytes(100_000_000)){PORT}"
        "print(sent, file=sys.stderr)"
    )
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    with subprocess.Popen(
        [sys.executable, "-c", CONNECTED + script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        kind, _, written = reports.next()
        assert (kind, written, program.poll()) == (WRITTEN, 100_000_000, None)
        _, errors = program.communicate(timeout=20)
    sent = int(errors)
    assert 0 < sent < 100_000_000
    assert [(kind, written) for kind, _, written in reports.all()][:2] == [(WRITTEN, sent), (CLOSED, sent)]


def test_a_connection_is_closed_with_its_last_descriptor(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect(); client.send(bytes(10))\n"
        "one, two = os.dup(client.fileno()), os.dup2(client.fileno(), 77)\n"
        "os.write(one, bytes(5)); os.close(one); client.send(bytes(1)); os.write(two, bytes(2))"
        f"{PORT}client.close(); os.write(two, bytes(4)); os.close(two)"
    )
    assert demand(parts, reports, script) == [(WRITTEN, n) for n in (10, 15, 16, 18, 22)] + [(CLOSED, 22)]


def test_a_number_that_is_used_again_is_another_connection(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect(); client.send(bytes(10)); number = client.fileno(); other = connect()[0]; "
        "other.send(bytes(3))\n"
        "os.dup2(other.fileno(), number); client.send(bytes(20)); print(other.getsockname()[1])"
    )
    assert demand(parts, reports, script) == [(WRITTEN, 3), (WRITTEN, 23), (CLOSED, 23)]


def test_a_fork_shares_the_sum_and_the_last_process_closes(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect(); client.send(bytes(10)); go = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.read(go[0], 1); client.send(bytes(5)); os._exit(0)\n"
        f"client.send(bytes(1)){PORT}client.close(); os.write(go[1], b'x'); os.waitpid(child, 0)"
    )
    assert demand(parts, reports, script) == [(WRITTEN, 10), (WRITTEN, 11), (WRITTEN, 16), (CLOSED, 16)]


def test_a_program_that_inherits_a_socket_continues_the_sum(parts: Path, reports: Reports) -> None:
    script = (
        "import subprocess\n"
        "client, server = connect(); client.send(bytes(10))\n"
        "number = client.fileno()\n"
        "subprocess.run(['sh', '-c', f'printf abc >&{number}'], pass_fds=[number], check=True)" + PORT
    )
    records = demand(parts, reports, script)
    assert (WRITTEN, 13) in records
    # The processes that close their copies meanwhile may report an end; a later record corrects it.
    assert records[0] == (WRITTEN, 10)


def test_shutdown_is_a_close(parts: Path, reports: Reports) -> None:
    script = f"client, server = connect(); client.send(bytes(10)); client.shutdown(socket.SHUT_WR){PORT}"
    assert demand(parts, reports, script) == [(WRITTEN, 10), (CLOSED, 10), (CLOSED, 10)]


def test_a_program_runs_without_a_switch(parts: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    script = CONNECTED + "client, server = connect(); print(client.send(bytes(10))); os.closerange(3, 2000)"
    assert run(sys.executable, "-c", script, env=environment) == "10\n"
    environment["LEEWARD_ADU_SOCKET"] = str(tmp_path / "none")
    assert run(sys.executable, "-c", script, env=environment) == "10\n"
    environment["LEEWARD_ADU_SOCKET"] = "/" + "x" * 108
    result = subprocess.run(["echo", "ran"], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (127, "")
    assert "LEEWARD_ADU_SOCKET=/xx" in result.stderr
    assert result.stderr.count("\n") == 1


SINK = """
import os, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
print("listening", listener.getsockname()[1], flush=True)
while True:
    end, _ = listener.accept()
    time.sleep(0.1)
    try:
        while end.recv(1 << 16): pass
        end.sendall(bytes(777))
    except ConnectionResetError:
        pass
    end.close()
"""
"""A server that reads late, and answers at the end with 777 bytes."""


@contextmanager
def sink(cgroup: Path) -> Iterator[int]:
    """The port of a server."""
    command = inside(cgroup, sys.executable, "-c", SINK)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            yield int(program.stdout.readline().split()[1])
        finally:
            program.kill()


@pytest.mark.parametrize(
    ("size", "writes", "how"),
    [(1000, 3, "close"), (20_000_000, 1, "close"), (500, 2, "exit"), (1000, 2, "reset")],
)
@repeated
def test_the_kernel_tells_the_demand_of_a_static_program(
    loader: Path, programs: Path, cgroup: Path, reports: Reports, size: int, writes: int, how: str
) -> None:
    reports.all()
    records: list[Report] = []
    arguments = ("--cgroup", cgroup, "--adu", f"{reports.path},every_us=500")
    with loaded(loader, *arguments) as program, sink(cgroup) as port:
        command = inside(cgroup, programs / "talk", str(port), str(size), str(writes), how)
        own = int(run(*command))
        for _ in range(100):
            time.sleep(0.1)
            records += reports.all()
            written, closed = ({ends for kind, ends, _ in records if kind == k} for k in (WRITTEN, CLOSED))
            if ("127.0.0.1", own, "127.0.0.1", port) in closed and written <= closed:
                break
        # Nothing comes after the end.
        time.sleep(0.2)
        assert end(program) == {}
    records += reports.all()
    client = [
        (kind, written) for kind, ends, written in records if ends == ("127.0.0.1", own, "127.0.0.1", port)
    ]
    server = [
        (kind, written) for kind, ends, written in records if ends == ("127.0.0.1", port, "127.0.0.1", own)
    ]
    assert len(client) + len(server) == len(records)
    sums = [written for kind, written in client if kind == WRITTEN]
    assert sums == sorted(set(sums))
    assert client[-2:] == [(WRITTEN, size * writes), (CLOSED, size * writes)]
    if size == 1000:
        assert sums == [1000 * (n + 1) for n in range(writes)]
    assert [kind for kind, _ in client].count(CLOSED) == 1
    # The server writes and closes at once: its sum is in both records, or in the end alone.
    assert how == "reset" or server in ([(WRITTEN, 777), (CLOSED, 777)], [])
