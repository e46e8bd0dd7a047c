"""Coflows: their table, their summary, and fair sharing beside smallest effective bottleneck first."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

import leeward
from leeward import InputError, sweep

Run = Callable[..., subprocess.CompletedProcess[str]]

# 8 MiB/s into and out of each rack.
CLUSTER = "racks: 4\nhosts_per_rack: 1\nnic: 67108864bps\noversubscription: 1\n"
# a sends 8 MiB to rack 3, and b 12 MiB from each of two racks. c is within rack 2. The last one begins in
# the run and does not end in it.
TRACE = """\
4 4
a 0 1 0 1 3:8
b 0 2 1 2 1 3:24
c 500 1 2 1 2:5
d 20000 1 0 1 2:1000
"""
SCENARIO = """\
name: four
cluster: cluster.yaml
workloads:
  - coflow: {file: trace.txt}
horizon: 30s
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "trace.txt").write_text(TRACE)
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def test_json_has_the_completion_times_and_the_factor(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    fair, sebf = (one["summary"]["coflows"] for one in document["runs"])
    assert (fair["count"], fair["finished"], fair["unfinished"], fair["local"]) == (3, 2, 1, 1)
    assert fair["unfinished_ids"] == ["d"]
    assert fair["completion_s"]["mean"] == pytest.approx(3.5)
    assert sebf["completion_s"]["mean"] == pytest.approx(2.5)
    assert sebf["slowdown"]["mean"] == pytest.approx((1 + 4 / 3) / 2)
    assert sebf["classes"]["LN"]["completion_s"]["count"] == 2
    compared = document["runs"][1]["against_baseline"]
    assert compared["coflows"]["factor"] == pytest.approx(7 / 5)
    assert compared["coflow_classes"]["LN"]["count"] == 2
    names = [f"{policy}: 1 of 3 coflows did not end: d" for policy in ("fair", "sebf")]
    assert result.stderr.splitlines() == names


def test_the_terminal_shows_both_disciplines_and_names_unfinished_coflows(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario))
    assert result.returncode == 0, result.stderr
    rows = {line.rsplit("  ", 2)[0].strip(): line.split()[-1] for line in result.stdout.splitlines()[1:]}
    assert rows["time of the same coflows, fair / this"] == "1.40x"
    assert "block" not in result.stdout
    assert "sebf: 1 of 3 coflows did not end: d" in result.stderr


def test_csv_has_a_row_for_each_policy(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "-o", "csv")
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["policy"] for row in rows] == ["fair", "sebf"]
    assert [float(row["coflows.completion_s.mean"]) for row in rows] == pytest.approx([3.5, 2.5])


def test_a_folder_has_a_table_of_coflows_and_a_page(run: Run, scenario: Path, tmp_path: Path) -> None:
    result = run("simulate", str(scenario), "--out", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    rows = parquet.read_table(tmp_path / "out" / "sebf" / "coflows.parquet").to_pylist()
    assert [
        (row["coflow"], row["class"], row["flows"], row["senders"], row["receivers"]) for row in rows
    ] == [
        ("a", "LN", 1, 1, 1),
        ("b", "LN", 2, 2, 1),
        ("c", None, 0, 1, 1),
        ("d", "LN", 1, 1, 1),
    ]
    assert [row["bound_s"] for row in rows] == pytest.approx([1, 3, 0, 125])
    assert [row["completion_s"] for row in rows[:3]] == pytest.approx([1, 4, 0])
    assert (rows[3]["finished_s"], rows[2]["slowdown"], rows[2]["local_bytes"]) == (None, None, 5 << 20)
    assert rows[1]["longest_flow_bytes"] == 12 << 20
    page = (tmp_path / "out" / "report.html").read_text()
    assert "how coflows share links" in page
    assert "coflow completion time" in page


def test_a_sweep_compares_coflows_as_a_run_does(scenario: Path) -> None:
    cells = sweep.run(scenario, None, seeds=[1]).to_pylist()
    fair, sebf = leeward.simulate(scenario)
    assert [cell["coflows.completion_s.mean"] for cell in cells] == [
        run.summary()["coflows"]["completion_s"]["mean"] for run in (fair, sebf)
    ]
    compared = sebf.compare(fair)
    assert cells[1]["against_baseline.coflows.factor"] == compared["coflows"]["factor"]
    for name, of_class in compared["coflow_classes"].items():
        cell = {
            part: cells[1][f"against_baseline.coflow_classes.{name}.{part}"] for part in ("count", "factor")
        }
        assert cell["count"] == of_class["count"]
        # A sweep has no factor of no coflows.
        assert cell["factor"] == (of_class["factor"] if of_class["count"] else None)


def test_coflows_beside_placements_are_reported_too(run: Run, scenario: Path) -> None:
    (scenario.parent / "blocks.csv").write_text("t_arrival_s,writer,size_bytes\n5,0,1000\n")
    blocks = "  - blocks: {file: blocks.csv, replicas: 2}\n"
    scenario.write_text(SCENARIO.replace("horizon", f"{blocks}horizon"))
    result = run("simulate", str(scenario), "--policy", "uniform")
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["background", "coflows", "that", "arrived", "3"] in lines


def test_policies_of_placements_are_errors_where_nothing_is_placed(scenario: Path) -> None:
    with pytest.raises(InputError, match="unknown policy `uniform` for coflows; there are: fair, sebf"):
        leeward.simulate(scenario, ["uniform"])
