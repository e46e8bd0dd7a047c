"""Labs with circuits that stand for programs, by commands and from Python."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leeward import lab
from leeward.errors import InputError
from support.fixtures import LEEWARD
from support.labs import DILATION, OWN, left, nothing_left, scenario

Run = Callable[..., subprocess.CompletedProcess[str]]
BYTES = 3_000_000
RECEIVE = """
import socket
server = socket.create_server(("0.0.0.0", 5001))
print("ready", flush=True)
connection, count = server.accept()[0], 0
while data := connection.recv(1 << 16):
    count += len(data)
print(count)
"""
SEND = """
import socket, sys
socket.create_connection((sys.argv[1], 5001)).sendall(bytes(int(sys.argv[2])))
"""
ELAPSED = "import time; start = time.monotonic(); time.sleep(0.005); print(time.monotonic() - start)"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Requires root, and checks that a test leaves nothing behind."""
    with nothing_left():
        yield


def idle(**fields: Any) -> dict[str, Any]:
    """A scenario for programs of the tests."""
    return scenario(workload={"long": {"from": 0, "to": 1}}, **fields)


def transfer(circuits: lab.StandingLab, size: int) -> None:
    """Sends bytes from the first rack to the second one, and checks that they arrive."""
    receive, send = ([sys.executable, "-c", code] for code in (RECEIVE, SEND))
    with circuits.start("r1h0", receive, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        circuits.run("r0h0", [*send, circuits.machine("r1h0").address, str(size)], timeout=60)
        assert receiver.stdout.read() == f"{size}\n"


def view_after(circuits: lab.StandingLab, is_reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first view of a lab that has what a test waits for."""
    for _ in range(200):
        view = circuits.view()
        if is_reached(view):
            return view
        time.sleep(0.05)
    raise AssertionError(view)


def test_programs_send_by_packets_and_circuits_in_virtual_time() -> None:
    with lab.stand_up(idle(), name=f"{OWN}-stand", dilation=DILATION) as circuits:
        assert [host.name for host in circuits.hosts] == ["r0h0", "r1h0", "r2h0"]
        assert circuits.dilation == DILATION
        mine = next(each for each in lab.labs() if each.name == circuits.name)
        assert (mine.up, mine.stands, mine.hosts, mine.problem) == (True, True, 3, None)
        start = time.monotonic()
        virtual = float(circuits.run("r0h0", [sys.executable, "-c", ELAPSED]).stdout)
        assert 0.005 <= virtual < 0.05
        assert time.monotonic() - start >= 0.005 * DILATION
        transfer(circuits, BYTES)
        view = view_after(circuits, lambda view: view["packet_bytes"][0] + view["circuit_bytes"][0] > BYTES)
        assert view["packet_bytes"][0] > 0
        assert view["circuit_bytes"][0] > 0
        assert view["racks"] == 3
        assert view["dilation"] == DILATION
    with pytest.raises(OSError, match="not up"):
        circuits.view()


def test_a_schedule_follows_what_programs_write() -> None:
    follows = idle(scheduler={"name": "solstice", "demand": "adu"})
    with lab.stand_up(follows, name=f"{OWN}-adu", dilation=DILATION) as circuits:
        before = view_after(circuits, lambda view: view["at_s"] > 0)
        assert (sum(before["circuit_bytes"]), sum(before["demand_bytes"])) == (0, 0)
        # Packets alone take 8 ms of virtual time, and a week 1.4 ms.
        transfer(circuits, 10_000_000)
        after = view_after(circuits, lambda view: view["circuit_bytes"][0] > 0)
        # Only acknowledgements come from other racks.
        assert after["circuit_bytes"][2] == 0


def test_what_a_program_wrote_before_it_ended_is_demand_until_it_is_sent() -> None:
    follows = idle(scheduler={"name": "solstice", "demand": "adu"})
    # Its kernel then sends the rest of its buffer for a second or more.
    with lab.stand_up(follows, name=f"{OWN}-ends", dilation=10 * DILATION) as circuits:
        receive, send = ([sys.executable, "-c", code] for code in (RECEIVE, SEND))
        with circuits.start("r1h0", receive, stdout=subprocess.PIPE) as receiver:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "ready\n"
            circuits.run("r0h0", [*send, circuits.machine("r1h0").address, str(BYTES)], timeout=60)
            ended_s = circuits.view()["at_s"]
            view = view_after(circuits, lambda view: view["at_s"] > ended_s)
            assert 0 < view["demand_bytes"][1] < BYTES
            assert receiver.stdout.read() == f"{BYTES}\n"
        assert sum(view_after(circuits, lambda view: not sum(view["demand_bytes"]))["demand_bytes"]) == 0


def test_commands_bring_up_a_lab_with_circuits_and_show_and_remove_it(run: Run, tmp_path: Path) -> None:
    name, file = f"{OWN}-cli", tmp_path / "scenario.json"
    file.write_text(json.dumps(idle()))
    result = run("lab", "up", str(file), "--dilation", str(DILATION), "--name", name, "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["name"], document["dilation"]) == (name, DILATION)
    assert [host["address"] for host in document["hosts"]] == ["10.0.0.2", "10.1.0.2", "10.2.0.2"]
    result = run("lab", "up", str(file), "--dilation", str(DILATION), "--name", name)
    assert (result.returncode, f"lab `{name}` is up: choose another name" in result.stderr) == (1, True)

    # The command becomes the program, so it needs a process of its own.
    ping = ["ping", "-c", "2", "-i", "0.002", "-W", "0.1", "r1h0"]
    words = [str(LEEWARD), "lab", "exec", "--name", name, "--host", "r0h0", "--", *ping]
    replies = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (replies.returncode, "2 received" in replies.stdout) == (0, True)

    result = run("lab", "top", "--name", name, "--once", "--every", "300ms", "-o", "json")
    assert result.returncode == 0, result.stderr
    view = json.loads(result.stdout)
    assert (view["racks"], view["dilation"], len(view["packet_bps"])) == (3, DILATION, 3)
    assert view["packet_bytes"][0] + view["circuit_bytes"][0] > 0
    table = run("lab", "top", "--name", name, "--once", "--every", "300ms").stdout.splitlines()
    assert table[0].startswith(f"lab {name}, ")
    assert [line.split()[0] for line in table[1:]] == ["RACK", "r0", "r1", "r2"]
    listed = json.loads(run("lab", "list", "-o", "json").stdout)["labs"]
    assert next(each for each in listed if each["name"] == name)["stands"]

    result = run("lab", "down", "--name", name, "-o", "json")
    assert (result.returncode, json.loads(result.stdout)) == (0, {"removed": [name]})
    result = run("lab", "top", "--name", name, "--once")
    assert (result.returncode, "not up" in result.stderr) == (1, True)


def test_two_labs_with_circuits_are_up_at_once() -> None:
    with (
        lab.stand_up(idle(), name=f"{OWN}-one", dilation=DILATION) as one,
        lab.stand_up(idle(), name=f"{OWN}-two", dilation=2 * DILATION) as two,
    ):
        ping = ["ping", "-c", "1", "-W", "0.1", "r2h0"]
        for circuits in (one, two):
            assert circuits.run("r0h0", ping).returncode == 0
        with pytest.raises(OSError, match="choose another name"):
            lab.stand_up(idle(), name=two.name, dilation=DILATION)
        one.down()
        assert left(one.name) == []
        assert two.run("r0h0", ping).returncode == 0


def test_down_removes_what_a_killed_lab_with_circuits_left(run: Run) -> None:
    name = f"{OWN}-kill"
    circuits = lab.stand_up(idle(), name=name, dilation=DILATION)
    sleeping = circuits.start("r1h0", ["sh", "-c", "echo ready; exec sleep 600"], stdout=subprocess.PIPE)
    with sleeping:
        assert sleeping.stdout is not None
        assert sleeping.stdout.readline() == "ready\n"
        process = next(each.process for each in lab.labs() if each.name == name)
        assert process is not None
        os.kill(process, signal.SIGKILL)
        for _ in range(200):
            if not next(each for each in lab.labs() if each.name == name).up:
                break
            time.sleep(0.05)
        assert len([each for each in left(name) if "netns" in each]) >= 3
        result = run("lab", "exec", "--name", name, "--host", "r0h0", "--", "true")
        assert (result.returncode, f"lab `{name}`: not up" in result.stderr) == (1, True)
        result = run("lab", "down", "--name", name)
        assert (result.returncode, f"removed lab {name}" in result.stderr) == (0, True)
        assert sleeping.wait(timeout=20) != 0
    assert left(name) == []


def test_an_exception_of_a_scheduler_ends_a_lab_that_stands_and_commands_show_it(run: Run) -> None:
    name, is_ready = f"{OWN}-raise", threading.Event()

    def broken(demand: Any, network: Any) -> Any:
        if is_ready.is_set():
            raise KeyError("no idea")
        return [("180us", [(0, 1)])]

    with pytest.raises(KeyError, match="no idea"):
        lab.stand(
            idle(scheduler={"name": broken, "demand": "adu"}),
            name=name,
            dilation=DILATION,
            ready=lambda _: is_ready.set(),
        )
    failure = next(each for each in lab.failures() if each.name == name)
    assert failure.text == "KeyError: 'no idea'"
    assert time.time() - 60 < failure.at_s <= time.time()
    not_up = f"lab `{name}`: not up: ended by an error: KeyError: 'no idea'"
    for words in (("top", "--once"), ("exec", "--host", "r0h0")):
        program = ("--", "true") if words[0] == "exec" else ()
        result = run("lab", words[0], "--name", name, *words[1:], *program)
        assert (result.returncode, not_up in result.stderr) == (1, True), result.stderr
    result = run("lab", "list", "-o", "json")
    assert f"warning: lab {name} ended with an error at 20" in result.stderr
    assert [each["text"] for each in json.loads(result.stdout)["failures"] if each["name"] == name]
    result = run("lab", "down", "--name", name)
    assert (result.returncode, f"lab {name} ended with an error" in result.stderr) == (0, True)
    assert left(name) == []


def test_an_error_before_a_lab_is_ready_is_not_recorded() -> None:
    def broken(demand: Any, network: Any) -> Any:
        raise KeyError("no idea")

    name = f"{OWN}-early"
    follows = idle(scheduler={"name": broken, "demand": "adu"})
    with pytest.raises(InputError, match=r"functions of Python stay in this process: `lab\.stand`"):
        lab.stand_up(follows, name=name)
    with lab.stand_up(idle(), name=name, dilation=DILATION) as circuits:
        with pytest.raises(OSError, match="choose another name"):
            lab.stand(idle(), name=name, dilation=DILATION, ready=print)
        assert circuits.view()["remarks"] == []
    assert lab.failures() == [each for each in lab.failures() if each.name != name]


def test_down_removes_a_lab_with_a_broken_state_file(run: Run) -> None:
    name = f"{OWN}-broken"
    circuits = lab.stand_up(idle(), name=name, dilation=DILATION)
    process = next(each.process for each in lab.labs() if each.name == circuits.name)
    assert process is not None
    os.kill(process, signal.SIGKILL)
    while Path(f"/proc/{process}").exists():
        time.sleep(0.05)
    Path(f"/run/leeward-labs/{name}.json").write_text("{")
    result = run("lab", "down", "--name", name)
    assert (result.returncode, f"removed lab {name}" in result.stderr) == (0, True), result.stderr
    assert left(name) == []


def test_an_invalid_scenario_is_named_and_brings_up_nothing(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"scheduler\.demand: programs report `adu`"):
        lab.stand_up(idle(scheduler={"name": "solstice", "demand": "socket"}), name=f"{OWN}-no")
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(idle()))
    result = run("lab", "up", str(file), "--scale", "10")
    assert (result.returncode, "--scale: is for cluster files" in result.stderr) == (2, True)
    # Scenarios have defaults for the network.
    file.write_text("workload: {long: {from: 0, to: 1}}\n")
    result = run("lab", "up", str(file), "--scale", "10")
    assert (result.returncode, "--scale: is for cluster files" in result.stderr) == (2, True)


def test_the_share_of_hosts_that_are_up_is_reported_and_an_exception_removes_them() -> None:
    shares: list[float] = []
    with lab.stand_up(idle(), name=f"{OWN}-share", dilation=DILATION, progress=shares.append):
        assert shares == sorted(shares)
        assert shares[0] == 0
        assert 0.5 < shares[-1] <= 1

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.stand_up(idle(), name=f"{OWN}-stop", dilation=DILATION, progress=stop)
    assert left(f"{OWN}-stop") == []
