"""Reads of written blocks: their table, their summary, and their comparison."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import leeward
from leeward import sweep
from leeward.report.rows import comparison_rows

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = """\
racks: 4
hosts_per_rack: 4
nic: 1Gbps
oversubscription: 4
devices: [{read: 50MB/s, write: 50MB/s}]
"""
WRITES = """\
name: small
cluster: cluster.yaml
workloads:
  - blocks: {file: blocks.csv, block: 16MiB, coding: 3+2}
horizon: 2min
warmup: 20s
policies: [uniform, sinbad]
"""
READS = "  - reads: {rate: 300Mbps, size: 4MiB, degraded: {after: 150ms}}\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario in a folder of its own, whose blocks are read."""
    lines = [f"{1 + i},{5 * i % 16},50000000" for i in range(60)]
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "blocks.csv").write_text("\n".join(["t_arrival_s,writer,size_bytes", *lines]) + "\n")
    path = tmp_path / "scenario.yaml"
    path.write_text(WRITES.replace("horizon", READS + "horizon"))
    return path


def test_the_table_of_reads_adds_up_to_its_summary(scenario: Path) -> None:
    for run in leeward.simulate(scenario):
        summary = run.summary()["reads"]
        reads = [read for read in run.reads().to_pylist() if read["asked_s"] >= run.warmup_s]
        done = [read for read in reads if read["finished_s"] is not None]
        assert (summary["finished"], summary["unfinished"], summary["lost"]) == (len(done), 0, 0)
        assert summary["time_s"]["count"] == len(done) > 500
        for name in ("bytes", "fetched", "wasted"):
            assert summary[name] == sum(read[name] for read in reads)
        degraded = [read for read in done if read["degraded"]]
        assert summary["degraded_share"] == len(degraded) / len(reads) > 0
        assert all(len(read["chunks"]) == 3 and read["fetched"] == 3 * read["bytes"] for read in degraded)
        assert all(
            not read["chunks"] and read["fetched"] == read["bytes"] for read in done if read not in degraded
        )
        assert all(read["reader"] == read["holder"] for read in reads if read["local"])
        blocks = {(block["file"], block["block"]): block for block in run.blocks().to_pylist()}
        for read in reads:
            block = blocks[read["file"], read["block"]]
            assert block["finished_s"] <= read["asked_s"]
            assert read["holder"] in block["hosts"][:3]


def test_reads_are_compared_if_the_scenario_has_reads(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario))
    assert result.returncode == 0, result.stderr
    assert "reads of 4MiB by 16 hosts" in result.stderr
    for words in (
        "reads finished",
        "read time, mean",
        "time of the same reads, uniform / this",
        "degraded reads",
    ):
        assert words in result.stdout
    assert "read time: from the request" in result.stdout + result.stderr
    printed = json.loads(run("simulate", str(scenario), "-o", "json").stdout)["runs"][1]
    assert printed["against_baseline"]["reads"]["count"] == printed["summary"]["reads"]["finished"]
    scenario.write_text(WRITES)
    (alone,) = leeward.simulate(scenario, "uniform")
    assert "reads" not in alone.summary()
    assert "reads" not in alone.compare(alone)
    assert len(alone.reads()) == 0
    assert not any("read" in row.quantity for row in comparison_rows([alone, alone]))


def test_cells_of_a_sweep_have_the_read_figures_of_single_runs(run: Run, scenario: Path) -> None:
    cells = sweep.run(scenario, ["uniform", "sinbad"], seeds=[1, 2]).to_pylist()
    runs = leeward.simulate(scenario, ["uniform", "sinbad"], [1, 2])
    for at, (cell, single) in enumerate(zip(cells, runs, strict=True)):
        summary = single.summary()["reads"]
        assert cell["reads.time_s.p95"] == summary["time_s"]["p95"]
        assert cell["reads.degraded_share"] == summary["degraded_share"]
        compared = single.compare(runs[at - at % 2])["reads"]
        for name, figure in compared.items():
            assert cell[f"against_baseline.reads.{name}"] == (figure if at % 2 else None)
    result = run("simulate", str(scenario), "--seeds", "2")
    assert result.returncode == 0, result.stderr
    assert "time of the same reads, uniform / this" in result.stdout
