"""`leeward tenant`: bytes of transfers are conserved, hosts are read, and nothing is left when a run ends."""

import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from leeward import InputError, tenant
from leeward.placement import Reevaluation
from leeward.tenant.execution import Execution
from leeward.tenant.fleet import Event, Fleet
from leeward.tenant.profile import matrix_of
from leeward.tenant.transfers import Transfers
from leeward.tenant.watch import Watch, worth_measuring
from test_capture_exports import sflow

Run = Callable[..., subprocess.CompletedProcess[str]]
LEEWARD = str(Path(sys.executable).with_name("leeward"))
APP = "tasks: [{name: a, cpus: 1}, {name: b, cpus: 1}]\ntransfers: [{from: a, to: b, bytes: 3MB}]\n"


@given(
    sizes=some.lists(some.integers(0, 1000), min_size=1, max_size=6),
    steps=some.lists(some.tuples(some.integers(0, 5), some.floats(0, 1), some.booleans()), max_size=40),
)
def test_bytes_are_conserved_however_transfers_stop_and_tasks_move(
    sizes: list[int], steps: list[tuple[int, float, bool]]
) -> None:
    names = [f"t{at}" for at in range(len(sizes) + 1)]
    pairs = zip(names, names[1:], sizes, strict=False)
    transfers = Transfers(
        [{"from": a, "to": b, "bytes": size} for a, b, size in pairs], dict.fromkeys(names, "h0")
    )
    now, sent = 0.0, 0
    for number, (at, share, moves) in enumerate(steps):
        now += 1.0
        transfer = transfers.all[at % len(sizes)]
        if transfer.ended:
            assert transfer.arrived == transfer.size
            continue
        piece = transfers.begin(transfer, number, now)
        assert piece.size == transfer.size - transfer.arrived
        transfers.progress(number, round(share * piece.size))
        transfers.progress(number, 0)
        (rows,) = transfers.matrices(names)
        left = sum(map(sum, rows))
        assert left == sum(one.size - one.arrived for one in transfers.all) - round(share * piece.size)
        transfers.end(number, round(share * piece.size), 1.0, now)
        sent += round(share * piece.size)
        if moves:
            transfers.where[transfer.source] = f"h{number}"
    assert sum(one.arrived for one in transfers.all) == sent
    assert all(one.ended == (one.arrived == one.size) for one in transfers.all if one.pieces)
    assert all(one.pieces == len(one.hosts) for one in transfers.all)


def test_more_bytes_than_sent_are_an_error() -> None:
    transfers = Transfers([{"from": "a", "to": "b", "bytes": 10}], {"a": "x", "b": "y"})
    transfers.begin(transfers.all[0], 1, 0.0)
    with pytest.raises(ValueError, match="11 bytes arrived of 10"):
        transfers.end(1, 11, 1.0, 1.0)


class Orders(Fleet):
    """A fleet that notes orders and carries out none."""

    def __init__(self, hosts: Sequence[tenant.Host]) -> None:
        super().__init__(hosts)
        self.orders: list[tuple[str, str, int, int]] = []

    def order(self, host: str, do: str, **fields: Any) -> None:
        self.orders.append((host, do, fields.get("id", 0), fields.get("bytes", 0)))

    def send(self, number: int, source: str, target: str, size: int) -> None:
        self.orders.append((f"{source}>{target}", "send", number, size))


def sent(number: int, size: int) -> Event:
    return {"event": "sent", "id": number, "bytes": size, "seconds": 1.0, "host": ""}


def test_a_moved_task_takes_its_state_along_and_sends_the_rest_from_there() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    transfers = [{"from": "a", "to": "b", "bytes": 100}, {"from": "c", "to": "b", "bytes": 50}]
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": transfers}
    now = 0.0
    run = Execution(fleet, app, {"a": "x", "b": "y", "c": "y"}, state_bytes=7, clock=lambda: now)
    run.begin()
    assert fleet.orders == [("x>y", "send", 1, 100), ("y>y", "send", 2, 50)]
    run.pause()
    assert fleet.orders[2:] == [("x", "stop", 1, 0), ("y", "stop", 2, 0)]
    run.handle(sent(1, 30))
    run.handle(sent(2, 20))
    assert run.quiet
    now = 2.0
    run.move("a", "z")
    run.resume()
    # The state goes first; the transfer that has nothing to do with the task continues at once.
    assert fleet.orders[4:] == [("x>z", "send", 3, 7), ("y>y", "send", 4, 30)]
    now = 3.0
    run.handle(sent(3, 7))
    assert fleet.orders[6:] == [("z>y", "send", 5, 70)]
    assert run.ended_s is None
    run.handle(sent(4, 30))
    now = 5.0
    run.handle(sent(5, 70))
    assert run.ended_s == 5.0
    assert [(move.began_s, move.ended_s) for move in run.moves] == [(2.0, 3.0)]
    assert run.transfers.all[0].hosts == [("x", "y"), ("z", "y")]


@pytest.mark.parametrize(
    ("observed_s", "forecast_s", "measured", "reason"),
    [
        (30.0, 30.0, False, "transfers end as the forecast says"),
        (20.0, 30.0, False, "transfers end as the forecast says"),
        (34.0, 30.0, False, "at most 4 s can be saved; a measurement takes 5 s"),
        (36.0, 30.0, True, "transfers end 6 s later than the forecast says"),
        (math.inf, 30.0, True, "a transfer makes no progress"),
        (36.0, None, True, "a transfer makes no progress"),
    ],
)
def test_a_measurement_must_cost_less_than_it_may_save(
    observed_s: float, forecast_s: float | None, measured: bool, reason: str
) -> None:
    assert worth_measuring(observed_s, forecast_s, 5.0) == (measured, reason)


def test_a_watch_pauses_a_late_run_measures_and_moves() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {
        "tasks": [{"task": task, "command": None} for task in "ab"],
        "transfers": [{"from": "a", "to": "b", "bytes": 1000}],
    }
    now = 0.0
    run = Execution(fleet, app, {"a": "x", "b": "y"}, clock=lambda: now)
    judged: list[tuple[str, float]] = []

    def judge(network: dict[str, Any], transfers: Transfers, of_phase: bool) -> Reevaluation:
        left = transfers.all[0].left
        assert of_phase == (network["name"] == "old")
        judged.append((network["name"], left))
        moves = [{"task": "a", "from": "x", "to": "z"}] if network["name"] == "new" else []
        slow = 10 if network["name"] == "new" else 1
        return Reevaluation(moves, left / 100 * slow, left / 100, 1.0, 0.0, bool(moves), "why", "", "")

    survey = tenant.Survey({"name": "new"}, None, 0.5, 77)
    watch = Watch(
        fleet, run, every_s=2.0, survey_s=1.0, believed={"name": "old"}, judge=judge, measure=lambda: survey
    )
    run.begin()
    watch.step()
    assert len(fleet.orders) == 1
    now = 2.0
    watch.step()
    watch.step()
    assert [do for _, do, *_ in fleet.orders[1:]] == ["progress"] * 3
    for host, received in (("x", {}), ("y", {"1": 100}), ("z", {})):
        event = {"event": "progress", "host": host, "bytes": received}
        run.handle(event)
        watch.note(event)
    # 900 bytes at 50 a second take 18 s; the forecast says 9.
    assert judged == [("old", 900)]
    assert (watch.looks[0]["observed_s"], watch.looks[0]["forecast_s"]) == (18.0, 9.0)
    assert fleet.orders[4:] == [("x", "stop", 1, 0)]
    watch.step()
    assert len(judged) == 1
    run.handle(sent(1, 120))
    watch.step()
    assert judged[1:] == [("new", 880)]
    assert fleet.orders[5:] == [("z>y", "send", 2, 880)]
    look = watch.looks[0]
    assert (look["bytes"], look["before_s"], look["after_s"]) == (77, 88.0, 8.8)


PHASES = [
    {"from": "a", "to": "b", "bytes": 100, "phase": 0},
    {"from": "b", "to": "c", "bytes": 60, "phase": 1},
    {"from": "a", "to": "c", "bytes": 50, "phase": 1},
]


def test_a_phase_begins_when_the_earlier_one_has_ended() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": PHASES}
    run = Execution(fleet, app, {"a": "x", "b": "y", "c": "z"}, clock=lambda: 0.0)
    run.begin()
    assert fleet.orders == [("x>y", "send", 1, 100)]
    assert run.transfers.matrices(["a", "b", "c"]) == [
        [[0, 100, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 50], [0, 0, 60], [0, 0, 0]],
    ]
    run.handle(sent(1, 100))
    assert fleet.orders[1:] == [("y>z", "send", 2, 60), ("x>z", "send", 3, 50)]
    assert run.transfers.matrices(["a", "b", "c"], of_phase=True)[0] == [[0] * 3] * 3
    run.handle(sent(2, 60))
    assert run.ended_s is None
    run.handle(sent(3, 50))
    assert run.ended_s == 0.0


def test_a_watch_moves_tasks_between_phases_without_a_measurement() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": PHASES}
    where = {"a": "x", "b": "y", "c": "z"}
    run = Execution(fleet, app, where, waits_between_phases=True, clock=lambda: 3.0)

    def judge(network: dict[str, Any], transfers: Transfers, of_phase: bool) -> Reevaluation:
        assert network == {"name": "old"}
        moves = [{"task": "c", "from": "z", "to": "y"}]
        return Reevaluation(moves, 9.0, 4.0, 5.0, 0.0, True, "why", "", "")

    def measure() -> tenant.Survey:
        raise AssertionError("nothing is measured")

    watch = Watch(
        fleet, run, every_s=60.0, survey_s=1.0, believed={"name": "old"}, judge=judge, measure=measure
    )
    run.begin()
    watch.step()
    assert watch.looks == []
    run.handle(sent(1, 100))
    assert run.between_phases
    assert len(fleet.orders) == 1
    watch.step()
    assert fleet.orders[1:] == [("y>y", "send", 2, 60), ("x>y", "send", 3, 50)]
    (look,) = watch.looks
    assert (look["reason"], look["because"], look["measured"]) == ("phase 1 begins", "why", False)
    watch.step()
    assert len(watch.looks) == 1


def test_a_hosts_file_has_defaults_for_all_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "run: ssh -p 22 {name}\ncpus: 4\nhosts:\n"
        "  - {name: a, address: 10.0.0.1}\n  - {name: b, address: '10.0.0.2:7700', cpus: 8, run: ''}\n"
    )
    a, b = tenant.read_hosts(file)
    assert (a.run, a.cpus, a.probe) == (("ssh", "-p", "22", "a"), "4", "10.0.0.1:7601")
    assert (b.run, b.cpus, b.probe) == ((), "8", "10.0.0.2:7700")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hosts: []", "hosts: expected a list of hosts"),
        ("hosts: [{name: a}]", "hosts[0]: expected the fields `name` and `address`"),
        ("hosts: [{name: a, address: b, cpu: 1}]", "hosts[0].cpu: unknown field; there are: address, cost"),
        ("hosts: [{name: a, address: b}]", "1 given: expected at least 2 hosts"),
        ("hosts: [{name: a, address: b}, {name: a, address: c}]", "`a`: two hosts have this name"),
        (
            'run: "\'"\nhosts: [{name: a, address: b}, {name: c, address: d}]',
            "run: `'`: No closing quotation",
        ),
        ("hosts: [", "hosts.yaml:1"),
    ],
)
def test_invalid_hosts_files_are_named(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        tenant.read_hosts(file)
    assert expected in str(error.value)


def here(*starts: str) -> list[tenant.Host]:
    """Hosts that are this machine, each with its words before a command."""
    hosts = []
    for at, start in enumerate(starts):
        (host, _) = tenant.listed([f"h{at}=127.0.0.1", "other=127.0.0.1"], start, LEEWARD, cpus="1")
        hosts.append(host)
    return hosts


def app_file(folder: Path, text: str = APP) -> Path:
    path = folder / "app.yaml"
    path.write_text(text)
    return path


def left_over(mark: str) -> list[str]:
    """Command lines of processes of this machine that have a word."""
    lines = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if mark in line:
                lines.append(line)
    return lines


@contextmanager
def nothing_is_left(mark: str) -> Iterator[None]:
    """Checks that no process with a word in its command line stays."""
    yield
    until = time.monotonic() + 10
    while (lines := left_over(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not lines


def test_an_app_runs_under_several_policies(tmp_path: Path) -> None:
    result = tenant.run(app_file(tmp_path), here("", ""), policies=["choreo", "random"], port=0)
    assert not result["network"]["measured"]
    assert [one["policy"] for one in result["runs"]] == ["choreo", "random"]
    for one in result["runs"]:
        (transfer,) = one["transfers"]
        assert {transfer["from_host"], transfer["to_host"]} == {"h0", "h1"}
        assert (transfer["bytes"], transfer["pieces"]) == (3_000_000, 1)
        assert 0 < transfer["ended_s"] <= one["wall_s"]


def test_phases_and_costs_are_reported(tmp_path: Path) -> None:
    text = (
        "tasks: [{name: a, cpus: 1}, {name: b, cpus: 1}]\ngoal: cost\n"
        "phases: [{transfers: [{from: a, to: b, bytes: 1MB}]}, {transfers: [{from: b, to: a, bytes: 2MB}]}]\n"
    )
    hosts = [
        replace(host, cpus="2", cost=cost) for host, cost in zip(here("", ""), ("2", "0.5"), strict=True)
    ]
    result = tenant.run(app_file(tmp_path, text), hosts, port=0, again="60s")
    (one,) = result["runs"]
    assert one["cost"] == 0.5
    assert {task["host"] for task in one["tasks"]} == {"h1"}
    first, second = one["transfers"]
    assert (first["phase"], second["phase"], second["bytes"]) == (0, 1, 2_000_000)
    assert 0 < first["ended_s"] <= second["ended_s"] <= one["wall_s"]
    assert [look["reason"] for look in one["looks"]] == ["phase 1 begins"]


def test_a_bound_that_no_hosts_meet_is_named_before_any_host_works(tmp_path: Path) -> None:
    path = app_file(tmp_path, APP + "latency: [{from: a, to: b, max: 1ms}]\n")
    cluster: dict[str, Any] = {"shape": "hose", "nic": "1Gbps", "hosts": [{"name": "h0"}, {"name": "h1"}]}
    cluster["rtt"] = {"network": "2ms"}
    settings: dict[str, Any] = {"policies": "choreo", "port": 0}
    with pytest.raises(InputError, match=r"app\.yaml: .*task b .*; too far from task a, under choreo$"):
        tenant.run(path, here("false", "false"), cluster=cluster, **settings)
    with pytest.raises(InputError, match="measure: `never`: bounds on round-trip times need a measurement"):
        tenant.run(path, here("false", "false"), measure="never", **settings)
    cluster["rtt"] = {"network": "1ms"}
    result = tenant.run(path, here("", ""), cluster=cluster, **settings)
    assert result["runs"][0]["wall_s"] > 0


def test_commands_get_the_addresses_of_the_others(tmp_path: Path) -> None:
    text = "tasks: [{name: a, count: 2, cpus: 1, command: 'echo $LEEWARD_TASK of $LEEWARD_PEERS'}]\n"
    lines: list[tuple[str, str]] = []
    result = tenant.run(
        app_file(tmp_path, text), here("", ""), port=0, on_output=lambda *line: lines.append(line)
    )
    peers = "a0=127.0.0.1,a1=127.0.0.1"
    assert sorted(lines) == [("a0", f"a0 of {peers}"), ("a1", f"a1 of {peers}")]
    assert result["runs"][0]["wall_s"] > 0


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


def frame(source: str, target: str) -> bytes:
    """First bytes of a frame with an IP packet of 1,500 bytes."""
    header = struct.pack(">BBHHHBBH", 69, 0, 1500, 0, 0, 64, 6, 0)
    ends = IPv4Address(source).packed + IPv4Address(target).packed
    return bytes(12) + b"\x08\x00" + header + ends + bytes(94)


def test_sflow_datagrams_become_the_matrix_of_tasks() -> None:
    hosts = {host.name: host for host in tenant.listed(["x=192.0.2.1", "y=192.0.2.2", "z=192.0.2.3"])}
    one = sflow([(1, 2, frame("192.0.2.1", "192.0.2.2"), 1514)] * 2)
    other = sflow(
        [(1, 2, frame("192.0.2.3", "192.0.2.1"), 1514), (1, 2, frame("8.8.8.8", "192.0.2.1"), 1514)]
    )
    datagrams = [(1e9, "192.0.2.9", one), (1e9 + 90_000, "192.0.2.9", other)]
    rows = matrix_of(datagrams, ["a", "b", "c"], {"a": "x", "b": "y", "c": "z"}, hosts)
    # Each sample stands for 100 packets.
    assert rows == [[0, 302_800, 0], [0, 0, 0], [151_400, 0, 0]]
    with pytest.raises(InputError, match="no traffic between the hosts in 1 sFlow datagrams"):
        matrix_of(datagrams[1:], ["a", "b"], {"a": "y", "b": "z"}, hosts)


def test_an_app_of_commands_is_profiled_before_it_is_placed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # In place of an agent, the command itself reports its traffic.
    datagram = sflow([(1, 2, frame("127.0.0.2", "127.0.0.3"), 1514)])
    (tmp_path / "datagram").write_bytes(datagram)
    (tmp_path / "send.py").write_text(
        f"import pathlib, socket\ndata = pathlib.Path('{tmp_path}/datagram').read_bytes()\n"
        f"socket.socket(type=socket.SOCK_DGRAM).sendto(data, ('127.0.0.1', {port}))\n"
    )
    text = (
        f"tasks:\n  - {{name: a, cpus: 1, command: '{sys.executable} {tmp_path}/send.py'}}\n"
        "  - {name: b, cpus: 1, command: 'true'}\n"
    )
    hosts = tenant.listed(["h0=127.0.0.2", "h1=127.0.0.3"], "", LEEWARD, cpus="1")
    result = tenant.run(app_file(tmp_path, text), hosts, port=0, profile=f"sflow:{port}")
    assert result["matrix"] == [[0, 151_400], [0, 0]]
    assert result["runs"][0]["forecast_s"] > 0
    with pytest.raises(InputError, match="profile: expected tasks with commands"):
        tenant.run(app_file(tmp_path), hosts, port=0, profile="sflow:6343")
    with pytest.raises(InputError, match="profile: `pcap:eth0`: expected capture, or sflow:PORT"):
        tenant.run(app_file(tmp_path, text), hosts, port=0, profile="pcap:eth0")


def test_tasks_without_commands_beside_commands_are_an_error(tmp_path: Path) -> None:
    text = "tasks: [{name: a, command: 'true'}, {name: b}]\n"
    with pytest.raises(InputError, match="task `b` has no command"):
        tenant.run(app_file(tmp_path, text), here("", ""), port=0)


def test_a_task_that_fits_on_no_host_is_named_before_any_host_works(tmp_path: Path) -> None:
    path = app_file(tmp_path, APP.replace("cpus: 1", "cpus: 2"))
    with pytest.raises(InputError, match=r"app\.yaml: .*fits nowhere.*, under choreo$"):
        tenant.run(path, here("false", "false"), policies="choreo", port=0)


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
    command = (LEEWARD, "tenant", "run", str(app_file(tmp_path, text)), *hosts, "--host-cpus", "1")
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


def test_the_command_prints_the_comparison(run: Run, tmp_path: Path) -> None:
    hosts = ("--hosts", "x=127.0.0.1,y=127.0.0.1", "--run", "", "--host-cpus", "1", "--data-port", "0")
    arguments = ("tenant", "run", str(app_file(tmp_path)), *hosts, "--policy", "choreo,random")
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert "did not measure the network: " in result.stdout
    assert "SAVED BY CHOREO" in result.stdout
    document = json.loads(run(*arguments, "-o", "json").stdout)
    assert [one["policy"] for one in document["runs"]] == ["choreo", "random"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--hosts, --hosts-file, --lab: expected exactly one of them"),
        (("--hosts", "a=b,c=d", "--lab", "x"), "expected exactly one of them"),
        (("--lab", "no-such-lab"), "--lab: lab `no-such-lab`: not up"),
        (("--hosts-file", "x", "--host-cpus", "1"), "--host-cpus: only valid with --hosts or --lab"),
        (("--hosts", "a=b,c=d", "--policy", "no"), "--policy"),
        (("--hosts", "a=b,c=d", "--assume", "fast"), "--assume"),
        (("--hosts", "a=b,c=d", "--state", "much"), "--state"),
        (("--hosts", "a=b,c=d", "--again", "often"), "--again"),
        (("--hosts", "a=b,c=d", "--again", "0s"), "--again"),
    ],
)
def test_invalid_arguments_are_named(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = run("tenant", "run", str(app_file(tmp_path)), *arguments)
    assert result.returncode == 2, result
    assert expected in result.stderr
