"""`leeward tenant run` on the hosts of a lab, in their namespaces and over ssh, with real transfers."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from leeward import lab, tenant
from support.fixtures import LEEWARD
from support.parts import require, require_root

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = f"tenant{os.getpid()}"
"""Beginning of the names of the labs of these tests."""
LIMITS = {"a": 30, "b": 50, "c": 50, "d": 90, "e": 50, "f": 50}
"""Rates of six hosts in Mb/s: the fourth is the fastest by far."""
HOSTS = [{"name": name, "nic": {"up": f"{rate}Mbps", "down": "1Tbps"}} for name, rate in LIMITS.items()]
SIX = {"racks": [{"hosts": HOSTS[:3]}, {"hosts": HOSTS[3:]}], "rack_link": "1Tbps"}
SSHD = """\
Port 22
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
"""


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Requires root and iproute2, and checks that no lab is left."""
    require_root()
    require("ip", "tc", package="iproute2")
    yield
    assert [each.name for each in lab.labs() if each.name.startswith(OWN)] == []


def app_file(folder: Path, size: str, more: str = "") -> Path:
    path = folder / "app.yaml"
    path.write_text(
        "tasks: [{name: a, cpus: 1}, {name: b, cpus: 1}, {name: c, cpus: 1}]\n"
        f"transfers: [{{from: a, to: b, bytes: {size}}}, {{from: c, to: b, bytes: 2MB}}]\n{more}"
    )
    return path


def test_the_command_runs_an_app_on_the_lab_of_a_cluster_file(run: Run, tmp_path: Path) -> None:
    name = f"{OWN}-file"
    assert run("lab", "up", str(EXAMPLES / "lab" / "probe.yaml"), "--name", name).returncode == 0
    try:
        app = app_file(tmp_path, "10MB", "latency: [{from: a, to: b, max: 100ms}]\n")
        command = ("tenant", "run", str(app), "--lab", name, "--host-cpus", "1", "--policy", "choreo")
        result = run(*command, "-o", "json", "--out", "measured.yaml")
        again = run(*command, "-o", "json", "--cluster", "measured.yaml")
    finally:
        assert run("lab", "down", "--name", name).returncode == 0
    assert result.returncode == 0, result.stderr
    assert "wrote measured.yaml" in result.stderr
    assert again.returncode == 0, again.stderr
    known = json.loads(again.stdout)
    assert not known["network"]["measured"]
    assert known["runs"][0]["forecast_s"] == json.loads(result.stdout)["runs"][0]["forecast_s"]
    answer = json.loads(result.stdout)
    # An app with a bound on round-trip times is measured, however short it is.
    assert answer["network"]["measured"]
    (one,) = answer["runs"]
    large = one["transfers"][0]
    assert large["from_host"] == "d", "the fastest host of the file"
    assert large["rate_bps"] == pytest.approx(100e6, rel=0.2)
    assert one["wall_s"] == pytest.approx(one["forecast_s"], rel=0.3)


def test_an_app_runs_as_forecast_and_leaves_a_host_that_becomes_slow(tmp_path: Path) -> None:
    with lab.up(SIX, name=f"{OWN}-slow") as network:
        hosts = tenant.lab_hosts(network.name, cpus="1")
        settings: dict[str, Any] = {"measure": "always", "policies": "choreo"}
        small = tenant.run(app_file(tmp_path, "15MB"), hosts, **settings)
        (one,) = small["runs"]
        # The fastest host sends the large transfer.
        assert one["transfers"][0]["from_host"] == "d"
        assert one["wall_s"] == pytest.approx(one["forecast_s"], rel=0.25)
        assert small["network"]["bytes"] > 30 * 10 * 200 * 1472

        begun = threading.Event()
        slowed: list[str] = []

        def slow(text: str) -> None:
            """Slows the sender down shortly after the run has begun."""
            if text.startswith("running"):
                begun.set()

        def when_begun() -> None:
            begun.wait(60)
            source = one["transfers"][0]["from_host"]
            network.limit(f"{source}:egress", "15Mbps")
            slowed.append(source)

        thread = threading.Thread(target=when_begun)
        thread.start()
        result = tenant.run(
            app_file(tmp_path, "80MB"), hosts, again="2s", state="1MB", on_step=slow, **settings
        )
        thread.join()
    (run,) = result["runs"]
    (large, _) = run["transfers"]
    assert large["pieces"] > 1
    moved = {move["task"]: move for move in run["moves"]}
    assert moved["a"]["from"] == slowed[0]
    assert moved["a"]["state_bytes"] == 1_000_000
    # At 15 Mbit/s, the transfer alone would take 43 s.
    assert run["wall_s"] < 38
    looks = [look for look in run["looks"] if look.get("moves")]
    assert looks[0]["gain_s"] > 5
    assert looks[0]["seen_s"] > 5


SINK = """
import socket
server = socket.create_server(("0.0.0.0", 5001))
for _ in range(2):
    connection = server.accept()[0]
    while connection.recv(1 << 20):
        pass
"""
SEND = """
import os, socket, sys, time
peers = dict(peer.split("=") for peer in os.environ["LEEWARD_PEERS"].split(","))
for attempt in range(100):
    try:
        connection = socket.create_connection((peers["sink"], 5001))
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
connection.sendall(bytes(int(sys.argv[1])))
"""


def test_a_capture_profiles_commands_and_decides_if_a_measurement_pays(tmp_path: Path) -> None:
    (tmp_path / "sink.py").write_text(SINK)
    (tmp_path / "send.py").write_text(SEND)
    commands = {"sink": "sink.py", "heavy": "send.py 6000000", "light": "send.py 1000000"}
    tasks = [
        {"name": name, "cpus": 1, "command": f"{sys.executable} {tmp_path}/{command}"}
        for name, command in commands.items()
    ]
    path = tmp_path / "app.yaml"
    path.write_text(yaml.safe_dump({"tasks": tasks}))
    with lab.up(SIX, name=f"{OWN}-capture") as network:
        hosts = tenant.lab_hosts(network.name, cpus="1")
        settings: dict[str, Any] = {"profile": "capture", "policies": "choreo", "nic": "50Mbps"}
        first = tenant.run(path, hosts, **settings)
        second = tenant.run(path, hosts, measure="always", **settings)
        bare = {"PATH": "", "HOME": "/"}
        without = [
            replace(host, run=(*host.run, "env", *(f"{k}={v}" for k, v in bare.items()))) for host in hosts
        ]
        with pytest.raises(tenant.HostError, match=r"^host \w: no capture: ip: No such file or directory$"):
            tenant.run(path, without, **settings)
    # An app with one large transfer is not worth a measurement (Choreo, section 7.1).
    assert (first["network"]["measured"], first["network"]["why"]) == (
        False,
        "random placements are about as good for this app",
    )
    for result in (first, second):
        to_sink = [row[0] for row in result["matrix"]]
        # IP and TCP headers add 4 % at most, and nothing is sent twice on an idle network.
        assert 6e6 < to_sink[1] < 6.6e6
        assert 1e6 < to_sink[2] < 1.1e6
        assert result["matrix"][1][2] == result["matrix"][2][1] == 0
    where = {task["task"]: task["host"] for task in second["runs"][0]["tasks"]}
    assert where["heavy"] == "d", "the fastest host by the measurement"


@pytest.fixture
def ssh_hosts(tmp_path: Path) -> Iterator[tuple[lab.Network, Path]]:
    """A lab whose three hosts have an ssh server, and a hosts file to reach them from its core."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    require("ssh", "ssh-keygen", package="openssh-client")
    require(sshd or "sshd", package="openssh-server")
    privileges = Path("/run/sshd")
    made = not privileges.exists()
    privileges.mkdir(exist_ok=True)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / key)], check=True)
    (tmp_path / "sshd_config").write_text(SSHD.format(folder=tmp_path))
    cluster = {"racks": [{"hosts": HOSTS[:2]}, {"hosts": HOSTS[3:4]}], "rack_link": "1Tbps"}
    servers = []
    try:
        with lab.up(cluster, name=f"{OWN}-ssh") as network:
            host_key = " ".join((tmp_path / "host.pub").read_text().split()[:2])
            known = [f"{host.address} {host_key}\n" for host in network.hosts]
            (tmp_path / "known").write_text("".join(known))
            for host in network.hosts:
                command = [str(sshd), "-D", "-e", "-f", str(tmp_path / "sshd_config")]
                server = network.start(host.name, command, stderr=subprocess.PIPE)
                servers.append(server)
                assert server.stderr is not None
                assert "Server listening" in server.stderr.readline()
            ssh = f"ssh -F none -i {tmp_path}/user -o BatchMode=yes -o UserKnownHostsFile={tmp_path}/known"
            content = {
                "run": f"{ssh} root@{{address}}",
                "leeward": str(LEEWARD),
                "cpus": 1,
                "hosts": [{"name": host.name, "address": host.address} for host in network.hosts],
            }
            (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(content))
            yield network, tmp_path / "hosts.yaml"
    finally:
        for server in servers:
            server.kill()
            server.communicate()
        if made:
            privileges.rmdir()


def workers(address: str) -> list[int]:
    """Ids of helpers that ssh started on a host."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            environment = (folder / "environ").read_bytes() if b"\0tenant\0worker" in line else b""
        except OSError:
            continue
        if f" {address} 22".encode() in environment:
            found.append(int(folder.name))
    return found


def test_an_app_runs_over_ssh_and_nothing_is_left(
    ssh_hosts: tuple[lab.Network, Path], tmp_path: Path
) -> None:
    network, hosts = ssh_hosts
    command = [str(LEEWARD), "tenant", "run", str(app_file(tmp_path, "5MB")), "--hosts-file", str(hosts)]
    command += ["--policy", "choreo", "--measure", "always", "-o", "json"]
    result = network.run("core", command, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    (one,) = json.loads(result.stdout)["runs"]
    assert one["transfers"][0]["from_host"] == "d"
    assert 0 < one["transfers"][0]["ended_s"] <= one["wall_s"]

    def left() -> list[int]:
        return [pid for host in network.hosts for pid in workers(host.address)]

    assert left() == []
    app_file(tmp_path, "10GB")
    with network.start("core", command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as killed:
        assert killed.stderr is not None
        assert any(line.startswith("running") for line in killed.stderr)
        assert len(left()) == 3
        killed.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while left() and time.monotonic() < until:
        time.sleep(0.1)
    assert left() == []


def test_a_host_that_refuses_the_key_is_named(ssh_hosts: tuple[lab.Network, Path], tmp_path: Path) -> None:
    network, hosts = ssh_hosts
    hosts.write_text(hosts.read_text().replace(f"-i {tmp_path}/user", f"-i {tmp_path}/host"))
    command = [str(LEEWARD), "tenant", "run", str(app_file(tmp_path, "5MB")), "--hosts-file", str(hosts)]
    result = network.run("core", command, check=False, timeout=120)
    assert result.returncode == 1
    last = result.stderr.rstrip().splitlines()[-1]
    assert last.startswith("error: host ")
    assert "Permission denied" in last
