"""Re-replication after failures: its table, its summary, and its lines in the comparison."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import leeward
from leeward.report.rows import comparison_rows

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = """\
racks: 4
hosts_per_rack: 4
nic: 1Gbps
oversubscription: 4
devices: [{read: 50MB/s, write: 50MB/s}]
"""
SCENARIO = """\
cluster: cluster.yaml
workloads:
  - blocks: {file: blocks.csv, block: 16MiB}
horizon: 5min
events:
  - {at: 70s, rack: r1, state: down}
policies: [uniform, sinbad]
"""
REPAIR = "repair: {after: 20s, rate: 80Mbps}\n"
BLOCK = 16 << 20


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario in a folder of its own, whose blocks are repaired after the failure of a rack."""
    lines = [f"{1 + i},{5 * i % 16},{BLOCK}" for i in range(60)]
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "blocks.csv").write_text("\n".join(["t_arrival_s,writer,size_bytes", *lines]) + "\n")
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO + REPAIR)
    return path


def test_the_table_of_repairs_adds_up_to_its_summary(scenario: Path) -> None:
    for run in leeward.simulate(scenario):
        summary, repairs = run.summary()["repairs"], run.repairs().to_pylist()
        assert (summary["finished"], summary["abandoned"], summary["unrepaired"]) == (len(repairs), 0, 0)
        assert summary["bytes"] == sum(row["bytes"] * len(row["to"]) for row in repairs)
        assert summary["time_s"]["max"] == max(row["finished_s"] - row["lost_s"] for row in repairs)
        blocks = {(block["file"], block["block"]): block for block in run.blocks().to_pylist()}
        for row in repairs:
            assert row["lost_s"] == 90
            assert all(host.startswith("r1h") for host in row["missing"])
            assert set(row["to"]) <= set(blocks[row["file"], row["block"]]["hosts"])
            assert row["finished_s"] - row["started_s"] >= BLOCK * 8 / 80e6 * (1 - 1e-9)
        assert not any(host.startswith("r1h") for block in blocks.values() for host in block["hosts"])


def test_repairs_are_in_the_comparison_if_the_scenario_has_them(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario))
    assert result.returncode == 0, result.stderr
    for words in ("blocks repaired after failures", "time to repair, mean"):
        assert words in result.stdout
    scenario.write_text(SCENARIO)
    (alone,) = leeward.simulate(scenario, "uniform")
    assert "repairs" not in alone.summary()
    assert len(alone.repairs()) == 0
    assert not any("repair" in row.quantity for row in comparison_rows([alone, alone]))


def test_tasks_that_fail_have_their_attempts_in_the_tables(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("events:", "faults: {failures: 1}\nevents:"))
    (run,) = leeward.simulate(scenario, "uniform")
    files, blocks = run.files().to_pylist(), run.blocks().to_pylist()
    assert {file["attempts"] for file in files} == {2}
    deleted = [block for block in blocks if block["deleted_s"] is not None]
    assert len(deleted) == len(files) == len(blocks) - len(deleted)
