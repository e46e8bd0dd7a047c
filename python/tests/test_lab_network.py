"""Labs without circuits: networks of cluster files with real packets, by commands and from Python."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leeward import lab
from leeward.errors import InputError
from support.fixtures import LEEWARD
from support.labs import DILATION, OWN, left, nothing_left, scenario
from support.repeats import ATTEMPTS

Run = Callable[..., subprocess.CompletedProcess[str]]
FILE = Path(__file__).parents[2] / "examples" / "lab" / "four-racks.yaml"
SMALL = {"racks": 2, "hosts_per_rack": 2, "nic": "100Mbps", "oversubscription": 4}
RECEIVE = """
import socket, sys, time
server = socket.create_server(("0.0.0.0", 5001))
print("ready", flush=True)
connection = server.accept()[0]
counts, start = 0, None
while data := connection.recv(1 << 16):
    # The first bytes fill queues.
    if start is None:
        counts += len(data)
        if counts > 1_000_000:
            counts, start = 0, time.monotonic()
    else:
        counts += len(data)
print(8 * counts / (time.monotonic() - start))
"""
SEND = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 5001))
for _ in range(int(sys.argv[2])):
    connection.sendall(bytes(1 << 16))
"""


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Requires root, and checks that a test leaves nothing behind."""
    with nothing_left():
        yield


def rate(network: lab.Network, source: str, destination: str, blocks: int = 100) -> float:
    """Rate of a TCP connection in bits per second, with its headers of Ethernet, IP and TCP."""
    address = network.machine(destination).address
    receive = [sys.executable, "-c", RECEIVE]
    with network.start(destination, receive, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        network.run(source, [sys.executable, "-c", SEND, address, str(blocks)], timeout=60)
        return float(receiver.stdout.read()) * 1514 / 1448


def is_near(expected: float, tolerance: float, measure: Callable[[], float]) -> bool:
    """Whether one of some measurements is near. Other load on the machine disturbs single ones."""
    for _ in range(ATTEMPTS):
        value = measure()
        if value == pytest.approx(expected, rel=tolerance):
            return True
        print(f"{value} is not {expected}")
    return False


def test_a_transfer_gets_the_rate_of_an_oversubscribed_uplink() -> None:
    with lab.up(SMALL, name=f"{OWN}-rate") as network:
        assert [host.name for host in network.hosts] == ["r0h0", "r0h1", "r1h0", "r1h1"]
        assert network.notes == []
        assert is_near(50e6, 0.1, lambda: rate(network, "r0h0", "r1h0"))
        assert is_near(100e6, 0.1, lambda: rate(network, "r0h0", "r0h1"))
        network.limit("r0:uplink", "20Mbps")
        assert is_near(20e6, 0.1, lambda: rate(network, "r0h0", "r1h0", 60))
        with pytest.raises(InputError, match="the lab has no such link"):
            network.limit("r9:uplink", "20Mbps")
        with pytest.raises(InputError, match="similar names: r0h0"):
            network.run("r0h9", ["true"])


def test_a_scale_divides_all_rates() -> None:
    with lab.up(SMALL | {"nic": "10Gbps"}, name=f"{OWN}-scale", scale=100) as network:
        assert is_near(50e6, 0.1, lambda: rate(network, "r0h0", "r1h0"))


def test_commands_bring_up_a_lab_and_run_programs_and_remove_it(run: Run, tmp_path: Path) -> None:
    name = f"{OWN}-cli"
    result = run("lab", "up", str(FILE), "--name", name, "-o", "json")
    assert result.returncode == 0, result.stderr
    hosts = json.loads(result.stdout)["hosts"]
    assert [host["address"] for host in hosts[:3]] == ["10.0.0.2", "10.0.1.2", "10.1.0.2"]
    result = run("lab", "up", str(FILE), "--name", name)
    assert (result.returncode, f"lab `{name}` is up: choose another name" in result.stderr) == (1, True)

    def execute(host: str, *command: str) -> subprocess.CompletedProcess[str]:
        # The command becomes the program, so it needs a process of its own.
        words = [str(LEEWARD), "lab", "exec", "--name", name, "--host", host, "--", *command]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    result = execute("r3h1", "ip", "-br", "addr")
    assert "10.3.1.2/30" in result.stdout
    assert execute("r0h1", "sh", "-c", "exit 7").returncode == 7
    assert execute("r0h1", "getent", "hosts", "r3h1").stdout.split()[:2] == ["10.3.1.2", "r3h1"]
    result = execute("r9h1", "true")
    assert (result.returncode, "similar names: r0h1" in result.stderr) == (2, True)
    result = execute("r0h1", "no-such-program")
    assert (result.returncode, "no-such-program: no such program" in result.stderr) == (1, True)

    def write() -> float:
        dd = "dd if=/dev/zero of=$LEEWARD_DISK/file bs=1M count=40 conv=fsync"
        result = execute("r1h0", "sh", "-c", f"date +%s.%N; {dd}; date +%s.%N")
        start, end = map(float, result.stdout.split())
        return 40 * 2**20 / (end - start)

    if all(host["disks"] for host in hosts) and Path("/sys/fs/cgroup/blkio").exists():
        assert is_near(20e6, 0.2, write)

    listed = json.loads(run("lab", "list", "-o", "json").stdout)["labs"]
    mine = next(each for each in listed if each["name"] == name)
    assert (mine["up"], mine["process"], mine["hosts"], mine["problem"]) == (True, None, 8, None)
    result = run("lab", "down", "--name", name, "-o", "json")
    assert (result.returncode, json.loads(result.stdout)) == (0, {"removed": [name]})
    result = execute("r0h0", "true")
    assert (result.returncode, f"lab `{name}`: not up" in result.stderr) == (1, True)


def test_down_removes_a_lab_without_a_state_file(run: Run) -> None:
    name = f"{OWN}-lost"
    with lab.up(str(FILE), name=name) as network:
        network.keep()
        numbers = {os.stat(disk).st_dev for host in network.hosts for disk in host.disks}
    devices = {f"{os.major(number)}:{os.minor(number)}" for number in numbers}
    Path(f"/run/leeward-labs/{name}.json").unlink()
    result = run("lab", "up", str(FILE), "--name", name)
    assert (result.returncode, f"remove it with `leeward lab down --name {name}`" in result.stderr) == (
        1,
        True,
    )
    result = run("lab", "down", "--name", name)
    assert (result.returncode, f"removed lab {name}" in result.stderr) == (0, True), result.stderr
    assert left(name) == []
    throttle = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
    if throttle.exists():
        assert devices.isdisjoint(line.split()[0] for line in throttle.read_text().splitlines())
    result = run("lab", "down", "--name", name)
    assert (result.returncode, f"lab `{name}`: not up" in result.stderr) == (1, True)


def test_signals_reach_a_program_and_down_ends_programs(run: Run) -> None:
    name = f"{OWN}-sig"
    with lab.up(SMALL, name=name) as network:
        command = [str(LEEWARD), "lab", "exec", "--name", name, "--host", "r0h0", "--", "sh", "-c"]
        trap = "trap 'exit 9' TERM; echo ready; while true; do sleep 0.05; done"
        with subprocess.Popen([*command, trap], stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            program.send_signal(signal.SIGTERM)
            assert program.wait(timeout=20) == 9
        sleeping = network.start("r1h0", ["sh", "-c", "echo ready; exec sleep 600"], stdout=subprocess.PIPE)
        assert sleeping.stdout is not None
        assert sleeping.stdout.readline() == "ready\n"
    with sleeping:
        assert sleeping.wait(timeout=20) != 0


def test_two_labs_are_up_at_once() -> None:
    with lab.up(SMALL, name=f"{OWN}-one") as one, lab.up(SMALL, name=f"{OWN}-two") as two:
        for network in (one, two):
            assert network.run("r0h0", ["ping", "-c", "1", "-W", "5", "r1h1"]).returncode == 0
        one.down()
        assert two.run("r0h0", ["ping", "-c", "1", "-W", "5", "r1h1"]).returncode == 0


def test_down_removes_what_a_killed_process_left(run: Run) -> None:
    name = f"{OWN}-kill"
    cluster = SMALL | {"devices": [{"read": "1MB/s", "write": "1MB/s"}]}
    code = (
        f"import time; from leeward import lab; network = lab.up({cluster!r}, name={name!r});"
        "print(network.name, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{name}\n"
        result = run("lab", "down", "--name", name)
        assert (result.returncode, f"process {process.pid} owns it" in result.stderr) == (1, True)
        process.kill()
        process.wait()
    assert left(name)
    assert not next(each for each in lab.labs() if each.name == name).up
    assert run("lab", "down", "--name", name).returncode == 0
    assert not left(name)


@pytest.mark.parametrize("after_s", [0.2, 0.6, 1.0])
def test_an_interrupted_up_removes_everything(after_s: float, tmp_path: Path) -> None:
    name = f"{OWN}-int"
    cluster = tmp_path / "large.json"
    cluster.write_text(json.dumps(SMALL | {"racks": 40, "hosts_per_rack": 5}))
    command = [str(LEEWARD), "lab", "up", str(cluster), "--name", name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not left(name):
            time.sleep(0.01)
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) != 0
    assert not left(name)


def test_commands_show_how_much_of_a_lab_is_up(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Work of less than two seconds shows no progress.
    monkeypatch.setattr("leeward.cli.progress.QUIET_S", 0.0)
    circuits = scenario(workload={"long": {"from": 0, "to": 1}})
    for content, options in ((SMALL, []), (circuits, ["--dilation", str(DILATION)])):
        file = tmp_path / "input.json"
        file.write_text(json.dumps(content))
        result = run("lab", "up", str(file), "--name", f"{OWN}-progress", *options)
        assert result.returncode == 0, result.stderr
        assert re.search(
            rf"^bringing up {re.escape(str(file))}: \d+ %, after \d s$", result.stderr, re.MULTILINE
        )
        lab.remove(f"{OWN}-progress")


def test_what_namespaces_cannot_have_is_named() -> None:
    with pytest.raises(InputError, match="priorities: links of a lab have no classes"):
        lab.up(SMALL | {"priorities": 4}, name=f"{OWN}-no")
    with pytest.raises(InputError, match="scale: 0: must be 1 to"):
        lab.up(SMALL, scale=0)
    with pytest.raises(InputError, match="disk_size"):
        lab.up(SMALL, disk_size="large")


def test_without_root_the_error_says_so(run: Run) -> None:
    code = f"import os; from leeward import lab; os.setuid(65534); lab.up({SMALL!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, "require root" in result.stderr) == (1, True)
