"""Tasks: placed by the command and from Python, moved on paper, and run as apps on the fluid network."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import leeward
from leeward import InputError, _native
from leeward.age import check_age

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


def test_stale_telemetry_is_refused_by_every_decision_and_says_how_old_it_is(
    run: Run, tmp_path: Path
) -> None:
    lines = (EXAMPLES / "telemetry" / "racks.csv").read_text().splitlines()
    stamped = tmp_path / "loads.csv"
    times = [f"{time.time() - age:.0f}" for age in (7200 + len(lines) - numpy.arange(len(lines) - 1))]
    stamped.write_text("\n".join([f"{lines[0]},t_s", *map(",".join, zip(lines[1:], times, strict=True))]))
    cluster = ["--cluster", str(EXAMPLES / "clusters" / "racks.yaml"), "--telemetry", str(stamped)]
    job = ["--job", str(EXAMPLES / "apps" / "indexer.yaml"), "--policy", "utp"]
    commands = (
        ["place", "tasks", *cluster, *job],
        ["place", "replicas", *cluster, "--size", "256MiB"],
        ["migrate", *cluster, "--running", str(EXAMPLES / "apps" / "running.yaml")],
    )
    for command in commands:
        refused = run(*command)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"error: {stamped}: t_s: stale: the newest line was measured 2 h")
        assert len(refused.stderr.splitlines()) <= 2
        allowed = run(*command, "--max-age", "3h")
        assert "stale" not in allowed.stderr


@pytest.mark.parametrize(
    ("text", "max_age", "message"),
    [
        ("link,load_bps,t_s\nr0:uplink,1,100", "5min", "t_s: stale: the newest line was measured 15 min ago"),
        (
            "link,load_bps,t_s\nr0:uplink,1,5000",
            "5min",
            "t_s: the newest line was measured 1 h 7 min from now",
        ),
        ("link,load_bps,t_s\nr0:uplink,1,soon", "5min", "t_s: expected seconds since 1970 in every line"),
        ("link,load_bps,t_s\nr0:uplink,1,", "5min", "t_s: expected seconds since 1970 in every line"),
        ("link,load_bps,t_s\nr0:uplink,1,inf", "5min", "t_s: expected seconds since 1970 in every line"),
        ("link,load_bps,t_s\nr0:uplink,1,990", "now", "max_age: "),
    ],
)
def test_ages_of_telemetry_that_are_not_right(tmp_path: Path, text: str, max_age: str, message: str) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        check_age(path, max_age, now_s=1000.0)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["link,load_bps\nr0:uplink,1", "", "link,load_bps,t_s\nr0:uplink,1,950"])
def test_telemetry_without_times_or_with_new_ones_is_taken(tmp_path: Path, text: str) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    check_age(path, now_s=1000.0)
    check_age(tmp_path / "none.csv", now_s=1000.0)
