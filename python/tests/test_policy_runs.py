"""Policies of the user in simulations, for apps, in sweeps and in commands."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import leeward
from leeward import InputError, policy, sweep
from leeward.policy import AppRequest, BlockRequest, RequestBatch, View
from support.policies import (
    CALLS,
    CLUSTER,
    HOSTS,
    Counting,
    coolest,
    place,
    spread,
    write_cell,
    write_scenario,
)

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return write_scenario(tmp_path)


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    return write_cell(tmp_path)


def test_each_run_has_an_instance_of_its_own_with_its_seed(scenario: Path) -> None:
    CALLS.clear()
    runs = leeward.simulate(scenario, [policy.own(Counting, start=10)], [5, 6], jobs=1)
    assert [run.policy for run in runs] == ["Counting:start=10"] * 2
    blocks = len(runs[0].blocks())
    assert [(seed, 10 + count) for seed in (5, 6) for count in range(1, blocks + 1)] == CALLS
    assert runs[0].blocks()["hosts"] == runs[1].blocks()["hosts"]


def test_an_object_is_copied_for_each_run(scenario: Path) -> None:
    CALLS.clear()
    counting = Counting(start=3)
    one, two = leeward.simulate(scenario, counting, [1, 2], jobs=2)
    assert counting.count == 3
    assert one.blocks()["hosts"] == two.blocks()["hosts"]


def test_two_policies_of_one_name_need_other_names(scenario: Path) -> None:
    with pytest.raises(InputError, match="`spread` is given twice"):
        leeward.simulate(scenario, [spread, spread])
    one, two = leeward.simulate(scenario, [spread, policy.own(spread, "again")])
    assert one.blocks() == two.blocks()


def drawn(request: BlockRequest, view: View) -> Any:
    return numpy.random.default_rng(request.seed).random(len(view.hosts))


@pytest.mark.parametrize("function", [coolest, drawn])
def test_a_simulation_is_deterministic_for_any_number_of_jobs(scenario: Path, function: Any) -> None:
    serial, parallel = (leeward.simulate(scenario, ["uniform", function], [1, 2], jobs=n) for n in (1, 4))
    assert [run.policy for run in serial] == ["uniform", function.__name__] * 2
    for one, two in zip(serial, parallel, strict=True):
        assert one.blocks() == two.blocks()
        assert one.summary() == two.summary()
    if function is drawn:
        assert serial[1].blocks()["hosts"] != serial[3].blocks()["hosts"]
    assert serial[1].compare(serial[0])["blocks"]["count"] == 18


def test_own_policies_do_not_change_the_others(scenario: Path) -> None:
    (alone,) = leeward.simulate(scenario, "uniform")
    beside, _ = leeward.simulate(scenario, ["uniform", coolest])
    assert beside.blocks() == alone.blocks()


def test_a_batch_has_arrays_and_one_answer_for_each_request(scenario: Path) -> None:
    sizes: list[int] = []

    class Batch:
        def place_batch(self, requests: RequestBatch, view: View) -> Any:
            sizes.append(len(requests))
            assert requests.ids.tolist() == [requests[at].id for at in range(len(requests))]
            assert requests.writers.tolist() == [requests[at].writer for at in range(len(requests))]
            assert requests.sizes.tolist() == [requests[-1].size] * len(requests)
            assert requests.counts.tolist() == [3] * len(requests)
            with pytest.raises(IndexError):
                requests[len(requests)]
            racks = (requests.writers // 3)[:, None] + numpy.arange(3)
            return 3 * (racks % 4)

    (waiting,) = leeward.simulate(scenario, policy.own(Batch, interval="10s"))
    assert max(sizes) > 1
    for row in waiting.blocks().to_pylist():
        assert len({host[:2] for host in row["hosts"]}) == 3
        assert row["placed_s"] % 10 == pytest.approx(0)
    sizes.clear()
    (at_once,) = leeward.simulate(scenario, Batch)
    assert set(sizes) == {1}
    assert len(at_once.blocks()) == len(waiting.blocks())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (numpy.zeros((2, 3), dtype=int), "request 0: 2 rows: expected one for each of 1 requests"),
        (numpy.zeros((1, 0), dtype=int), "request 0: 0 hosts: expected 3"),
        (numpy.zeros((1, 5)), "request 0: 5 scores: expected 12"),
        ([[0, 3, 6], None], "request 0: 2 answers: expected one for each of 1 requests"),
        ([[0, 0, 0]], "request 0: position 1: r0h0: it holds a copy already"),
        (3, "request 0: returned `int`"),
    ],
)
def test_a_wrong_answer_to_a_batch_is_one_error(answer: Any, message: str) -> None:
    class Wrong:
        def place_batch(self, requests: RequestBatch, view: View) -> Any:
            return answer

    with pytest.raises(InputError) as caught:
        place(Wrong)
    assert str(caught.value).startswith(f"policy `Wrong`: {message}")


@pytest.mark.parametrize("answer", [[None], [[0, 3, 6]], [["r0h0", "r1h0", "r2h0"]], numpy.zeros((1, HOSTS))])
def test_a_batch_takes_all_kinds_of_answers(answer: Any) -> None:
    class Batch:
        def place_batch(self, requests: RequestBatch, view: View) -> Any:
            return answer

    decision = place(Batch)
    assert (decision["hosts"] is None) == (answer == [None] if isinstance(answer, list) else False)


def test_a_wrong_answer_ends_a_simulation_with_the_request(scenario: Path) -> None:
    def late(request: BlockRequest, view: View) -> list[int]:
        return [0, 0, 0] if view.now_s > 30 else [0, 3, 6]

    with pytest.raises(InputError, match=r"policy `late`: request \d+: position 1: r0h0: it holds a copy"):
        leeward.simulate(scenario, ["uniform", late], [1, 2], jobs=2)


def test_an_exception_ends_a_simulation(scenario: Path) -> None:
    calls = []

    def failing(request: BlockRequest, view: View) -> list[int]:
        calls.append(request.id)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        leeward.simulate(scenario, failing)
    assert len(calls) == 1


def test_an_exception_of_a_constructor_ends_a_simulation(scenario: Path) -> None:
    class Broken:
        def __init__(self) -> None:
            raise ZeroDivisionError("no state")

        def place(self, request: Any, view: View) -> None:
            pass

    with pytest.raises(ZeroDivisionError, match="no state"):
        leeward.simulate(scenario, [Broken, "uniform"])


def test_tasks_of_a_cell_are_placed_by_a_policy_of_the_user(cell: Path) -> None:
    kinds = set()

    def emptiest(request: AppRequest, view: View) -> Any:
        kinds.add((request.kind, request.count))
        return view.free_cpus

    (run,) = leeward.simulate(cell, emptiest)
    assert kinds == {("tasks", 1)}
    assert run.summary()["tasks"]["count"] > 0
    assert len(run.moves()) == 0
    moving = policy.own(emptiest, "moving", moves="utp")
    assert leeward.simulate(cell, moving)[0].policy == "moving"
    with pytest.raises(InputError, match="unknown policy `nothing`"):
        leeward.simulate(cell, policy.own(emptiest, moves="nothing"))


def test_a_policy_for_tasks_needs_place(cell: Path) -> None:
    class Batch:
        def place_batch(self, requests: RequestBatch, view: View) -> None:
            pass

    with pytest.raises(InputError, match="a policy for tasks needs `place`"):
        leeward.simulate(cell, Batch)


APP = """\
tasks: [{name: a, cpus: 2, memory: 1GiB, tolerant: true}, {name: b, cpus: 1}, {name: c}]
transfers: [{from: a, to: b, bytes: 1GB}, {from: b, to: c, bytes: 2GB}]
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.yaml"
    path.write_text(APP)
    return path


def test_an_app_has_its_tasks_and_its_matrix(app: Path) -> None:
    found: dict[str, Any] = {}

    def look(request: AppRequest, view: View) -> list[int]:
        names = ("cpus", "memory_bytes", "tolerant", "matrix", "transfers", "count", "apart", "goal", "job")
        found.update({name: getattr(request, name) for name in names})
        return [0, 1, 2]

    decision = leeward.place_tasks(CLUSTER, app, policy=look, apart="host")
    assert [task["host"] for task in decision["tasks"]] == ["r0h0", "r0h1", "r0h2"]
    assert decision["policy"] == "look"
    assert found["cpus"].tolist() == [2, 1, 0]
    assert found["memory_bytes"].tolist() == [2**30, 0, 0]
    assert found["tolerant"].tolist() == [True, False, False]
    assert found["matrix"].tolist() == [[0, 1e9, 0], [0, 0, 2e9], [0, 0, 0]]
    assert [array.tolist() for array in found["transfers"]] == [[0, 1], [1, 2], [10**9, 2 * 10**9], [0, 0]]
    assert (found["count"], found["apart"], found["goal"], found["job"]) == (3, "host", "time", 0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 1], "request 0: 2 hosts: expected 3"),
        ([0, 1, 1], "request 0: position 2: r0h1: a task from which it must stay apart is there"),
        (numpy.zeros(5), "request 0: 5 scores: expected 12 or 36"),
    ],
)
def test_a_wrong_answer_for_an_app_is_one_error(answer: Any, message: str, app: Path) -> None:
    with pytest.raises(InputError) as caught:
        leeward.place_tasks(CLUSTER, app, policy=lambda request, view: answer, apart="host")
    assert str(caught.value) == f"policy `lambda`: {message}"


def test_scores_of_tasks_are_a_row_for_all_or_a_row_for_each(app: Path) -> None:
    def hosts(scores: Any) -> list[str | None]:
        decision = leeward.place_tasks(CLUSTER, app, policy=lambda request, view: scores)
        return [task["host"] for task in decision["tasks"]]

    row = numpy.arange(HOSTS, dtype=float)
    assert hosts(row) == ["r3h2"] * 3
    assert hosts(numpy.stack([row, -row, row])) == ["r3h2", "r0h0", "r3h2"]


def test_a_running_app_is_placed_again_by_a_policy_of_the_user(app: Path) -> None:
    where = {"a": "r0h0", "b": "r1h0", "c": "r2h0"}
    loads: list[float] = []

    def together(request: AppRequest, view: View) -> list[int]:
        loads.append(float(numpy.nansum(view.link_load)))
        return [3, 3, 3]

    answer = leeward.reevaluate(app, CLUSTER, where, policy=together, move_cost="0s")
    assert {move["to"] for move in answer.moves} == {"r1h0"}
    assert answer.worth_it
    assert loads
    assert not any(loads)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_sweep_takes_policies_of_the_user(scenario: Path, tmp_path: Path, backend: str) -> None:
    out = tmp_path / "sweep"
    policies: list[Any] = ["uniform", coolest, policy.own(Counting, start=1)]
    cells = sweep.run(scenario, policies, seeds=[1, 2], backend=backend, jobs=2, out=out)
    assert cells["policy"].to_pylist() == ["uniform", "coolest", "Counting:start=1"] * 2
    runs = leeward.simulate(scenario, ["uniform", coolest], [1, 2])
    assert cells["blocks"].to_pylist()[:2] == [run.summary()["blocks"] for run in runs[:2]]
    stored = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert sweep.run(scenario, policies, seeds=[1, 2], out=out) == cells
    assert {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()} == stored


def test_a_stored_cell_counts_while_the_code_of_its_policy_does_not_change(tmp_path: Path) -> None:
    module = tmp_path / "changing.py"
    digests = []
    for text in ("def f(request, view):\n    return [0]\n", "def f(request, view):\n    return [1]\n"):
        module.write_text(text)
        space: dict[str, Any] = {"__name__": "changing"}
        exec(compile(text, str(module), "exec"), space)
        digests += [policy.own(space["f"]).digest, policy.own(space["f"]).digest]
    assert digests[0] == digests[1] != digests[2] == digests[3]
    assert policy.own(Counting, start=1).digest != policy.own(Counting, start=2).digest
    assert policy.own(Counting(1)).digest != policy.own(Counting(2)).digest


MODULE = """\
import numpy

def coolest(request, view):
    return view.residual_in

class Fixed:
    def __init__(self, rack=1):
        self.rack = rack

    def place(self, request, view):
        others = (view.rack_of != view.rack_of[request.writer or 0]) & (view.rack_of != self.rack)
        return [request.writer or 0, *view.hosts[others][: request.count - 1]]

def broken(request, view):
    return [0]

def failing(request, view):
    raise LookupError("not here")
"""


def test_the_command_takes_a_policy_of_a_module(run: Run, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text(MODULE)
    names = "uniform,own_module:coolest,own_module:Fixed:rack=2"
    result = run("simulate", str(scenario), "--policy", names)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0].split() == names.split(",")
    out = tmp_path / "out"
    written = run("simulate", str(scenario), "--policy", names, "--out", str(out), "-o", "json")
    assert [one["policy"] for one in json.loads(written.stdout)["runs"]] == names.split(",")
    assert "a policy that is not part of Leeward" in (out / "report.html").read_text()
    swept = run("simulate", str(scenario), "--policy", names, "--seeds", "2", "-o", "json")
    assert {row["policy"] for row in json.loads(swept.stdout)["summary"]} == set(names.split(","))


def test_the_command_places_by_a_policy_of_a_module(run: Run, tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text(MODULE)
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    arguments: tuple[str, ...] = ("place", "replicas", "--cluster", "c.json", "--size", "64MiB")
    arguments += ("--writer", "r0h0", "--policy")
    result = run(*arguments, "own_module:Fixed:rack=2", "--explain")
    assert result.stdout.splitlines()[0] == "r0h0 r1h0 r1h1", result.stderr
    wrong = run(*arguments, "own_module:broken")
    message = "error: policy `own_module:broken`: request 0: 1 host: expected 3"
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (2, message)
    for name, text in (
        ("own_module:nothing", "error: --policy: `own_module:nothing`: `own_module` has no `nothing`"),
        ("no_module:f", "error: --policy: `no_module:f`: there is no module `no_module`"),
        ("own_module:Fixed:racks=2", "error: --policy: `Fixed`: got an unexpected keyword argument 'racks'"),
    ):
        result = run(*arguments, name)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(text), result.stderr


def test_coflows_are_not_placed(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(json.dumps(CLUSTER))
    (tmp_path / "trace.txt").write_text("4 1\na 0 1 0 1 3:8\n")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("cluster: cluster.yaml\nhorizon: 30s\nworkloads: [{coflow: {file: trace.txt}}]\n")
    with pytest.raises(InputError, match="nothing is placed in a scenario of coflows"):
        leeward.simulate(scenario, coolest)
