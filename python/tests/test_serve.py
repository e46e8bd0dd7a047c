import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = """\
racks: 4
hosts_per_rack: 3
nic: 1Gbps
oversubscription: 3
devices: [{read: 200MB/s, write: 120MB/s}]
"""
LEEWARD = Path(sys.executable).with_name("leeward")


class Service:
    """A running `leeward serve`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self.token = ""

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("content-type", "application/json")
        request.add_header("authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def report(self, loads: dict[str, float]) -> tuple[int, Any]:
        until = datetime.now(UTC)
        links = [{"link": link, "load_bps": load} for link, load in loads.items()]
        window = {"from": (until - timedelta(seconds=1)).isoformat(), "until": until.isoformat()}
        return self.ask("POST", "/v1/reports", window | {"links": links})

    def stop(self, number: signal.Signals) -> int:
        os.kill(self.process.pid, number)
        return self.process.wait(30)


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Service]:
    (folder / "c.yaml").write_text(CLUSTER)
    command = [str(LEEWARD), "serve", "--cluster", "c.yaml", "--listen", "127.0.0.1:0", *arguments]
    if "--store" not in arguments:
        command += ["--store", "memory"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line
            assert (
                process.stderr.readline()
                == f"decisions are kept in {command[command.index('--store') + 1]}\n"
            )
            yield Service(process, line.split()[-1])
        finally:
            process.kill()


LOADS = {"r0:downlink": 100e6, "r1:downlink": 700e6, "r2:downlink": 300e6, "r3:downlink": 500e6}
UPLINKS = {f"r{rack}:uplink": 100e6 for rack in range(4)}
HOSTS = {f"r{rack}h{host}:ingress": 50e6 for rack in range(4) for host in range(3)}


def test_decisions_after_reports_are_stored_and_released(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert service.ask("GET", "/v1/status")[1]["cluster"] == "cluster"
        status, refused = service.ask("POST", "/v1/place/replicas", {"size": "256MiB"})
        assert (status, refused["type"]) == (409, "urn:leeward:problem:refused")
        assert service.report(LOADS | HOSTS)[0] == 200
        block = {"size": "256MiB", "writer": "r0h1", "client": "test", "sequence": 1}
        status, decision = service.ask("POST", "/v1/place/replicas", block)
        assert status == 201
        # The first copy is on the writer; the others are in the remote rack with most residual capacity.
        assert decision["hosts"][0] == "r0h1"
        assert {host[:2] for host in decision["hosts"][1:]} == {"r2"}
        assert decision["limit"] == {"at": "r2:downlink", "value_bps": 700_000_000}
        assert 0 <= decision["telemetry_age_s"] < 30
        assert service.ask("POST", "/v1/place/replicas", block) == (200, decision)
        assert service.ask("GET", f"/v1/decisions/{decision['id']}") == (200, decision)
        status, snapshot = service.ask("GET", "/v1/snapshot")
        assert (status, snapshot["clients"]) == (200, [{"client": "test", "sequence": 1}])
        columns = snapshot["links"]
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        links = {row["link"]: row for row in rows}
        assert links["r2:downlink"]["measured_bps"] == 300_000_000
        assert links["r2:downlink"]["expected_capacity_bps"] < links["r1:downlink"]["expected_capacity_bps"]
        assert links["r2:uplink"]["measured_bps"] is None
        status, released = service.ask("DELETE", f"/v1/commitments/{decision['id']}")
        assert status == 200
        assert released["released"] is not None
        assert service.stop(signal.SIGTERM) == 0


TASKS = {"tasks": [{"name": "web", "count": 3, "cpus": 1, "egress": {"mean": "100Mbps"}}]}


def test_task_placements_are_idempotent_and_can_be_released(tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        assert service.report(LOADS | UPLINKS | HOSTS)[0] == 200
        request = {"app": TASKS, "job": "web", "client": "scheduler", "sequence": 1}
        status, decision = service.ask("POST", "/v1/place/tasks", request)
        assert (status, decision["kind"], len(decision["hosts"])) == (201, "tasks", 3)
        assert service.ask("POST", "/v1/place/tasks", request) == (200, decision)
        status, released = service.ask("DELETE", f"/v1/commitments/{decision['id']}")
        assert (status, released["released"] is not None) == (200, True)
        request["app"] = TASKS | {"matrix": "/etc/passwd"}
        status, problem = service.ask("POST", "/v1/place/tasks", request)
        assert (status, problem["field"]) == (422, "app.matrix")


def test_acknowledged_decisions_survive_a_kill(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store.db")]
    block = {"size": "256MiB", "writer": "r0h1", "client": "test", "sequence": 1}
    with serving(tmp_path, *store) as service:
        assert service.report(LOADS | UPLINKS | HOSTS)[0] == 200
        decision = service.ask("POST", "/v1/place/replicas", block)[1]
        tasks = service.ask("POST", "/v1/place/tasks", {"app": TASKS})[1]
        service.stop(signal.SIGKILL)
    with serving(tmp_path, *store) as service:
        assert service.ask("POST", "/v1/place/replicas", block) == (200, decision)
        assert service.ask("GET", f"/v1/decisions/{tasks['id']}") == (200, tasks)
        assert service.report(LOADS | UPLINKS | HOSTS)[0] == 200
        block["sequence"] = 2
        later = service.ask("POST", "/v1/place/replicas", block)[1]
        assert int(later["id"]) > int(tasks["id"])


def test_a_waiting_request_is_answered_before_the_service_stops(tmp_path: Path) -> None:
    with serving(tmp_path, "--policy", "sinbad:interval=3s:without_telemetry=default") as service:
        place = [sys.executable, "-c", PLACE, service.url]
        with subprocess.Popen(place, stdout=subprocess.PIPE, text=True) as waiting:
            while service.ask("GET", "/v1/status")[1]["waiting"] == 0:
                assert waiting.poll() is None, "the block did not wait"
                time.sleep(0.01)
            assert service.stop(signal.SIGINT) == 0
            assert waiting.communicate(timeout=30)[0] == "201\n"


PLACE = """\
import sys, urllib.request
body, headers = b'{"size": "256MiB"}', {"content-type": "application/json"}
request = urllib.request.Request(sys.argv[1] + "/v1/place/replicas", body, headers)
print(urllib.request.urlopen(request).status)
"""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--policy", "nowhere"], "error: --policy: unknown policy `nowhere` for replicas; there are: "),
        (["--policy", "sinbad:interval=1"], "error: --policy: sinbad.interval: `1`: the unit is missing"),
        (
            ["--listen", "localhost:99999"],
            "error: --listen: `localhost:99999`: expected an address and a port",
        ),
        (["--listen", "nowhere.invalid:7600"], "error: --listen: `nowhere.invalid:7600`: "),
        (["--listen", "here"], "error: --listen: `here`: expected an address and a port, such as "),
        (["--interval", "1"], "error: --interval: `1`: the unit is missing; expected a time with its unit"),
        (["--interval", "0s"], "error: --interval: 0s: expected a positive time"),
        (["--cluster", "nothing.yaml"], "error: nothing.yaml: "),
        (["--seed", "-1"], "error: Invalid value for '--seed'"),
        (["--moves", "nowhere"], "error: --moves: unknown policy `nowhere` for moves; there are: "),
        (
            ["--listen", "0.0.0.0:0"],
            "error: --listen: `0.0.0.0:0`: without tokens, every client that reaches it ",
        ),
        (["--tokens", "c.yaml"], "error: c.yaml:1"),
        (["--config", "wrong.toml"], "error: wrong.toml:1: limit: unknown field"),
    ],
)
def test_invalid_options_print_an_error_and_exit_with_2(
    run: Run, tmp_path: Path, arguments: list[str], error: str
) -> None:
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "wrong.toml").write_text("limit = 1\n")
    result = run("serve", "--cluster", "c.yaml", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error)


def test_a_port_in_use_is_reported(run: Run, tmp_path: Path) -> None:
    with serving(tmp_path) as service:
        address = service.url.removeprefix("http://")
        for taken in (address, address.replace("127.0.0.1", "localhost")):
            result = run("serve", "--cluster", "c.yaml", "--store", "memory", "--listen", taken)
            why = f"`{taken}`: Address already in use; give another port with --listen"
            assert (result.returncode, result.stderr) == (2, f"error: --listen: {why}\n")


def test_the_service_listens_at_a_host_name(tmp_path: Path) -> None:
    with serving(tmp_path, "--listen", "localhost:0") as service:
        assert service.ask("GET", "/v1/status")[1]["cluster"] == "cluster"


def test_settings_and_tokens_are_read_from_files(run: Run, tmp_path: Path) -> None:
    tokens = str(tmp_path / "tokens")
    result = run("token", "new", "--name", "page", "--role", "read", "--tokens", tokens)
    assert (result.returncode, result.stderr) == (0, "")
    token = result.stdout.strip()
    assert token not in (tmp_path / "tokens").read_text()
    again = run("token", "new", "--name", "page", "--role", "admin", "--tokens", tokens)
    assert again.returncode == 2
    assert again.stderr.startswith(f"error: {tokens}:2: name: `page`: another token has this name")
    completed = run("token", "new", "--name", "page", "--role", "owner")
    assert (completed.returncode, completed.stderr.split("`")[0]) == (2, "error: --role: ")
    (tmp_path / "l.yaml").write_text(f"{{policies: {{tasks: utp, moves: utp}}, tokens: {tokens}}}\n")
    with serving(tmp_path, "--config", "l.yaml") as service:
        assert service.ask("GET", "/v1/status")[1]["type"] == "urn:leeward:problem:unauthorized"
        service.token = token
        assert service.ask("GET", "/v1/status")[1]["policies"]["tasks"] == "utp"
    checked = run("serve", "--config", "l.yaml", "--cluster", "c.yaml", "--store", "memory", "--check-config")
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "the settings are right\n")


def test_the_schema_describes_the_settings(run: Run) -> None:
    described = json.loads(run("schema", "service").stdout)["properties"]
    assert {"cluster", "listen", "policies", "tls", "tokens", "telemetry", "limits"} <= described.keys()
