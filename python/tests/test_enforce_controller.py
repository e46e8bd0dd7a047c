"""`leeward enforce nfs --controller` and `leeward agent --enforce`, with a service and a small server."""

import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from leeward import Client, ProblemError
from test_enforce_nfs import NFS, WRITE, call, opaque, receive, send, server

Serve = Callable[..., AbstractContextManager[str]]

__all__ = ["server"]
LEEWARD = str(Path(sys.executable).with_name("leeward"))
ENFORCE = (LEEWARD, "enforce", "nfs")
CLUSTER = {
    "racks": 2,
    "hosts_per_rack": 3,
    "nic": "10Gbps",
    "oversubscription": 1,
    "priorities": 8,
    "devices": [{"name": "ssd", "read": "500MB/s", "write": "400MB/s"}],
}
LINK = [{"rate": "4MB/s", "burst": "64kB"}]
LONGEST_S = 30.0
"""Longest wait for a condition."""


def workload(name: str, client: str = "r0h0") -> dict[str, Any]:
    storage = [{"rate": "5%", "burst": "4ms"}]
    return {
        "name": name,
        "client": client,
        "server": "r1h1",
        "slo": {"percentile": 99, "latency": "50ms"},
        "unloaded": "100us",
        "curves": {"network-in": LINK, "network-out": LINK, "storage": storage},
    }


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Proxy:
    """A program whose log goes to a file."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=out, cwd=log.parent)

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def address(self) -> tuple[str, int]:
        until(lambda: "listening on" in self.text(), "the proxy listens")
        line = next(line for line in self.text().splitlines() if "listening on" in line)
        host, _, port = line.split()[-1].rpartition(":")
        return host, int(port)

    def write(self) -> None:
        """Writes 4 bytes over a new connection."""
        with socket.create_connection(self.address(), timeout=20) as stream:
            data = opaque(b"file") + struct.pack(">QII", 0, 4, 2) + opaque(b"data")
            send(stream, call(NFS, WRITE, data))
            assert struct.unpack_from(">I", receive(stream))[0] == 7

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@contextmanager
def running(command: list[str], log: Path) -> Iterator[Proxy]:
    proxy = Proxy(command, log)
    try:
        yield proxy
    finally:
        proxy.process.kill()
        proxy.process.wait()


def options(tmp_path: Path, port: str) -> list[str]:
    """Options of a proxy of the host `r1h1`, whose clients are this machine."""
    row = {"size_bytes": 4096, "read_iops": 1000, "write_iops": 1000}
    (tmp_path / "disk.json").write_text(json.dumps({"table": [row]}))
    # Lines as in /etc/hosts would not count: each machine has their loopback addresses.
    (tmp_path / "hosts.csv").write_text("address,host\n127.0.0.1,r0h0\n10.9.9.9,r0h1\n")
    given = ["--export", "127.0.0.1:/vol", "--listen", "127.0.0.1:0", "--nfsport", port, "--mountport", port]
    return [*given, "--device", "disk.json", "--addresses", "hosts.csv", "--lease", "1s"]


def enforcement(client: Client, name: str) -> dict[str, Any]:
    """Enforcement of a workload, as the controller sees it."""
    found = client.workload(name)["enforcement"]
    assert found is not None
    return dict(found)


def storage(client: Client, name: str) -> dict[str, Any]:
    """State of a workload at its server."""
    places = enforcement(client, name)["places"]
    return dict(next(place for place in places if place["stage"] == "storage"))


def test_a_proxy_applies_the_promises_of_a_controller(serve: Serve, server: str, tmp_path: Path) -> None:
    with serve(tmp_path, CLUSTER) as url:
        client = Client(url, patience_s=0)
        client.promise(workload("mail"))
        command = [*ENFORCE, "--controller", url, "--host", "r1h1", *options(tmp_path, server)]
        with running(command, tmp_path / "log") as proxy:
            until(lambda: storage(client, "mail")["state"] == "applied", "mail is applied")
            proxy.write()
            # The first acknowledgement after a start is where counters begin.
            proxy.write()
            until(lambda: enforcement(client, "mail")["total"]["requests"] > 0, "requests are counted")
            assert enforcement(client, "mail")["seen_by"] == "nfs@r1h1"
            seen_s = client.workload("mail")["seen_s"]
            assert seen_s is not None
            assert seen_s < 5.0
            # Another workload of this client looks alike: neither has a promise.
            other = client.promise(workload("web"))
            until(lambda: storage(client, "mail")["state"] == "refused", "mail is refused")
            assert "web has the same client" in storage(client, "mail")["detail"]
            assert storage(client, "web")["state"] == "refused"
            assert "error: web is not enforced: mail has the same client" in proxy.text()
            client.release(other["id"])
            until(lambda: storage(client, "mail")["state"] == "applied", "mail is applied again")
            # One of another client does not.
            client.promise(workload("far", "r0h1"))
            until(lambda: storage(client, "far")["state"] == "applied", "far is applied")
            assert proxy.end() == 0
            with pytest.raises(ProblemError):
                client.enforcer("nfs@r1h1")


def test_a_proxy_without_its_controller_serves_best_effort(serve: Serve, server: str, tmp_path: Path) -> None:
    with ExitStack() as programs:
        with serve(tmp_path, CLUSTER) as url:
            client = Client(url, patience_s=0)
            client.promise(workload("mail"))
            command = [*ENFORCE, "--controller", url, "--host", "r1h1", *options(tmp_path, server)]
            proxy = programs.enter_context(running(command, tmp_path / "log"))
            until(lambda: storage(client, "mail")["state"] == "applied", "mail is applied")
        until(lambda: "lease expired" in proxy.text(), "the lease ends")
        until(lambda: "workloads replaced: 0" in proxy.text(), "no promise is left")
        proxy.write()
        assert proxy.end() == 0
        assert "not removed at the controller: connection refused" in proxy.text()


def test_an_agent_runs_an_enforcer_and_ends_it(serve: Serve, server: str, tmp_path: Path) -> None:
    with serve(tmp_path, CLUSTER) as url:
        client = Client(url, patience_s=0)
        client.promise(workload("mail"))
        enforcer = " ".join(["nfs", *options(tmp_path, server)])
        agent = [LEEWARD, "agent", "--controller", url, "--host", "r1h1", "--interface", "lo"]
        with running([*agent, "--enforce", enforcer], tmp_path / "log") as proxy:
            until(lambda: storage(client, "mail")["state"] == "applied", "mail is applied")
            # An enforcer that ends is started again.
            pid = int(proxy.text().partition("enforcer nfs: started as process ")[2].splitlines()[0])
            subprocess.run(["kill", "-9", str(pid)], check=True)
            until(lambda: proxy.text().count("started as process") == 2, "it starts again")
            assert "enforcer nfs: ended with signal: 9" in proxy.text()
            until(lambda: storage(client, "mail")["state"] == "applied", "mail is applied again")
            assert proxy.end() == 0
            with pytest.raises(ProblemError):
                client.enforcer("nfs@r1h1")
        with running([*agent, "--enforce", enforcer], tmp_path / "log") as proxy:
            until(lambda: "listening on" in proxy.text(), "the proxy listens")
            pid = int(proxy.text().partition("enforcer nfs: started as process ")[2].splitlines()[0])
            proxy.process.kill()
            proxy.process.wait()
            # The kernel ends the enforcer of a killed agent.
            until(lambda: not Path(f"/proc/{pid}").exists(), "the enforcer ends")


def test_an_agent_that_ends_lets_an_enforcer_start_and_then_end(
    serve: Serve, server: str, tmp_path: Path
) -> None:
    with serve(tmp_path, CLUSTER) as url:
        client = Client(url, patience_s=0)
        # As a killed enforcer leaves it.
        client.acknowledge("nfs@r1h1", "nfs", "r1h1", lease="1h")
        enforcer = " ".join(["nfs", *options(tmp_path, server)])
        agent = [LEEWARD, "agent", "--controller", url, "--host", "r1h1", "--interface", "lo"]
        with running([*agent, "--enforce", enforcer], tmp_path / "log") as proxy:
            until(lambda: "started as process" in proxy.text(), "the enforcer starts")
            # Python does not run the program yet.
            assert proxy.end() == 0
            assert "listening on" in proxy.text()
            assert "ended with" not in proxy.text()
            with pytest.raises(ProblemError):
                client.enforcer("nfs@r1h1")


def test_invalid_enforcers_of_an_agent_are_errors(tmp_path: Path) -> None:
    command = [LEEWARD, "agent", "--controller", "http://127.0.0.1:1", "--enforce", "disk --fast"]
    result = subprocess.run(command, capture_output=True, check=False, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: --enforce: `disk --fast`: expected net or nfs")


def test_a_file_of_a_command_needs_no_cluster(server: str, tmp_path: Path) -> None:
    bucket = {"rate": 0.1, "burst": 0.002}
    stage = {"stage": "storage", "unit": "s", "priority": 0, "limits": [bucket]}
    slo = {"percentile": 99, "latency_s": 0.06}
    record = {"workload": "mail", "client": "r0h0", "server": "r1h1:ssd", "slo": slo, "stages": [stage]}
    (tmp_path / "packed.json").write_text(json.dumps({"workloads": [record]}))
    given = [option for option in options(tmp_path, server) if option not in ("--lease", "1s")]
    command = [*ENFORCE, "--workloads", "packed.json", *given]
    with running(command, tmp_path / "log") as proxy:
        proxy.write()
        assert proxy.end() == 0
