"""Tasks: placed by the command and from Python, moved on paper, and run as apps on the fluid network."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import leeward
from leeward import InputError, _native

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"

TENANT = """\
shape: hose
nic: 800Mbps
hosts: 4
cpus: 2
"""
APP = """\
name: pair
tasks:
  - {name: a, cpus: 2}
  - {name: b, cpus: 2}
  - {name: c, cpus: 500m}
transfers:
  - {from: a, to: b, bytes: 100MB}
  - {from: b, to: c, bytes: 1MB}
"""


@pytest.fixture
def tenant(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text(APP)
    (tmp_path / "tenant.yaml").write_text(TENANT)
    return tmp_path / "tenant.yaml"


def test_an_app_is_placed_with_the_link_that_limits_each_transfer(run: Run, tenant: Path) -> None:
    shown = run(
        "place", "tasks", "--cluster", str(tenant), "--app", "app.yaml", "--policy", "choreo", "--explain"
    )
    assert shown.returncode == 0, shown.stderr
    header, *rows = shown.stdout.splitlines()
    assert header.split() == ["TASK", "HOST"]
    hosts = dict(row.split() for row in rows[:3])
    assert len({hosts["a"], hosts["b"], hosts["c"]}) == 3
    assert f"{hosts['a']}:egress" in shown.stdout
    assert "transfers are over after 1.00 s" in shown.stdout


def test_json_has_what_the_table_has(run: Run, tenant: Path) -> None:
    options = ["--cluster", str(tenant), "--app", "app.yaml", "--policy", "choreo-exact", "-o", "json"]
    decision = json.loads(run("place", "tasks", *options).stdout)
    assert decision["refused"] is None
    assert (decision["completion_s"], decision["gap"], decision["proven"]) == (1.0, 0.0, True)
    assert [one["limit"].endswith(":egress") for one in decision["transfers"]] == [True, True]
    assert decision == leeward.place_tasks(
        tenant, tenant.parent / "app.yaml", policy="choreo-exact", explain=0
    )


def test_a_task_that_fits_nowhere_is_named_with_what_keeps_it_from_how_many_hosts(
    run: Run, tenant: Path
) -> None:
    (tenant.parent / "app.yaml").write_text("tasks: [{name: big, cpus: 3}]\n")
    shown = run("place", "tasks", "--cluster", str(tenant), "--app", "app.yaml")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr == "error: task big fits nowhere: 4 hosts (too few processors are left)\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tasks: []\n", "app.yaml: tasks: an empty list; expected at least one"),
        ("tasks: [{name: a}, {name: a}]\n", "app.yaml:1:20: tasks[1].name: `a`: two tasks have this name"),
        ("tasks: [{name: a, cpus: -1}]\n", "app.yaml:1:25: tasks[0].cpus: `-1`: must not be negative"),
        (
            "tasks: [{name: a, egress: {mean: 2Mbps, peak: 1Mbps}}]\n",
            "app.yaml:1:9: tasks[0].egress: a mean of 2Mbps above the peak of 1Mbps",
        ),
        (
            "tasks: [{name: a}, {name: b}]\ntransfers: [{from: a, to: z, bytes: 1MB}]\n",
            "app.yaml:2:13: transfers[0].to: `z`: no task has this name",
        ),
        (
            "tasks: [{name: a}, {name: b}]\nmatrix: m.csv\n",
            "m.csv: 1 rows of 2 numbers: not a square; is the file complete?",
        ),
        (
            "tasks: [{name: a, count: 9999},{name: b, count: 999}]\ntransfers: [{from: a, to: b, bytes: 1B}]",
            "app.yaml:2:13: transfers[0].to: more than 2000000 transfers in one app",
        ),
        ("tasks: [{name: a, count: 0}]\n", "app.yaml:1:9: tasks[0].count: 0: expected at least 1"),
        ("tasks: [{name: a}]\nbudget: {down: -1}\n", "app.yaml:2:16: budget.down: "),
    ],
)
def test_bad_app_files_are_one_line_with_the_place(run: Run, tenant: Path, text: str, error: str) -> None:
    (tenant.parent / "app.yaml").write_text(text)
    (tenant.parent / "m.csv").write_text("0,1\n")
    shown = run("place", "tasks", "--cluster", str(tenant), "--app", "app.yaml")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.startswith(f"error: {error}"), shown.stderr
    assert len(shown.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        ([[0, 1, 2], [0, 0, 0]], "matrix: 2 rows, but there are 3 tasks"),
        ([[0, 1], [0, 0], [0, 0]], "matrix: row 1: 2 numbers in 3 rows: not a square"),
        ([[0, -1, 0], [0, 0, 0], [0, 0, 0]], "matrix: row 1, column 2: -1"),
        ([[0, float("nan"), 0], [0, 0, 0], [0, 0, 0]], "matrix: row 1, column 2: NaN"),
        ([1, 2, 3], "matrix: expected a square of numbers"),
        ("none.npy", "none.npy: no such file"),
    ],
)
def test_bad_matrices_say_where(tenant: Path, matrix: object, error: str) -> None:
    with pytest.raises(InputError) as raised:
        leeward.place_tasks(tenant, tenant.parent / "app.yaml", matrix=matrix)
    assert str(raised.value).startswith(error)


def test_a_matrix_takes_the_place_of_the_transfers(tenant: Path) -> None:
    matrix = numpy.zeros((3, 3))
    matrix[2, 0] = 200e6
    numpy.save(tenant.parent / "m.npy", matrix)
    for given in (matrix, matrix.tolist(), tenant.parent / "m.npy"):
        decision = leeward.place_tasks(tenant, tenant.parent / "app.yaml", matrix=given)
        assert [(one["from"], one["to"], one["bytes"]) for one in decision["transfers"]] == [
            ("c", "a", 200_000_000)
        ]


def test_the_tasks_of_a_job_are_decided_one_by_one(run: Run) -> None:
    options = [
        "--job",
        str(EXAMPLES / "apps/indexer.yaml"),
        "--cluster",
        str(EXAMPLES / "clusters/racks.yaml"),
    ]
    shown = run("place", "tasks", *options, "--policy", "utp")
    assert shown.returncode == 1
    assert "error: no telemetry" in shown.stderr
    assert "hint: --telemetry" in shown.stderr
    telemetry = ["--telemetry", str(EXAMPLES / "telemetry/racks.csv")]
    shown = run("place", "tasks", *options, *telemetry, "--policy", "utp", "--explain")
    assert shown.returncode == 0, shown.stderr
    placed = dict(row.split() for row in shown.stdout.splitlines()[1:5])
    # Spread comes before balance, and r0 is the busiest.
    assert len({host.split("h")[0] for host in placed.values()}) == 4
    assert not any(host.startswith("r0") for host in placed.values())
    assert "LOAD WITH IT" in shown.stdout


def test_migrate_says_what_moves_and_what_stays(run: Run) -> None:
    options = [
        *("--cluster", str(EXAMPLES / "clusters/racks.yaml")),
        *("--telemetry", str(EXAMPLES / "telemetry/racks.csv")),
        *("--running", str(EXAMPLES / "apps/running.yaml")),
    ]
    decision = json.loads(run("migrate", *options, "-o", "json").stdout)
    assert [one["link"] for one in decision["hot"]] == ["r0:uplink", "r0:downlink"]
    assert all(one["after"] < one["utilization"] for one in decision["hot"])
    moved = {one["task"]: one for one in decision["moves"]}
    assert set(moved) == {"backup", "crawl1"}
    assert moved["crawl1"]["link"] == "r0:downlink"
    assert decision["kept"] == []
    shown = run("migrate", *options, "--hot", "0.5")
    assert "it is sensitive to latency" in shown.stdout
    assert "its job's budget is spent" in shown.stdout


def test_apps_run_until_their_last_transfer_is_over() -> None:
    cluster = leeward.Cluster(TENANT)
    app = (0.0, [(2.0, 0), (2.0, 0)], [(0, 1, 100_000_000)])
    (first,) = _native.simulate_apps(cluster, "choreo", [app])
    assert (first["seconds"], first["forecast_s"], first["refused"]) == (1.0, 1.0, None)
    with pytest.raises(InputError, match="expected two of 2 tasks"):
        _native.simulate_apps(cluster, "choreo", [(0.0, [(1.0, 0)] * 2, [(0, 5, 1)])])
