"""Captures of real programs: tcpdump on a veth pair, and exports of softflowd."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leeward.matrix import capture
from support.labs import ADDRESSES, DEVICE, two_hosts
from support.parts import require, require_root

SENDER = """
import socket, sys
to, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.bind(("", 4000))
    for _ in range(count):
        sender.sendto(bytes(size), (to, 5000))
"""
HEADERS = 14 + 20 + 8
SENT = {ADDRESSES: (200, 1000), ADDRESSES[::-1]: (50, 300)}
"""Number of packets in each direction, and bytes of payload in each packet."""


def need(program: str) -> None:
    """Requires namespaces and a program."""
    require_root()
    require("ip", package="iproute2")
    require(program)


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[str, str]]:
    """Namespaces of two hosts of a lab."""
    need("tcpdump")
    with two_hosts() as names:
        yield names


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@contextmanager
def run_tcpdump(namespace: str, interface: str, to: Path, *arguments: str) -> Iterator[None]:
    """Captures the traffic that is sent inside the `with` block."""
    command = [
        "ip",
        "netns",
        "exec",
        namespace,
        "tcpdump",
        "-i",
        interface,
        "-U",
        "-Z",
        "root",
        "-w",
        str(to),
        *arguments,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as dump:
        try:
            assert dump.stderr is not None
            # tcpdump prints this once it captures packets.
            assert any("listening on" in line for line in dump.stderr)
            yield
            settle(to)
        finally:
            dump.send_signal(signal.SIGINT)
            dump.wait(timeout=20)


def settle(path: Path, least: int = 24, seconds: float = 2, most: float = 30) -> None:
    """Waits until a capture has more than its header and has not grown for a while."""
    size, since, start = -1, time.monotonic(), time.monotonic()
    while time.monotonic() - start < most:
        now = path.stat().st_size if path.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        elif size > least and time.monotonic() - since > seconds:
            return
        time.sleep(0.05)


@pytest.fixture(scope="module")
def tcpdump_file(ends: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of packets in both directions."""
    path = tmp_path_factory.mktemp("dumped") / "two.pcap"
    with run_tcpdump(ends[0], DEVICE, path, "-s", "64", "udp port 5000"):
        for namespace, ((_, to), (count, size)) in zip(ends, SENT.items(), strict=True):
            run("ip", "netns", "exec", namespace, sys.executable, "-c", SENDER, to, str(count), str(size))
    return path


def test_a_tcpdump_between_hosts_gives_the_sent_packets_and_bytes(tcpdump_file: Path) -> None:
    result = capture(tcpdump_file, interval="12h")
    rows = {(row["src"], row["dst"]): (row["packets"], row["bytes"]) for row in result.total().to_pylist()}
    assert rows == {pair: (count, count * (size + HEADERS)) for pair, (count, size) in SENT.items()}
    assert result.discards.num_rows == 0


@pytest.mark.parametrize(
    ("flags", "protocol"),
    [
        ("-v 5", "netflow 5"),
        ("-v 9", "netflow 9"),
        ("-v 10", "ipfix"),
        ("-v 10 -A nano", "ipfix"),
        ("-v 10 -b", "ipfix"),
        ("-v psamp", "ipfix"),
    ],
)
def test_softflowd_exports_give_the_sent_packets_and_bytes(
    ends: tuple[str, str], tcpdump_file: Path, tmp_path: Path, flags: str, protocol: str
) -> None:
    need("softflowd")
    path = tmp_path / "exports.pcap"
    with run_tcpdump(ends[0], "lo", path, "udp port 2055"):
        collector = ("-n", "127.0.0.1:2055", *flags.split())
        run("ip", "netns", "exec", ends[0], "softflowd", "-d", "-r", str(tcpdump_file), *collector)
    result = capture(path, size="ip", interval="12h", sampling=1)
    rows = {(row["src"], row["dst"]): (row["packets"], row["bytes"]) for row in result.total().to_pylist()}
    assert rows == {pair: (count, count * (size + 28)) for pair, (count, size) in SENT.items()}
    # The packets were sent before softflowd started.
    times = capture(tcpdump_file, interval="12h").cells["t_s"]
    assert set(result.cells["t_s"].to_pylist()) == set(times.to_pylist())
    assert {row["reason"] for row in result.discards.to_pylist()} <= {"not-an-export"}
    [source] = result.sources.to_pylist()
    assert source["protocol"] == protocol
