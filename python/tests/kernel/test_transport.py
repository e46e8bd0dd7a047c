"""Timers, reTCP and TDTCP of the lab, in connections between two hosts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.kernel import TESTS, end, inside, limited, loaded, name_of, run, server, within
from support.repeats import repeated

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
