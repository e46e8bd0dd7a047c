"""The commands that query a controller: `leeward explain` and `leeward top`."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leeward import Client
from leeward.client.board import Board, read_time
from leeward.client.problems import UnreachableError

Run = Callable[..., subprocess.CompletedProcess[str]]
Serve = Callable[..., AbstractContextManager[str]]

CLUSTER = {"racks": 4, "hosts_per_rack": 3, "nic": "1Gbps", "oversubscription": 3, "cpus": 8}
LOADS = {f"r{rack}:{way}": 2e8 * (rack + 1) for rack in range(4) for way in ("uplink", "downlink")}
HOSTS = {f"r{rack}h{host}:ingress": 5e7 for rack in range(4) for host in range(3)}
TASKS = {"tasks": [{"name": "web", "count": 2, "cpus": 1, "egress": {"mean": "100Mbps"}}]}
LEEWARD = Path(sys.executable).with_name("leeward")


def report(client: Client) -> None:
    until = datetime.now(UTC)
    client.report(until - timedelta(seconds=1), until, links=LOADS | HOSTS)


@pytest.fixture(scope="module")
def client(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serve(tmp_path_factory.mktemp("service"), CLUSTER, "--interval", "20s") as url:
        client = Client(url, patience_s=0)
        report(client)
        yield client


# ---- leeward explain --------------------------------------------------------------------------------


def test_a_decision_about_replicas_is_explained(client: Client, run: Run, tmp_path: Path) -> None:
    decision = client.place_replicas("256MiB", writer="r3h1")
    result = run("explain", decision["id"], "--controller", client.url)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"decision   {decision['id']}, made {decision['time']}"
    assert lines[1] == "request    replicas: size 256MiB, writer r3h1, replicas 3"
    assert lines[2] == f"hosts      {' '.join(decision['hosts'])}"
    assert lines[3] == "policy     sinbad"
    assert lines[4].startswith("bottleneck r0:downlink, 800 Mbps left")
    assert lines[5].startswith("telemetry  ")
    assert "CANDIDATE" in result.stdout
    assert [line.split()[0] for line in lines if line.endswith(" chosen")][:2] == ["r3h1", "r0"]
    as_json = run("explain", decision["id"], "-o", "json", LEEWARD_CONTROLLER=client.url)
    assert json.loads(as_json.stdout) == decision
    (tmp_path / "decision.json").write_text(as_json.stdout)
    assert run("explain", "decision.json").stdout == result.stdout


def test_a_decision_about_tasks_is_explained_with_task_names(client: Client, run: Run) -> None:
    decision = client.place_tasks(TASKS, job="web")
    result = run("explain", decision["id"], "--controller", client.url)
    assert result.returncode == 0
    assert "request    tasks: name app, job web, tasks 2\n" in result.stdout
    assert "JOB'S TASKS IN RACK" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("web")]
    assert {row[0] for row in rows if row[-1] == "chosen"} == {"web0", "web1"}
    bottleneck = next(line for line in result.stdout.splitlines() if line.startswith("bottleneck"))
    assert bottleneck.endswith("% with it")


def test_the_json_output_of_leeward_place_is_explained(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "app.json").write_text(json.dumps(TASKS))
    options_by_kind = {
        "replicas": ["--size", "1GiB", "--policy", "uniform"],
        "tasks": ["--app", "app.json", "--policy", "borg"],
    }
    for kind, options in options_by_kind.items():
        result = run("place", kind, "--cluster", "c.json", *options, "--explain", "-o", "json")
        (tmp_path / "d.json").write_text(result.stdout)
        completed = run("explain", "d.json")
        assert (completed.returncode, completed.stderr) == (0, "")
        assert " chosen" in completed.stdout


REASON: dict[str, Any] = {
    "candidate": "r0",
    "limit": "r0:uplink",
    "sight": None,
    "value_bps": None,
    "verdict": "chosen",
    "because": None,
}
INVALID_FIELDS: list[dict[str, Any]] = [
    {"hosts": [1]},
    {"limit": {}},
    {"limit": {"value_bps": 10**400}},
    {"id": "7"},
    {"request": {"size": "1MiB"}},
    {"why": [REASON | {"value_bps": "x"}]},
    {"kind": "tasks", "why": [REASON | {"objectives": {"task": 0}}]},
    {"promise": {"slo": None}},
]
"""Invalid fields: a document with any of these is not a decision."""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "d.json:1:2: not JSON: "),
        ("[]", "d.json: expected a decision as JSON"),
        ('{"policy": "sinbad"}', "d.json: why: expected a decision as JSON"),
        ('{"policy": "sinbad", "why": [{"candidate": "r0"}]}', "d.json: why[0]: expected"),
        ('{"policy": "sinbad", "why": [], "limit": 3}', "d.json: limit: expected a decision as JSON"),
        ('{"policy": "sinbad", "why": [], "hosts": "a"}', "d.json: hosts: expected a decision as JSON"),
        ("[" * 100_000, "d.json: not JSON"),
        ('{"policy": NaN}', "d.json: not JSON: NaN is not a number"),
        ('{"policy": "sinbad", "why": [], "tasks": null}', "d.json: tasks: expected a decision as JSON"),
        *(
            (json.dumps({"policy": "sinbad", "why": []} | fields), "d.json: expected a decision as JSON")
            for fields in INVALID_FIELDS
        ),
    ],
)
def test_a_file_without_a_decision_is_rejected(run: Run, tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "d.json").write_text(text)
    result = run("explain", "d.json")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {error}")


def test_terminal_escape_sequences_in_a_decision_are_replaced(run: Run, tmp_path: Path) -> None:
    text = "a\x1b[2Jb"
    document = {"policy": text, "why": [REASON | {"candidate": text}], "hosts": [text], "note": text}
    (tmp_path / "d.json").write_text(json.dumps(document | {"kind": text, "request": {text: text}}))
    result = run("explain", "d.json")
    assert (result.returncode, result.stdout.count("a?[2Jb")) == (0, 7)
    assert "\x1b" not in result.stdout


def test_the_promise_to_a_workload_is_explained(serve: Serve, run: Run, tmp_path: Path) -> None:
    cluster = CLUSTER | {"priorities": 8, "devices": [{"name": "ssd", "read": "500MB/s", "write": "400MB/s"}]}
    link = [{"rate": "4MB/s", "burst": "64kB"}]
    curves = {"network-in": link, "network-out": link, "storage": [{"rate": "10%", "burst": "4ms"}]}
    slo = {"percentile": 99, "latency": "50ms"}
    request = {"name": "mail", "client": "r0h0", "slo": slo, "unloaded": "100us", "curves": curves}
    with serve(tmp_path, cluster) as url:
        client = Client(url, patience_s=0)
        outcome = client.promise(request | {"server": "r1h1"})
        completed = run("explain", outcome["id"], "--controller", url)
        volume = client.place_volume(request | {"name": "index"})
        result = run("explain", volume["id"], "--controller", url)
    assert (completed.returncode, completed.stderr, result.returncode, result.stderr) == (0, "", 0, "")
    assert (
        "request    workload: client r0h0, curves (network-in 1, network-out 1, storage 1), name mail"
        in completed.stdout
    )
    bound = outcome["promise"]["bound_s"]
    assert (
        f"promised   99 % in 50 ms; bound {1000 * bound:.3g} ms by dnc, volume r1h1:ssd\n" in completed.stdout
    )
    rows = {line.split()[0]: line for line in completed.stdout.splitlines() if line}
    assert rows["storage"].split("  ")[0] == "storage"
    assert "11 % + 4.4 ms" in rows["storage"], "curves have a margin of 10 %"
    assert "4.4 MB/s + 70.4 kB" in rows["network-in"]
    assert "request    volumes: client r0h0" in result.stdout
    # After a change of the cluster, a promise may have no bound.
    stages = [
        stage | {"bound_s": None, "priority": None, "limits": []} for stage in outcome["promise"]["stages"]
    ]
    lost = outcome["promise"] | {"bound_s": None, "by": None, "stages": stages}
    (tmp_path / "d.json").write_text(json.dumps(outcome | {"promise": lost}))
    completed = run("explain", "d.json")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "promised   99 % in 50 ms; no bound, volume r1h1:ssd\n" in completed.stdout


def test_unknown_decisions_and_unreachable_controllers_are_reported(
    client: Client, run: Run, tmp_path: Path
) -> None:
    result = run("explain", "99", "--controller", client.url)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("error: --controller: no decision 99: ")
    result = run("explain", "forty-two")
    assert result.stderr == (
        "error: DECISION: `forty-two`: neither the id of a decision (a number) nor a file\n"
    )
    for arguments in (["explain", "1"], ["top"]):
        result = run(*arguments, LEEWARD_CONTROLLER="http://127.0.0.1:1")
        assert result.returncode == 2
        assert result.stderr == (
            "error: --controller: http://127.0.0.1:1: no answer: Connection refused\n"
            "hint: leeward serve starts a controller; --controller URL gives its address\n"
        )
    result = run("top", "--controller", "here")
    assert result.stderr == "error: --controller: `here`: expected an address: http://127.0.0.1:7600\n"
    result = run("top", "--token-file", "nothing")
    assert result.stderr == "error: --token-file: `nothing`: No such file or directory\n"
    assert run("top", LEEWARD_TOKEN_FILE="nothing").stderr == result.stderr
    result = run("top", "--controller", "https://localhost:1", "--ca", "nothing")
    assert (result.returncode, "--ca: " in result.stderr) == (2, True)
    assert (
        run("top", "--controller", "https://localhost:1", LEEWARD_CA_FILE="nothing").stderr == result.stderr
    )


# ---- leeward top ------------------------------------------------------------------------------------


def test_the_most_loaded_links_come_first(client: Client, run: Run) -> None:
    report(client)
    result = run("top", "--once", "--top", "3", "--controller", client.url)
    assert (result.returncode, result.stderr) == (0, "")
    head, columns, *rows = result.stdout.splitlines()
    assert head.startswith("cluster, 2")
    assert columns.split() == ["LINK", "UTILIZATION", "10", "MIN", "HOT", "FOR", "LOAD", "OF", "PENDING"]
    assert [row.split()[0] for row in rows][:2] == ["r3:uplink", "r3:downlink"]
    assert rows[0].split()[1:4] == ["████████████████····", "80", "%"]
    assert "800 Mbps" in rows[0]
    view = json.loads(run("top", "--once", "-o", "json", "--controller", client.url).stdout)
    assert (view["cluster"], view["old"], len(view["rows"])) == ("cluster", None, 20)
    assert view["rows"][0]["utilization"] == pytest.approx(0.8)


def test_top_redraws_on_a_terminal_until_q_is_pressed(client: Client) -> None:
    master, slave = pty.openpty()
    command = [str(LEEWARD), "top", "--controller", client.url, "--every", "100ms"]
    environment = os.environ | {"TERM": "xterm", "LINES": "30", "COLUMNS": "120"}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        output = _read_until(master, b"press q to quit")
        output += _read_until(master, b"press q to quit")
        os.write(master, b"q")
        rest = b""
        while piece := _read_available(master):
            rest += piece
        assert process.wait(30) == 0, output + rest
    os.close(master)
    assert b"r3:uplink" in output
    assert b"\x1b[?1049h" in output
    assert b"\x1b[?1049l" in rest, "the terminal is restored"


def _read_until(terminal: int, text: bytes) -> bytes:
    output, end = b"", time.monotonic() + 60
    while text not in output:
        assert time.monotonic() < end, output
        if select.select([terminal], [], [], 1)[0]:
            output += _read_available(terminal)
    return output


def _read_available(terminal: int) -> bytes:
    try:
        return os.read(terminal, 2**16)
    except OSError:
        return b""


class FakeClient:
    """Fake client of a controller with one link."""

    def __init__(self) -> None:
        self.answers = True
        self.time = "2026-01-31T12:00:30.123456789Z"
        self.trend_queries = 0

    def status(self) -> dict[str, Any]:
        if not self.answers:
            raise UnreachableError("http://here", "no answer in time")
        return {"cluster": "c", "time": self.time, "interval_s": 5.0, "hot_above": 0.75}

    def links(self, **_: Any) -> list[dict[str, Any]]:
        link = {"link": "r0:uplink", "capacity_bps": 10, "measured_bps": 8, "utilization": 0.8}
        times = {"hot_since": "2026-01-31T12:00:10Z", "until": "2026-01-31T12:00:25Z"}
        return [link | {"pending_bps": 0} | times]

    def hotspots(self) -> list[object]:
        return [object()]

    def link_history(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.trend_queries += 1
        return {"series": [{"link": "r0:uplink", "utilization": [None, 0.5, 0.8]}]}


def test_the_board_marks_an_overdue_report_and_an_unreachable_controller() -> None:
    client, now = FakeClient(), [100.0]
    board = Board(client, 5, lambda: now[0])  # type: ignore[arg-type]
    view = board.view()
    assert (view.hot, view.old) == (1, None)
    row = view.rows[0]
    assert (round(row.hot_s or 0), round(row.age_s or 0), row.trend) == (20, 5, [None, 0.5, 0.8])
    client.time, now[0] = "2026-01-31T12:00:40Z", 105.0
    overdue = board.view()
    assert overdue.old == "the last report ended 15 s ago, and an interval is 5 s"
    assert client.trend_queries == 1, "the trend is cached"
    client.answers, now[0] = False, 112.0
    unreachable = board.view()
    assert unreachable.old == "the controller has not answered for 7 s: no answer in time"
    assert unreachable.rows == overdue.rows
    client.answers = True
    assert board.view().silent_s == 0
    client.answers = False
    with pytest.raises(UnreachableError):
        Board(client, 5, lambda: now[0]).view()  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000001Z"])
def test_times_with_and_without_a_fraction_are_parsed(text: str) -> None:
    assert read_time(text) == datetime(2026, 1, 31, 12, tzinfo=UTC)
