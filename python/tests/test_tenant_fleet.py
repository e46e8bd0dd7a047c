"""`leeward tenant run`: a host that fails is named, and nothing is left when a run ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from leeward import tenant
from leeward.tenant.fleet import Fleet
from support.fixtures import LEEWARD
from support.parts import require, require_root
from support.tenant import app_file, here, left_over, nothing_is_left


def test_a_command_that_fails_ends_the_others(tmp_path: Path) -> None:
    text = (
        "tasks:\n  - {name: a, cpus: 1, command: 'sleep 0.3; exit 3'}\n"
        "  - {name: b, cpus: 1, command: 'sleep 87.123 & sleep 87.123'}\n"
    )
    with (
        nothing_is_left("87.123"),
        pytest.raises(tenant.HostError, match=r"^host h\d: the command of task a ended with code 3$"),
    ):
        tenant.run(app_file(tmp_path, text), here("", ""), port=0)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("no-such-program", "host h1: no-such-program: No such file or directory"),
        ("sh -c 'echo refused >&2; exit 255'", "host h1: the helper ended with code 255: refused"),
        ("sh -c 'sleep 60'", "host h1: no answer within 2 s"),
    ],
)
def test_a_host_that_does_not_start_a_helper_is_named(start: str, expected: str) -> None:
    with pytest.raises(tenant.HostError) as error, Fleet(here("", start), port=0, answer_s=2):
        pass
    assert str(error.value) == expected


def test_a_helper_that_dies_during_a_transfer_is_the_named_cause() -> None:
    with Fleet(here("", ""), port=0) as fleet:
        helper = fleet._helpers["h1"]
        # Far more than arrives before the helper is killed.
        fleet.send(fleet.next_number(), "h0", "h1", 10**13)
        os.kill(helper.pid, signal.SIGKILL)
        with pytest.raises(tenant.HostError, match=r"^host h1: the helper ended by signal 9"):
            fleet.event(10)


def test_nothing_is_left_if_the_coordinator_is_killed(tmp_path: Path) -> None:
    text = "tasks: [{name: a, count: 2, cpus: 1, command: 'echo ready; sleep 91.7 & sleep 91.7'}]\n"
    hosts = ("--hosts", "x=127.0.0.1,y=127.0.0.1", "--run", "env MARK=tenant-91.7")
    command = (str(LEEWARD), "tenant", "run", str(app_file(tmp_path, text)), *hosts, "--host-cpus", "1")
    with (
        nothing_is_left("91.7"),
        subprocess.Popen([*command, "--data-port", "0"], stderr=subprocess.PIPE, text=True) as run,
    ):
        assert run.stderr is not None
        assert any(line.endswith(": ready\n") for line in run.stderr)
        assert left_over("91.7")
        run.kill()


def test_a_stopped_transfer_has_exactly_the_bytes_that_arrived() -> None:
    with Fleet(here("", ""), port=0) as fleet:
        number = fleet.next_number()
        fleet.send(number, "h0", "h1", 10**13)
        received = 0
        while not received:
            fleet.order("h1", "progress")
            event = fleet.event(10)
            assert event is not None
            received = event["bytes"].get(str(number), 0)
        fleet.order("h0", "stop", id=number)
        event = fleet.event(10)
        assert event is not None
        assert received <= event["bytes"] < 10**13


def test_strangers_cannot_send_to_a_host() -> None:
    with Fleet(here("", ""), port=0) as fleet:
        with socket.create_connection(("127.0.0.1", fleet.ports["h1"]), 10) as stranger:
            stranger.sendall(b"0" * 48)
            stranger.settimeout(10)
            assert stranger.recv(1) == b""
        fleet.order("h1", "progress")
        event = fleet.event(10)
        assert event is not None
        assert event["bytes"] == {}


def test_a_host_that_gives_no_sign_of_life_is_named() -> None:
    with Fleet(here("", ""), port=0, silent_s=3) as fleet:
        # A host that only works lives.
        assert fleet.event(4) is None
        os.kill(fleet._helpers["h1"].pid, signal.SIGSTOP)
        with pytest.raises(tenant.HostError, match=r"^host h1: no answer within 3 s$"):
            fleet.event(30)


def test_a_helper_without_orders_ends_with_its_commands() -> None:
    code = "import sys; from leeward.tenant.worker import main; main(sys.stdin, sys.stdout, silent_s=2)"
    order = {"do": "command", "id": 1, "line": "echo ready; sleep 93.1 & sleep 93.1", "environment": {}}
    with (
        nothing_is_left("93.1"),
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as helper,
    ):
        assert helper.stdin is not None
        assert helper.stdout is not None
        helper.stdin.write(json.dumps(order) + "\n")
        helper.stdin.flush()
        assert json.loads(helper.stdout.readline())["line"] == "ready"
        assert helper.wait(20) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_helper_that_is_stopped_ends_its_commands(number: signal.Signals) -> None:
    with nothing_is_left("94.1"), Fleet(here("", ""), port=0) as fleet:
        line = "echo ready; sleep 94.1 & sleep 94.1"
        fleet.order("h1", "command", id=1, line=line, environment={})
        event = fleet.event(10)
        assert event is not None
        assert event["line"] == "ready"
        os.kill(fleet._helpers["h1"].pid, number)
        with pytest.raises(tenant.HostError, match=f"^host h1: the helper ended with code {128 + number}"):
            fleet.event(10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_capture_ends_with_its_helper(number: signal.Signals, tmp_path: Path) -> None:
    require_root()
    require("tcpdump", package="tcpdump")
    require("ip", package="iproute2")
    mark = "dst host 127.0.0.77"
    with nothing_is_left(mark), Fleet(here(f"env TMPDIR={tmp_path}", ""), port=0) as fleet:
        fleet.order("h0", "capture", own="127.0.0.1", others=["127.0.0.77"])
        fleet.answers("capturing", ["h0"])
        assert left_over(mark)
        os.kill(fleet._helpers["h0"].pid, number)
        with pytest.raises(tenant.HostError, match=r"^host h0: the helper ended"):
            fleet.event(10)
    if number == signal.SIGTERM:
        assert list(tmp_path.iterdir()) == []
