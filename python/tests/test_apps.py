"""Apps as workloads of a scenario, and matrices as apps, by the command and from Python."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from pyarrow import compute, parquet

import leeward
from leeward import InputError, sweep

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"

CLUSTER = """\
shape: hose
hosts: 6
nic: {up: 800Mbps, down: 10Gbps}
cpus: 1
memory: 8GB
"""
SCENARIO = """\
cluster: cluster.yaml
workloads:
  - app: {matrix: ring.csv, memory: 100MB, at: 10s, every: 1min}
  - rates: {file: rates.csv}
policies: [random, choreo]
migration: {every: 10s, pause: 1s}
horizon: 10min
warmup: 30s
"""
RING = "0,500e6,0\n0,0,250e6\n100e6,0,0\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "ring.csv").write_text(RING)
    busy = "".join(
        f"{t_s},h{(t_s // 100 + host) % 6}:egress,700e6\n" for t_s in (0, 100, 200) for host in (0, 1)
    )
    (tmp_path / "rates.csv").write_text(f"t_s,link,rate_bps\n{busy}")
    (tmp_path / "apps.yaml").write_text(SCENARIO)
    return tmp_path / "apps.yaml"


def test_apps_that_arrive_after_the_horizon_still_print_the_app_table(run: Run, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("at: 10s, every: 1min", "at: 20min"))
    result = run("simulate", str(scenario))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1].split() == ["apps", "that", "arrived", "0", "0"]
    assert "block" not in result.stdout
    assert "warning:" not in result.stderr


@pytest.mark.parametrize(
    ("change", "policies"),
    [(("memory: 100MB", "cpus: 3"), ["random", "choreo"]), (("[random, choreo]", "[random, utp]"), ["utp"])],
)
@pytest.mark.parametrize("seeds", ["1", "2"])
def test_a_policy_that_places_no_app_is_named_in_a_warning(
    run: Run, scenario: Path, change: tuple[str, str], policies: list[str], seeds: str
) -> None:
    scenario.write_text(SCENARIO.replace(*change).replace("migration: {every: 10s, pause: 1s}\n", ""))
    result = run("simulate", str(scenario), "--seeds", seeds)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("warning:")]
    count = 9 * int(seeds)
    assert lines == [f"warning: {policy}: no app was placed, of {count} that arrived" for policy in policies]


def test_reports_of_apps_use_the_quantities_of_apps(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "--out", "out")
    assert result.returncode == 0, result.stderr
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[0].split() == ["random", "choreo"]
    assert lines[1].split() == ["apps", "that", "arrived", "9", "9"]
    assert any(line.startswith("apps faster than random") for line in lines)
    assert not any("block" in line for line in lines)
    assert "run time: from the placement of an app to its last transfer" in result.stderr
    assert "app ring.csv: 10 times 3 tasks and 3 transfers of 850 MB" in result.stderr
    out = scenario.parent / "out"
    page = (out / "report.html").read_text()
    assert "where tasks go" in page
    assert "The slow apps" in page
    runs = json.loads((out / "summary.json").read_text())["runs"]
    apps, migrations = (
        parquet.read_table(out / "choreo" / f"{name}.parquet") for name in ("apps", "migrations")
    )
    assert len(apps) == 10
    assert compute.sum(apps["migrations"]).as_py() == len(migrations)
    assert compute.all(compute.equal(apps["network_bytes"], 850_000_000)).as_py()
    counted = apps.filter(compute.greater_equal(apps["arrived_s"], 30.0))
    took = compute.mean(compute.subtract(counted["finished_s"], counted["arrived_s"])).as_py()
    summary = runs[1]["summary"]["apps"]
    assert summary["completion_s"]["mean"] == pytest.approx(took)
    assert summary["count"] == summary["finished"] == runs[1]["against_baseline"]["apps"]["count"] == 9
    assert runs[1]["against_baseline"]["apps"]["factor"] > 1


def test_sweeps_of_apps_are_paired_and_agree_with_single_runs(scenario: Path) -> None:
    cells = sweep.run(scenario, seeds=[1, 2])
    actual = {(row["policy"], row["quantity"]): row for row in sweep.summarize(cells).to_pylist()}
    assert actual["choreo", "apps.completion_s.mean"]["seeds"] == 2
    assert actual["choreo", "apps.count"]["difference"] == 0
    runs = leeward.simulate(scenario, seeds=[1])
    row = next(row for row in cells.to_pylist() if (row["policy"], row["seed"]) == ("choreo", 1))
    assert row["against_baseline.apps.factor"] == runs[1].compare(runs[0])["apps"]["factor"]


def test_runs_without_apps_have_empty_app_tables(scenario: Path) -> None:
    scenario.write_text("cluster: cluster.yaml\nworkloads: []\nhorizon: 1min\nfault_domains: 0\n")
    (run,) = leeward.simulate(scenario, policies="uniform")
    assert len(run.apps()) == len(run.migrations()) == 0
    assert "apps" not in run.summary()


def test_invalid_fields_of_a_scenario_of_apps_are_rejected(run: Run, scenario: Path) -> None:
    for before, after, error in (
        ("rates: {file: rates.csv}", "facebook: {}", "`facebook` beside apps"),
        ("matrix: ring.csv", "matrix: none.csv", "none.csv: no such file"),
        ("[random, choreo]", "[uniform]", "unknown policy `uniform` for tasks"),
        ("pause: 1s", "patience: 1s", "patience"),
    ):
        scenario.write_text(SCENARIO.replace(before, after))
        result = run("simulate", str(scenario))
        assert (result.returncode, result.stdout) == (2, "")
        assert error in result.stderr


def test_choreo_finishes_apps_sooner_than_random_in_the_example(run: Run) -> None:
    result = run("simulate", str(EXAMPLES / "scenarios" / "apps.yaml"), "-o", "json")
    assert result.returncode == 0, result.stderr
    actual = {one["policy"]: one["summary"]["apps"] for one in json.loads(result.stdout)["runs"]}
    assert list(actual) == ["random", "choreo", "leeward"]
    assert all(apps["finished"] == apps["count"] == actual["random"]["count"] for apps in actual.values())
    assert actual["choreo"]["completion_s"]["mean"] < actual["random"]["completion_s"]["mean"]
    assert sum(apps["migrations"] for apps in actual.values()) > 0


# ---- matrices as apps ---------------------------------------------------------------------------------


def test_a_matrix_as_csv_or_numpy_file_is_placed_as_an_app(run: Run, scenario: Path) -> None:
    folder = scenario.parent
    numpy.save(folder / "ring.npy", numpy.loadtxt(folder / "ring.csv", delimiter=","))
    decisions = [
        json.loads(run("place", "tasks", *options, "--policy", "choreo", "-o", "json").stdout)
        for options in (
            ["--cluster", str(folder / "cluster.yaml"), "--matrix", str(folder / "ring.csv")],
            ["--cluster", str(folder / "cluster.yaml"), "--matrix", str(folder / "ring.npy"), "--cpus", "1"],
        )
    ]
    assert [task["task"] for task in decisions[0]["tasks"]] == ["task0", "task1", "task2"]
    assert decisions[0]["app"] == "ring"
    assert decisions[0]["completion_s"] == 5.0
    assert decisions[0]["tasks"] == decisions[1]["tasks"]
    decision = leeward.place_tasks(
        folder / "cluster.yaml", matrix=folder / "ring.csv", policy="choreo", memory="1GB", explain=0
    )
    assert decision["tasks"] == decisions[0]["tasks"]


def test_a_matrix_file_replaces_the_transfers_of_an_app_file(scenario: Path) -> None:
    app = scenario.parent / "app.yaml"
    app.write_text("tasks: [{name: a, count: 3, cpus: 1}]\n")
    cluster, ring = scenario.parent / "cluster.yaml", scenario.parent / "ring.csv"
    decision = leeward.place_tasks(cluster, app, matrix=ring, policy="choreo")
    assert [one["bytes"] for one in decision["transfers"]] == [500_000_000, 250_000_000, 100_000_000]
    app.write_text("tasks: [{name: a, count: 2, cpus: 1}]\n")
    with pytest.raises(InputError, match="row or column 3 of the matrix, but there are 2 tasks"):
        leeward.place_tasks(cluster, app, matrix=ring)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "m.csv: the file is empty"),
        ("1,2,3\n4,5,6\n", "m.csv: 2 rows of 3 numbers: not a square; is the file complete?"),
        ("0,1\n-2,0\n", "m.csv:2: column 1: `-2`: must not be negative; expected an amount"),
        ("0,NaN\n0,0\n", "m.csv:1: column 2: `NaN`: not a finite number; expected an amount"),
    ],
)
def test_an_invalid_matrix_is_rejected_with_file_line_and_column(
    run: Run, scenario: Path, text: str, error: str
) -> None:
    (scenario.parent / "m.csv").write_text(text)
    result = run("place", "tasks", "--cluster", str(scenario.parent / "cluster.yaml"), "--matrix", "m.csv")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[0] == f"error: {error}"


def test_options_for_a_matrix_are_rejected_with_an_app_file(run: Run, scenario: Path) -> None:
    (scenario.parent / "app.yaml").write_text("tasks: [{name: a}]\n")
    cluster = ["place", "tasks", "--cluster", str(scenario.parent / "cluster.yaml")]
    result = run(*cluster, "--app", "app.yaml", "--cpus", "2")
    assert (result.returncode, result.stderr.splitlines()[0]) == (
        2,
        "error: --cpus: the app file already defines it; use it only with a matrix",
    )
    result = run(*cluster, "--matrix", "ring.csv", "--cpus", "two")
    assert result.returncode == 2
    assert result.stderr.startswith("error: --cpus: `two`")
    result = run(*cluster)
    assert result.returncode == 2
    assert "--app, --job, --matrix" in result.stderr


def test_the_matrix_of_an_mpi_program_is_placed(run: Run) -> None:
    data = os.environ.get("LEEWARD_DATA")
    if not data or not (Path(data) / "mpi-comm-matrices").is_dir():
        pytest.skip("LEEWARD_DATA names no folder with mpi-comm-matrices")
    result = run(
        *("place", "tasks", "--cluster", str(EXAMPLES / "clusters" / "racks.yaml"), "--policy", "choreo"),
        *("--matrix", "data:mpi-comm-matrices/amg-64.size.csv", "-o", "json"),
        LEEWARD_DATA=data,
    )
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)["tasks"]) == 64
