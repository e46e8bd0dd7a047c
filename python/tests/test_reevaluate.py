"""Re-evaluation of running apps, from Python and by the command."""

import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import leeward
from leeward import Client, InputError, RefusedError

Serve = Callable[..., AbstractContextManager[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def cluster(slow: str) -> dict[str, object]:
    """A cluster whose host `slow` sends at this rate; only `sink` has room for the task `b`."""
    hosts = [("slow", slow, 1), ("fast", "800Mbps", 1), ("sink", "800Mbps", 2)]
    return {
        "shape": "hose",
        "hosts": [{"name": name, "nic": nic, "cpus": cpus} for name, nic, cpus in hosts],
    }


CLUSTER = cluster("80Mbps")
APP = """\
name: pair
tasks:
  - {name: a, cpus: 1, memory: 100MB}
  - {name: b, cpus: 2}
transfers:
  - {from: a, to: b, bytes: 1GB}
"""
WHERE = {"a": "slow", "b": "sink"}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text(APP)
    return tmp_path / "app.yaml"


def test_an_app_moves_if_the_gain_exceeds_the_cost(app: Path) -> None:
    # 1 GB takes 100 s at 10 MB/s and 10 s at 100 MB/s. Memory of 100 MB leaves the slow host in 10 s.
    answer = leeward.reevaluate(app, CLUSTER, WHERE)
    assert answer.moves == [{"task": "a", "from": "slow", "to": "fast"}]
    assert (answer.before_s, answer.after_s, answer.gain_s, answer.cost_s) == (100, 20, 80, 10)
    assert answer.worth_it
    assert "after 20.0 s instead of after 100 s" in answer.reason


@pytest.mark.parametrize(
    ("move_cost", "cost_s", "moves"),
    [("30s", 30, 1), (30, 30, 1), (0, 0, 1), ("10MB", 1, 1), ("1GB", 100, 0), ("79s", 79, 1), ("81s", 81, 0)],
)
def test_the_cost_of_a_move_is_a_time_or_a_size(
    app: Path, move_cost: str | float, cost_s: float, moves: int
) -> None:
    answer = leeward.reevaluate(app, CLUSTER, WHERE, move_cost=move_cost)
    assert answer.cost_s == pytest.approx(cost_s)
    assert len(answer.moves) == moves
    assert answer.worth_it == bool(moves)


def test_less_is_left_to_gain_near_the_end(app: Path) -> None:
    answer = leeward.reevaluate(app, CLUSTER, WHERE, remaining=[[0, 50e6], [0, 0]])
    assert (answer.before_s, answer.worth_it, answer.moves) == (5, False, [])
    assert answer.gain_s is not None
    assert answer.gain_s < 0
    assert "would save no time" in answer.reason


def test_nothing_is_left_to_gain_on_the_best_hosts(app: Path) -> None:
    answer = leeward.reevaluate(app, CLUSTER, {"a": "fast", "b": "sink"})
    assert (answer.moves, answer.gain_s) == ([], 0)
    assert answer.reason == "the policy finds no better hosts"


def test_own_traffic_in_telemetry_is_no_reason_to_move(app: Path, tmp_path: Path) -> None:
    (tmp_path / "busy.csv").write_text("link,load_bps\nfast:egress,800000000\nslow:egress,0\n")
    own = leeward.reevaluate(app, CLUSTER, {"a": "fast", "b": "sink"}, telemetry=tmp_path / "busy.csv")
    assert own.before_s == pytest.approx(10, rel=0.01)
    assert not own.moves


def test_connections_of_others_are_a_reason_to_move(app: Path, tmp_path: Path) -> None:
    (tmp_path / "others.csv").write_text("link,connections\nfast:egress,19\n")
    answer = leeward.reevaluate(
        app,
        cluster("800Mbps"),
        {"a": "fast", "b": "sink"},
        cross_traffic=tmp_path / "others.csv",
        move_cost=0,
    )
    assert answer.before_s == pytest.approx(200)
    assert answer.after_s == pytest.approx(10)
    assert answer.moves == [{"task": "a", "from": "fast", "to": "slow"}]


def test_an_app_that_fits_nowhere_else_stays(app: Path) -> None:
    answer = leeward.reevaluate(app, CLUSTER, WHERE, exclude=["fast"], policy="choreo")
    assert not answer.worth_it
    refused = leeward.reevaluate(app, CLUSTER, WHERE, exclude=["fast", "sink"], policy="choreo")
    assert refused.before_s is None
    assert refused.reason.startswith("the policy finds no hosts: ")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"a": "slow"}, "no host for the task `b`"),
        ({"a": "slow", "b": "moon"}, "no host is named `moon`"),
        ({**WHERE, "c": "fast"}, "the app has no task `c`"),
        ({"a": 1}, "expected the name of a task and its host"),
        ({"tasks": [{"task": "a", "host": None}]}, "expected the name of a task and its host"),
    ],
)
def test_invalid_current_hosts_are_rejected(app: Path, where: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        leeward.reevaluate(app, CLUSTER, where)


@pytest.mark.parametrize("arguments", [{"move_cost": "soon"}, {"move_cost": -1}, {"margin": 2}, {"seed": -1}])
def test_invalid_arguments_are_rejected(app: Path, arguments: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(arguments))):
        leeward.reevaluate(app, CLUSTER, WHERE, **arguments)  # type: ignore[arg-type]


def test_the_command_reads_the_answer_of_place_tasks(run: Run, app: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    here = ("--cluster", "cluster.json", "--app", str(app))
    placed = run("place", "tasks", *here, "--exclude", "fast", "-o", "json")
    assert placed.returncode == 0, placed.stderr
    (tmp_path / "placed.json").write_text(placed.stdout)
    result = run("reevaluate", *here, "--placed", "placed.json", "-o", "json", "--move-cost", "1s")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    before = {one["task"]: one["host"] for one in json.loads(placed.stdout)["tasks"]}
    assert all(before[move["task"]] == move["from"] for move in answer["moves"])
    stays = run("reevaluate", *here, "--placed", "placed.json", "--margin", "100%")
    assert stays.stdout.startswith("stay: ")
    wrong = run("reevaluate", *here, "--placed", "app.yaml")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_a_service_moves_a_running_app_and_explains_it(run: Run, serve: Serve, tmp_path: Path) -> None:
    tasks = [{"name": "a", "cpus": 1}, {"name": "b", "cpus": 2}]
    app = {"tasks": tasks, "transfers": [{"from": "a", "to": "b", "bytes": "1GB"}]}
    with serve(tmp_path, CLUSTER) as url:
        client = Client(url)
        placed = client.commit(["slow", "sink"], tasks={"app": app})["id"]
        ahead = client.reevaluate(placed, dry_run=True)
        assert ahead["hosts"] == ["slow", "sink"]
        assert ahead["reevaluation"]["moves"] == [{"task": "a", "from": "slow", "to": "fast"}]
        left = [{"from": "a", "to": "b", "bytes": "100MB"}]
        costly = client.reevaluate(placed, remaining=left, move_cost="10s")
        assert (costly["hosts"], costly["reevaluation"]["worth_it"]) == (["slow", "sink"], False)
        assert client.decision(placed)["reevaluation"] == costly["reevaluation"]
        client.set_modes(tasks="shadow")
        shadow = client.reevaluate(placed)
        assert (shadow["hosts"], shadow["reevaluation"]["worth_it"]) == (["slow", "sink"], False)
        client.set_modes(tasks="on")
        (tmp_path / "left.csv").write_text("0,1e9\n0,0\n")
        here = ("reevaluate", "--decision", placed, "--controller", url)
        moved = run(*here, "--remaining", "left.csv", "--move-cost", "1s")
        assert moved.returncode == 0, moved.stderr
        assert moved.stdout.splitlines()[-1].startswith("move: 1 move: transfers end after 11.0 s")
        assert client.decision(placed)["hosts"] == ["fast", "sink"]
        assert (client.host("fast")["tasks"], client.host("slow")["tasks"]) == (1, 0)
        assert client.reevaluate(placed)["reevaluation"]["reason"] == "the policy finds no better hosts"
        explained = run("explain", placed, "--controller", url)
        assert "stay: the policy finds no better hosts" in explained.stdout
        client.release(placed)
        with pytest.raises(RefusedError, match="has ended"):
            client.reevaluate(placed)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *(("--exclude", "slow"), ("--apart", "host"), ("--policy", "leeward"), ("--telemetry", "loads.csv")),
        *(("--tag", "ssd"), ("--label", "zone=a"), ("--cross-traffic", "x.csv"), ("--seed", "1")),
        ("--max-age", "5min"),
    ],
)
def test_options_that_a_controller_does_not_read_are_rejected(run: Run, flag: str, value: str) -> None:
    result = run("reevaluate", "--decision", "42", flag, value)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{flag}: the controller knows it" in result.stderr
