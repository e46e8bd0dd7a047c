"""Runs of the lab whose packets or connections are lost outside the switch."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leeward import lab
from support.fixtures import LEEWARD
from support.labs import BOUND, DILATION, OWN, nothing_left, scenario
from support.parts import require
from support.repeats import repeated

DATAGRAMS = """
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(100):
    sender.sendto(bytes(100), ("10.1.0.2", 9))
"""
STRANGERS = """
import socket
for _ in range(20):
    # The lab closes a connection of no flow at once.
    assert socket.create_connection(("10.1.0.2", 5001), timeout=20).recv(1) == b""
"""
LONG = {"long": {"from": 0, "to": 1, "flows": 2}}


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Requires root, and checks that a test leaves nothing behind."""
    with nothing_left():
        yield


@contextmanager
def running(folder: Path, **fields: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run whose flows have connected, and the beginning of the names of its namespaces."""
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario(**fields)))
    options = ["--dilation", str(DILATION), "--bound", BOUND, "-o", "json"]
    with subprocess.Popen(
        [str(LEEWARD), "lab", "run", str(file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            prefix = f"leeward-run-{process.pid}-0"
            for _ in range(600):
                if "ESTAB" in within(prefix, "r0h0", "ss", "-tnH", check=False):
                    break
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            yield process, prefix
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The output and the errors of a run, at its end."""
    output, errors = process.communicate(timeout=60)
    print(errors)
    return output, errors


def within(prefix: str, host: str, *command: str, check: bool = True) -> str:
    """Output of a program in the namespace of a host."""
    words = ["ip", "netns", "exec", f"{prefix}-{host}", *command]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0 or not check, result.stderr
    return result.stdout


def lose_in_device(pid: int, prefix: str, host: str) -> None:
    """Sends more datagrams than the device holds while its reader stands still."""
    within(prefix, host, "ip", "link", "set", "eth0", "txqueuelen", "1")
    os.kill(pid, signal.SIGSTOP)
    try:
        within(prefix, host, sys.executable, "-c", DATAGRAMS)
        # The queue of the NIC passes them on.
        time.sleep(0.1)
    finally:
        os.kill(pid, signal.SIGCONT)


@repeated
def test_a_run_is_refused_that_lost_packets_in_the_queue_of_a_nic(tmp_path: Path) -> None:
    with running(tmp_path, workload=LONG, horizon="20ms") as (process, prefix):
        # No second packet may wait.
        limit = ["rate", "10mbit", "burst", "10000", "limit", "10000"]
        within(prefix, "r0h0", "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *limit)
        output, errors = end(process)
    assert (process.returncode, output) == (1, "")
    assert "packets were lost outside the switch" in errors
    assert f"choose a larger dilation than {DILATION}" in errors
    lost, in_queues = (int(errors.split(word)[0].split()[-1]) for word in (" packets were", " of them in"))
    assert lost >= in_queues > 0


@repeated
def test_a_run_is_refused_that_lost_packets_at_the_device_of_a_host(tmp_path: Path) -> None:
    with running(tmp_path, workload=LONG, horizon="20ms") as (process, prefix):
        lose_in_device(process.pid, prefix, "r0h0")
        _, errors = end(process)
    assert process.returncode == 1
    assert "packets were lost outside the switch, 0 of them in queues of NICs" in errors


def test_a_lab_that_stands_shows_lost_packets(run: Callable[..., Any]) -> None:
    name = f"{OWN}-lost"
    with lab.stand_up(scenario(workload=LONG), name=name, dilation=DILATION) as circuits:
        assert circuits.view()["lost_packets"] == 0
        process = next(each.process for each in lab.labs() if each.name == name)
        assert process is not None
        lose_in_device(process, f"leeward-{name}", "r0h0")
        for _ in range(100):
            lost = circuits.view()["lost_packets"]
            if lost:
                break
            time.sleep(0.1)
        assert 0 < lost < 100
        result = run("lab", "top", "--name", name, "--once", "--every", "100ms")
        assert f"warning: {lost} packets were lost outside the switch" in result.stderr


def test_a_connection_that_ends_before_its_flow_ends_the_run(tmp_path: Path) -> None:
    require("ss", package="iproute2")
    with running(tmp_path, workload=LONG, horizon="10s") as (process, prefix):
        within(prefix, "r0h0", "ss", "-K", "dst", "10.1.0.2")
        output, errors = end(process)
    assert (process.returncode, output) == (1, "")
    assert "flow 0 from r0h0 to r1h0: " in errors or "flow 1 from r0h0 to r1h0: " in errors
    assert "onnection" in errors


def test_connections_of_no_flow_are_closed_and_do_not_disturb_a_run(tmp_path: Path) -> None:
    with running(tmp_path, workload=LONG, horizon="20ms") as (process, prefix):
        within(prefix, "r0h0", sys.executable, "-c", STRANGERS)
        output, errors = end(process)
    assert process.returncode == 0, errors
    assert json.loads(output)["totals"]["data_packets"] > 0
