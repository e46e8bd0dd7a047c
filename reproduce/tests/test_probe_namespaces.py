"""Measurements between namespaces: rates match the limits of `tc`, and tasks go to the faster host."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from leeward import Cluster, place_tasks
from leeward_reproduce.choreo.namespaces import (
    COMMAND,
    Network,
    Place,
    UnableError,
    address,
    host_name,
    network,
    output_of,
)
from leeward_reproduce.choreo.simulated import SIMULATED
from leeward_reproduce.perform import reproduce
from support.parts import lack

NOT_HERE = ("need root", "No such file", "Operation not permitted", "Read-only file system")
"""Errors of a machine without namespaces."""


@contextmanager
def built_namespaces(*pods: tuple[int, ...], paths: dict[Place, float] | None = None) -> Iterator[Network]:
    """A network of namespaces; skips the test on a machine without them."""
    try:
        with network(*pods, paths=paths) as built:
            yield built
    except UnableError as error:
        # Other errors are failures of the test.
        if any(why in str(error) for why in NOT_HERE):
            lack(str(error))
        raise


def test_an_app_is_placed_on_the_host_with_the_higher_measured_rate(tmp_path: Path) -> None:
    with built_namespaces((2, 1)) as built:
        limits = dict(zip(built.hosts, (30e6, 90e6, 30e6), strict=True))
        limit_of = {f"h{rack}-{host}": limit for (rack, host), limit in limits.items()}
        for host, rate in limits.items():
            built.limit(host, rate)

        def is_close(path: dict[str, Any]) -> bool:
            return bool(0.75 < path["rate_bps"] / limit_of[path["from"]] < 1.15)

        # Other load on this machine may disturb a measurement.
        for _ in range(3):
            answer = built.probe("mesh", "--hosts", built.host_list(), "--hops", "--bursts", "20")
            if all(map(is_close, answer["paths"])):
                break
    assert all(map(is_close, answer["paths"])), answer["paths"]
    assert answer["topology"]["racks"] == [["h0-0", "h0-1"], ["h1-0"]]
    measured = Cluster(answer["cluster"])
    assert (measured.shape, measured.racks) == ("pipe", 2)
    app = tmp_path / "app.yaml"
    app.write_text(
        "tasks: [{ name: map, cpus: 1 }, { name: reduce, cpus: 1 }]\n"
        "transfers: [{ from: map, to: reduce, bytes: 1GB }]\n"
    )
    # One task per host: both tasks cannot share a host.
    single = Cluster(answer["cluster"].replace("shape: pipe\n", "shape: pipe\ncpus: 1\n"))
    decision = place_tasks(single, app, policy="choreo")
    assert decision["tasks"][0]["host"] == "h0-1", decision


def test_per_path_limits_are_classified_as_pipe() -> None:
    hosts = [(rack, host) for rack in range(2) for host in range(2)]
    with built_namespaces((2, 2), paths=dict.fromkeys(hosts, 30e6)) as built:
        answer = built.probe("bottlenecks", "--hosts", built.host_list(), "--pairs", "1", "--for", "1500ms")
    assert answer["kind"] == "pipe", answer


def started(running: ExitStack, *command: str) -> list[str]:
    """Starts a process that runs until the test ends; returns the words of its first line."""
    process = running.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    running.callback(process.terminate)
    assert process.stderr is not None
    return process.stderr.readline().split()


def test_agents_measure_for_a_service_outside_their_network(tmp_path: Path) -> None:
    files = {
        name: str(tmp_path / name) for name in ("cluster.yaml", "service.yaml", "tokens", "token", "secret")
    }
    Path(files["cluster.yaml"]).write_text("{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}\n")
    Path(files["service.yaml"]).write_text(f"probes: {{secret: {files['secret']}}}\n")
    Path(files["secret"]).write_text("ours\n")
    token = (*COMMAND, "token", "new", "--name", "all", "--role", "admin", "--tokens", files["tokens"])
    Path(files["token"]).write_text(subprocess.run(token, check=True, capture_output=True, text=True).stdout)
    url = "http://172.31.0.1:7600"
    through = ("--controller", url, "--token-file", files["token"])
    with built_namespaces((2, 2)) as built, ExitStack() as running:

        def run(place: str, *command: str) -> list[str]:
            return started(running, *built.lab.command(place, (*COMMAND, *command)))

        store = ("--store", "memory", "--listen", url.removeprefix("http://"))
        serve = ("serve", "--cluster", files["cluster.yaml"], "--config", files["service.yaml"], *store)
        assert run("core", *serve, "--tokens", files["tokens"]) == ["listening", "on", url]
        for rack, host in built.hosts:
            built.limit((rack, host), 30e6)
            listen = ("--probe-listen", f"{address((rack, host))}:7602", "--secret", files["secret"])
            agent = ("agent", "--host", f"r{rack}h{host}", "--interface", "eth0", *through, *listen)
            assert run(host_name((rack, host)), *agent) == ["reports", "accepted"]
        paths = built.probe("path", "r0h0", "r1h1", *through)
        hosts = ",".join(f"r{rack}h{host}" for rack, host in built.hosts)
        answer = built.probe("bottlenecks", "--hosts", hosts, "--pairs", "1", "--for", "1500ms", *through)
    assert all(0.75 * 30e6 < path["rate_bps"] < 1.15 * 30e6 for path in paths), paths
    assert (answer["kind"], answer["errors"]) == ("hose", []), answer
    assert {one["path"]["from"] for one in answer["from_one"]} <= set(hosts.split(",")), answer


def test_rows_that_need_root_are_marked_not_measured_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    rows = reproduce("choreo", ["2", "7", "8", "4.3"], seeds=1, out=tmp_path)
    why = "not measured: namespaces need root"
    missing = [row.figure for row in rows if row.ours is None and row.note == why]
    assert missing == ["2", "7", "8", "4.3", "4.3"]
    assert any(row.figure == "2" and row.paper and row.ours for row in rows)
    simulated = {row.figure for row in rows if row.ours is not None and SIMULATED in row.quantity}
    assert simulated == {"2", "7", "8", "4.3"}
    drawn = [f"{figure}.{kind}" for figure in ("2", "7", "8") for kind in ("png", "svg")]
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == drawn


def test_a_path_with_failed_trains_gives_no_stability(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "error: it takes too long\nerror: 2 of 120 trains could not be measured\n"
    failed = subprocess.CompletedProcess([], 1, stdout='{"samples": [], "lags": []}', stderr=message)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UnableError, match=r"^2 of 120 trains could not be measured$"):
        output_of(["leeward", "probe", "steady"])
