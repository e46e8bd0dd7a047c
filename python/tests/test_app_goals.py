"""Phases of apps, bounds on round-trip times, and costs of hosts, by the command and the service."""

import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml

import leeward
from leeward import Client, InputError, ProblemError, RefusedError

Run = Callable[..., subprocess.CompletedProcess[str]]
Serve = Callable[..., AbstractContextManager[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
PIPELINE = EXAMPLES / "apps" / "pipeline.yaml"
CLOUD = EXAMPLES / "clusters" / "cloud.yaml"
CLUSTER: dict[str, Any] = {
    "racks": 2,
    "hosts_per_rack": 2,
    "nic": "1Gbps",
    "oversubscription": 2,
    "cpus": 2,
    "rtt": {"rack": "100us", "network": "1ms"},
}
APP: dict[str, Any] = {
    "tasks": [{"name": "web", "cpus": 2}, {"name": "cache", "cpus": 2}],
    "transfers": [{"from": "web", "to": "cache", "bytes": "1MB"}],
    "latency": [{"from": "web", "to": "cache", "max": "100us"}],
}


def write(folder: Path, app: dict[str, Any]) -> Path:
    path = folder / "app.yaml"
    path.write_text(yaml.safe_dump(app))
    return path


def test_an_app_of_phases_is_placed_within_its_bounds_at_the_least_cost(run: Run) -> None:
    command = ("place", "tasks", "--cluster", str(CLOUD), "--app", str(PIPELINE))
    result = run(*command, "--policy", "choreo-exact", "--explain")
    assert result.returncode == 0, result.stderr
    assert "and no placement has a shorter forecast\n" in result.stdout
    assert "hosts cost 0.6 per hour, and no placement with this forecast costs less" in result.stdout
    lines = result.stdout.splitlines()
    header = next(line.split() for line in lines if line.startswith("PHASE"))
    assert header[:3] == ["PHASE", "FROM", "TO"]
    placed = json.loads(run(*command, "-o", "json").stdout)
    where = {task["task"]: task["host"] for task in placed["tasks"]}
    racks = {
        host["name"]: rack["name"]
        for rack in yaml.safe_load(CLOUD.read_text())["racks"]
        for host in rack["hosts"]
    }
    assert {racks[where[server]] for server in ("server0", "server1")} == {racks[where["cache"]]}
    ends: dict[int, float] = {}
    for transfer in placed["transfers"]:
        ends[transfer["phase"]] = max(ends.get(transfer["phase"], 0), transfer["seconds"])
    assert sorted(ends) == [0, 1, 2]
    assert ends[0] <= ends[1] <= ends[2] == placed["completion_s"]
    assert placed["cost"] == pytest.approx(0.2 * len(set(where.values())))


def test_a_bound_that_no_hosts_meet_is_named_with_both_tasks(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(CLUSTER))
    app = APP | {"latency": [{"from": "cache", "to": "web", "max": "99us"}]}
    result = run("place", "tasks", "--cluster", "cluster.yaml", "--app", str(write(tmp_path, app)))
    assert result.returncode == 1
    assert "error: found no placement: task cache has no host left" in result.stderr
    assert result.stderr.rstrip().endswith("; too far from task web")
    job = run("place", "tasks", "--cluster", "cluster.yaml", "--job", str(write(tmp_path, APP)))
    assert job.returncode == 2
    assert "latency: a job's tasks are placed one by one" in job.stderr


def test_the_goal_cost_prefers_cheap_hosts_over_fast_ones(run: Run, tmp_path: Path) -> None:
    hosts: list[dict[str, Any]] = [
        {"name": "dear", "nic": "1Gbps", "cost": 2},
        {"name": "fast", "nic": "1Gbps", "cost": 1},
        {"name": "slow", "nic": "10Mbps", "cost": "0.5"},
    ]
    cluster = {"shape": "hose", "cpus": 2, "hosts": hosts}
    app = {key: value for key, value in APP.items() if key != "latency"}

    def placed(goal: str, policy: str) -> tuple[set[str | None], float | None]:
        answer = leeward.place_tasks(cluster, write(tmp_path, app | {"goal": goal}), policy=policy)
        return {task["host"] for task in answer["tasks"]}, answer["cost"]

    for policy in ("choreo", "leeward", "choreo-exact"):
        assert placed("time", policy)[0] >= {"fast"}, policy
        assert placed("cost", policy) == ({"fast", "slow"}, 1.5), policy
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    write(tmp_path, app | {"goal": "cost"})
    place = ("place", "tasks", "--cluster", "cluster.yaml", "--app", "app.yaml", "--policy", "choreo-exact")
    lines = run(*place).stdout.splitlines()
    assert lines[-2].endswith(", and no placement of this cost has a shorter forecast")
    assert lines[-1] == "hosts cost 1.5 per hour, and no placement costs less"
    # The fastest placements send from a fast host; the cheapest of them receives at the slow one.
    assert placed("time", "choreo-exact") == ({"fast", "slow"}, 1.5)
    free = [{key: value for key, value in host.items() if key != "cost"} for host in hosts]
    assert leeward.place_tasks(cluster | {"hosts": free}, write(tmp_path, app))["cost"] is None


def test_phases_of_a_running_app_are_re_evaluated(run: Run, tmp_path: Path) -> None:
    hosts = [("slow", "80Mbps", 1), ("fast", "800Mbps", 1), ("sink", "800Mbps", 2)]
    cluster = {
        "shape": "hose",
        "hosts": [{"name": name, "nic": nic, "cpus": cpus} for name, nic, cpus in hosts],
    }
    transfers = [{"from": "a", "to": "b", "bytes": "1GB"}]
    app = {
        "tasks": [{"name": "a", "cpus": 1}, {"name": "b", "cpus": 2}],
        "phases": [{"transfers": transfers}] * 2,
    }
    path, where = write(tmp_path, app), {"a": "slow", "b": "sink"}
    assert leeward.reevaluate(path, cluster, where, move_cost=0).before_s == 200
    rest = [[0, 0], [0, 0]], [[0, 5e8], [0, 0]]
    answer = leeward.reevaluate(path, cluster, where, remaining=rest, move_cost=0)
    assert (answer.before_s, answer.after_s) == (50, 5)
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    (tmp_path / "where.json").write_text(json.dumps(where))
    (tmp_path / "first.csv").write_text("0,0\n0,0\n")
    numpy.save(tmp_path / "second.npy", numpy.array(rest[1]))
    command = ("reevaluate", "--cluster", "cluster.yaml", "--app", "app.yaml", "--placed", "where.json")
    files = ("--remaining", "first.csv,second.npy")
    result = run(*command, *files, "--move-cost", "0s", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["before_s"] == 50
    with pytest.raises(InputError, match="matrix: 21 phases: expected at most 20"):
        leeward.reevaluate(path, cluster, where, remaining=[[[0, 1], [0, 0]]] * 21)


def test_a_scenario_runs_the_phases_of_an_app_one_after_another(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("shape: hose\nhosts: 2\nnic: 80Mbps\ncpus: 2\n")
    (tmp_path / "scenario.yaml").write_text(
        "cluster: cluster.yaml\nworkloads: [{app: {file: app.yaml, at: 10s}}]\n"
        "policies: [choreo]\nhorizon: 2min\n"
    )
    there, back = (
        {"from": "web", "to": "cache", "bytes": "100MB"},
        {"from": "cache", "to": "web", "bytes": "100MB"},
    )
    app = {"tasks": APP["tasks"]}

    def seconds(**traffic: Any) -> float:
        write(tmp_path, app | traffic)
        (run,) = leeward.simulate(tmp_path / "scenario.yaml")
        return float(run.summary()["apps"]["completion_s"]["mean"])

    assert seconds(transfers=[there, back]) == pytest.approx(10)
    assert seconds(phases=[{"transfers": [there]}, {"transfers": [back]}]) == pytest.approx(20)


def test_the_service_places_and_re_evaluates_apps_with_goals(serve: Serve, tmp_path: Path) -> None:
    cluster = CLUSTER | {"racks": [{"hosts": 2, "cost": 3}, {"hosts": 2, "cost": 1}]}
    with serve(tmp_path, cluster) as url:
        client = Client(url)
        far = APP | {"latency": [{"from": "web", "to": "cache", "max": "99us"}]}
        with pytest.raises(RefusedError, match="too far from task 0"):
            client.place_tasks(far)
        phases = [
            {"transfers": APP["transfers"]},
            {"transfers": [{"from": "cache", "to": "web", "bytes": "2MB"}]},
        ]
        app = {key: value for key, value in APP.items() if key != "transfers"} | {
            "phases": phases,
            "goal": "cost",
        }
        placed = client.place_tasks(app)
        assert sorted(placed["hosts"]) == ["r1h0", "r1h1"]
        request = client.decision(placed["id"])["request"]
        assert (request["goal"], request["latency"]) == ("cost", [{"tasks": [0, 1], "max": "100us"}])
        assert [transfer.get("phase", 0) for transfer in request["transfers"]] == [0, 1]
        left = [{"from": "cache", "to": "web", "bytes": "1MB", "phase": 1}]
        again = client.reevaluate(placed["id"], remaining=left, dry_run=True)["reevaluation"]
        assert again["before_s"] == pytest.approx(0.008)
        with pytest.raises(ProblemError, match="remaining: the app has no phase 2: its last one is 1"):
            client.reevaluate(placed["id"], remaining=[left[0] | {"phase": 2}])
        file = app | {"phases": [{"matrix": "/etc/passwd"}]}
        with pytest.raises(ProblemError, match=r"app\.phases\[0\]\.matrix: files cannot be named here"):
            client.place_tasks(file)
