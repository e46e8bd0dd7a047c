"""Promises in force: the client's methods, `leeward slo status` and `leeward slo change`."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy
import pytest

from leeward import Client, InputError, ProblemError
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.slo.change import OUTCOMES
from leeward.client.promise_types import EnforcerPromises, WorkloadReport
from leeward.traces import workload_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
Serve = Callable[..., AbstractContextManager[str]]

EXAMPLES = Path(__file__).parents[2] / "examples/slo"
LEEWARD = Path(sys.executable).with_name("leeward")
TRACE, DEVICE = str(EXAMPLES / "mail.csv.gz"), str(EXAMPLES / "ssd.json")
CLUSTER = {
    "racks": 2,
    "hosts_per_rack": 3,
    "nic": "10Gbps",
    "oversubscription": 1,
    "priorities": 8,
    "devices": [{"name": "ssd", "read": "500MB/s", "write": "400MB/s"}],
}
LINK = [{"rate": "4MB/s", "burst": "64kB"}]
MAIL = {
    "name": "mail",
    "client": "r0h0",
    "server": "r1h1",
    "slo": {"percentile": 99, "latency": "50ms"},
    "unloaded": "100us",
    "curves": {"network-in": LINK, "network-out": LINK, "storage": [{"rate": "10%", "burst": "4ms"}]},
}
ENFORCERS: tuple[tuple[str, Literal["net", "nfs"], str], ...] = (
    ("net@r0h0", "net", "r0h0"),
    ("nfs@r1h1", "nfs", "r1h1"),
    ("net@r1h1", "net", "r1h1"),
)


@pytest.fixture
def client(serve: Serve, tmp_path: Path) -> Iterator[Client]:
    with serve(tmp_path, CLUSTER) as url:
        yield Client(url, patience_s=0)


def enforce(client: Client, *workloads: WorkloadReport) -> list[EnforcerPromises]:
    """All enforcers register, read their promises, and acknowledge them."""
    applied = []
    for name, kind, host in ENFORCERS:
        client.acknowledge(name, kind, host, lease="1min")
        promises = client.enforcer_promises(name)
        client.acknowledge(name, kind, host, applied=promises, workloads=workloads, lease="1min")
        applied.append(promises)
    return applied


def test_an_enforcer_reads_its_promises_and_says_what_it_applied(client: Client) -> None:
    client.promise(MAIL)
    decided = client.workload("mail")["enforcement"]
    assert decided is not None
    assert (decided["state"], {place["state"] for place in decided["places"]}) == ("decided", {"absent"})
    latencies = [{"percentile": 99.0, "seconds": 0.02}]
    requests, proxy, replies = enforce(
        client,
        {
            "workload": "mail",
            "state": "applied",
            "counters": {"bytes": 0, "requests": 0, "over_limit": 0, "late": 0},
            "latencies": [{"percentile": 99.0, "seconds": 0.02}],
        },
    )
    assert [one["stage"] for one in requests["net"] + replies["net"]] == ["network-in", "network-out"]
    assert proxy["nfs"][0]["client"] == "r0h0"
    seen = client.workload("mail")
    assert seen["enforcement"] is not None
    assert (seen["enforcement"]["state"], seen["seen_s"]) == ("seen", latencies[0]["seconds"])
    assert [one["enforcer"] for one in client.enforcers()] == ["net@r0h0", "net@r1h1", "nfs@r1h1"]
    version = requests["version"]
    client.promise(MAIL | {"name": "other", "slo": {"percentile": 99, "latency": "40ms"}})
    assert client.enforcer_promises("net@r0h0", since=version, wait_s=30.0)["version"] > version
    assert client.workloads_page(since=version, wait_s=30.0)["version"] > version
    assert client.remove_enforcer("nfs@r1h1")["host"] == "r1h1"
    with pytest.raises(ProblemError) as gone:
        client.enforcer("nfs@r1h1")
    assert gone.value.word == "not-found"
    client.acknowledge("net@r1h1", "net", "r1h1", instance="first")
    with pytest.raises(ProblemError) as second:
        client.acknowledge("net@r1h1", "net", "r1h1", instance="second")
    assert second.value.word == "enforcer"
    with pytest.raises(ProblemError) as future:
        client.acknowledge("net@r0h0", "net", "r0h0", applied={**requests, "version": 99})
    assert future.value.word == "enforcer"


def test_status_shows_where_promises_are_enforced(client: Client, run: Run) -> None:
    empty = run("slo", "status", "--controller", client.url)
    assert (empty.returncode, empty.stdout) == (0, "")
    assert empty.stderr.startswith("no workload has a promised SLO")
    client.promise(MAIL)
    decided = run("slo", "status", "--controller", client.url)
    assert decided.returncode == 0
    assert "99 % in 50 ms" in decided.stdout
    assert "0 of 3" in decided.stdout
    assert "mail: storage: no nfs enforcer has registered for r1h1" in decided.stderr
    enforce(
        client,
        {"workload": "mail", "state": "applied", "latencies": [{"percentile": 99.9, "seconds": 0.03}]},
    )
    seen = run("slo", "status", "--controller", client.url, "-q")
    rows = {line.split()[0]: line for line in seen.stdout.splitlines() if line}
    assert "30 ms at the server" in rows["mail"]
    assert "seen" in rows["mail"]
    assert "3 of 3" in rows["mail"]
    assert "live" in rows["nfs@r1h1"]
    refused: WorkloadReport = {"workload": "mail", "state": "refused", "detail": "no HTB"}
    client.acknowledge("net@r0h0", "net", "r0h0", workloads=[refused])
    unenforced = run("slo", "status", "--controller", client.url)
    assert "unenforced  2 of 3, 1 refused" in unenforced.stdout
    assert "mail: network-in: net@r0h0 cannot apply it: no HTB" in unenforced.stderr
    checked = run("slo", "status", "--controller", client.url, "--check")
    assert (checked.returncode, checked.stdout) == (1, unenforced.stdout)
    assert "error: mail is not enforced: unenforced" in checked.stderr
    applied: WorkloadReport = {"workload": "mail", "state": "applied"}
    _, proxy, _ = enforce(client, applied)
    assert run("slo", "status", "--controller", client.url, "--check").returncode == 0
    late: WorkloadReport = {**applied, "counters": {"requests": 200, "late": 100}}
    client.acknowledge("nfs@r1h1", "nfs", "r1h1", applied=proxy, workloads=[late], lease="1min")
    alarmed = run("slo", "status", "--controller", client.url, "--check")
    assert alarmed.returncode == 1
    assert "100 of 2" in alarmed.stdout
    assert "error: mail uses up its SLO too fast: fast, slow, lasting" in alarmed.stderr
    assert "requests count since 20" in alarmed.stderr
    client.acknowledge("net@r0h0", "net", "r0h0", workloads=[refused])
    document = json.loads(run("slo", "status", "--controller", client.url, "-o", "json").stdout)
    assert document["workloads"] == list(client.workloads())
    assert len(document["enforcers"]) == 3
    text = run("slo", "status", "--controller", client.url, "-o", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert [*row] == [*COLUMNS["slo status"]]
    assert (row["name"], row["enforcement.state"]) == ("mail", "unenforced")
    assert len(json.loads(row["enforcement.places"])) == 3


def test_status_repeats_and_reports_an_unreachable_controller(client: Client, run: Run) -> None:
    client.promise(MAIL)
    command = [str(LEEWARD), "slo", "status", "--controller", client.url, "--every", "10ms", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.terminate()
    assert [json.loads(line)["workloads"][0]["name"] for line in lines] == ["mail", "mail"]
    command[command.index(client.url)] = "http://127.0.0.1:1"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
        process.terminate()
    assert all(line.startswith("error: --controller: http://127.0.0.1:1: no answer") for line in lines)
    both = run("slo", "status", "--every", "1s", "--check")
    assert (both.returncode, "--check: has no effect with --every" in both.stderr) == (2, True)
    gone = run("slo", "status", "--controller", "http://127.0.0.1:1")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert gone.stderr.startswith("error: --controller: http://127.0.0.1:1: no answer")


def test_a_new_trace_decides_again(client: Client, run: Run) -> None:
    client.promise(MAIL | {"slo": {"percentile": 99, "latency": "500ms"}})
    before = client.workload("mail")
    command = ("slo", "change", "mail", TRACE, "--device", DEVICE, "--controller", client.url)
    would = run(*command, "--dry-run")
    assert would.returncode == 0, would.stderr
    assert would.stdout.startswith("mail: ")
    assert "dry run: nothing changed" in would.stderr
    assert client.workload("mail") == before
    decision = json.loads(run(*command, "--volume-size", "1GiB", "-o", "json").stdout)
    redecision: dict[str, Any] = decision["redecision"]
    assert redecision["outcome"] in OUTCOMES
    assert redecision["trace"]["sha256"] == sha256(Path(TRACE).read_bytes()).hexdigest()
    assert client.decision(before["decision"]) == decision
    after = client.workload("mail")
    changed = redecision["outcome"] in ("limits", "priority")
    assert (after["version"] > before["version"]) == changed
    assert (after["stages"] != before["stages"]) == changed
    assert "its load changes over the trace" not in would.stderr
    unknown = run("slo", "change", "nobody", TRACE, "--controller", client.url)
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no workload `nobody` is stored" in unknown.stderr
    client.release(before["decision"])
    ended = run(*command)
    assert ended.returncode == 2
    assert "its promise ended at" in ended.stderr


def test_a_trace_whose_load_grows_has_a_note(client: Client, run: Run, tmp_path: Path) -> None:
    client.promise(MAIL | {"slo": {"percentile": 99, "latency": "500ms"}})
    draw = numpy.random.default_rng(1)
    times = numpy.sort(numpy.concatenate([draw.uniform(0, 300, 3_000), draw.uniform(300, 600, 9_000)]))
    trace = tmp_path / "grows.csv"
    trace.write_text("seconds,kind,size\n" + "".join(f"{at:.6f},read,8192\n" for at in times))
    would = run("slo", "change", "mail", str(trace), "--controller", client.url, "--dry-run")
    assert would.returncode == 0, would.stderr
    assert "note: network-in, network-out: its load changes over the trace; bounds by snc" in would.stderr


def test_fields_of_a_trace_have_few_buckets_and_its_hash(tmp_path: Path) -> None:
    fields, source = workload_fields(TRACE, device=DEVICE, percentile=99.0, buckets=5)
    assert [one["stage"] for one in fields["model"]] == ["network-in", "storage", "network-out"]
    assert all(1 <= len(one["buckets"]) <= 5 for one in fields["model"])
    assert fields["curves"] is None
    assert fields["unloaded"].endswith("ns")
    assert len(json.dumps(fields)) < 1 << 16
    assert source["sha256"] == sha256(Path(TRACE).read_bytes()).hexdigest()
    assert source["requests"]
    without, _ = workload_fields(TRACE)
    assert [one["stage"] for one in without["model"]] == ["network-in", "network-out"]
    assert "unloaded" not in without
    with pytest.raises(InputError):
        workload_fields(tmp_path / "nothing.csv")
