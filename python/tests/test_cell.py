"""Cells: a scheduler's tasks simulated, by the command and from Python."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import compute, parquet

import leeward
from leeward import InputError, sweep

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = """\
racks: 6
hosts_per_rack: 8
nic: 10Gbps
rack_link: 10Gbps
cpus: 16
memory: 64GiB
"""
SCENARIO = """\
cluster: cluster.yaml
workloads: [{cell: {network: 0.65}}]
policies: [borg, utp]
telemetry: {interval: 30s}
sample: 5min
horizon: 6h
warmup: 30min
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "cell.yaml").write_text(SCENARIO)
    return tmp_path / "cell.yaml"


def test_settings_of_a_policy_reach_placement_or_migration(run: Run, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("[borg, utp]", "[borg, 'utp:margin=0.1']").replace("6h", "1h"))
    for options in ([], ["--policy", "utp:margin=0.1:sample=8"], ["--seeds", "2"]):
        result = run("simulate", str(scenario), *options)
        assert result.returncode == 0, result.stderr
    completed = run("simulate", str(scenario), "--policy", "utp:margins=0.1")
    assert completed.returncode == 2
    assert completed.stderr.startswith("error: --policy: utp.margins: unknown field")
    scenario.write_text(SCENARIO.replace("[borg, utp]", "[borg, 'utp:margins=0.1']"))
    completed = run("simulate", str(scenario))
    assert completed.returncode == 2
    assert completed.stderr.startswith("error: ")
    assert "cell.yaml:3:" in completed.stderr
    assert "--policy" not in completed.stderr


def test_reports_of_a_cell_use_the_quantities_of_tasks(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "--out", "out")
    assert result.returncode == 0, result.stderr
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[0].split() == ["borg", "utp"]
    assert any(line.startswith("hot racks, of racks and intervals") for line in lines)
    assert not any("block" in line for line in lines)
    assert "stretch: time of a tolerant task" in result.stderr
    out = scenario.parent / "out"
    assert "where tasks go" in (out / "report.html").read_text()
    runs = json.loads((out / "summary.json").read_text())["runs"]
    tasks, moves = (parquet.read_table(out / "utp" / f"{name}.parquet") for name in ("tasks", "moves"))
    assert compute.sum(tasks["moves"]).as_py() == len(moves) > 0
    assert len(parquet.read_table(out / "borg" / "moves.parquet")) == 0
    cell = parquet.read_table(out / "utp" / "cell.parquet")
    counted = compute.greater_equal(cell["start_s"], 1800.0)
    assert compute.sum(cell.filter(counted)["moved"]).as_py() == runs[1]["summary"]["tasks"]["moves"]


def test_sweeps_of_cells_are_paired(scenario: Path) -> None:
    cells = sweep.run(scenario, seeds=[1, 2])
    actual = {(row["policy"], row["quantity"]): row for row in sweep.summarize(cells).to_pylist()}
    assert actual["utp", "tasks.tor_p98"]["seeds"] == 2
    assert actual["utp", "tasks.count"]["difference"] == 0


def test_policies_of_another_kind_are_rejected_before_the_run(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "--policy", "borg,sinbad")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --policy: unknown policy `sinbad` for tasks; there are: random,")
    with pytest.raises(InputError, match="step: expected a share"):
        leeward.simulate(scenario, policies=["utp:step=7"])


def test_a_scenario_with_both_tasks_and_files_is_rejected(run: Run, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("[{cell", "[{facebook: {}}, {cell"))
    result = run("simulate", str(scenario))
    assert result.returncode == 2
    assert "a run has either tasks to place or files to write" in result.stderr
