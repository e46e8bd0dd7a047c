"""Cells from Python and from the command line."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import compute, parquet
from typer.testing import CliRunner

from leeward import cells, cli
from leeward.cli.csv_columns import COLUMNS
from leeward.errors import InputError

EXAMPLES = Path(__file__).parents[2] / "examples" / "cells"
SMALL: dict[str, Any] = {
    "cells": 3,
    "cluster": {
        "racks": 8,
        "hosts_per_rack": 4,
        "pods": 2,
        "nic": "10Gbps",
        "oversubscription": 2,
        "pod_oversubscription": 2,
    },
    "rate": "2Gbps",
    "writes": {"load": 200},
    "exchange": {"intervals": ["0s", "2s"], "losses": [0, 0.2]},
    "absent": [{"cell": 1, "from": "4s", "until": "8s"}],
    "horizon": "10s",
    "warmup": "2s",
}


def test_a_scenario_has_a_row_for_each_run_and_window() -> None:
    scenario = cells.read(SMALL)
    assert (scenario.name, scenario.cells, scenario.hosts, scenario.horizon_s) == ("cells", 3, 96, 10.0)
    runs = scenario.run()
    tables = cells.tables(runs)
    assert tuple(tables) == cells.TABLES
    table = tables["runs"]
    # One ledger, and two intervals by two losses without and with an absence.
    assert len(table) == scenario.runs == 1 + 2 * 2 * 2
    assert table["decided_by"].to_pylist() == ["one-ledger", *["cells"] * 8]
    assert table["interval_s"].to_pylist() == [None, *[0.0, 0.0, 2.0, 2.0] * 2]
    assert table["loss"].to_pylist() == [None, *[0.0, 0.2] * 4]
    assert table["absent"].to_pylist() == [False] * 5 + [True] * 4
    assert compute.min(table["placed_count"]).as_py() > 50
    without_controller = table["without_controller_count"].to_pylist()
    assert [count > 0 for count in without_controller] == table["absent"].to_pylist()
    windows = tables["windows"]
    assert len(windows) == 9 * 8
    assert windows["placed_up_bps"] == windows["placed_down_bps"]
    fullest = windows.group_by("run").aggregate([("core_fullest", "mean")])["core_fullest_mean"].to_pylist()
    assert table["core_fullest"].to_pylist() == pytest.approx(fullest)


def test_a_summary_compares_with_one_ledger() -> None:
    rows = cells.summary(cells.simulate(SMALL))["runs"]
    assert rows[0]["beyond_one_ledger"] is None
    for row in rows[1:]:
        for name, difference in row["beyond_one_ledger"].items():
            assert rows[0][name] + difference == pytest.approx(row[name])


def test_runs_repeat_and_a_seed_changes_them() -> None:
    first, again, other = (cells.simulate(SMALL | {"seed": seed}) for seed in (1, 1, 2))
    assert first.windows() == again.windows()
    assert first.windows() != other.windows()


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    scenario = tmp_path / "a.yaml"
    scenario.write_text(json.dumps(SMALL))
    runner = CliRunner()
    printed = runner.invoke(cli.app, ["cells", str(scenario), "--out", str(tmp_path / "out")])
    assert printed.exit_code == 0, printed.output
    assert "96 hosts in 3 cells" in printed.stdout
    assert "cells, some away" in printed.stdout
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "runs.parquet",
        "summary.json",
        "windows.parquet",
    }
    assert len(parquet.read_table(tmp_path / "out" / "runs.parquet")) == 9
    as_json = runner.invoke(cli.app, ["cells", str(scenario), "-o", "json"])
    assert json.loads(as_json.stdout) == written
    as_csv = list(
        csv.DictReader(io.StringIO(runner.invoke(cli.app, ["cells", str(scenario), "-o", "csv"]).stdout))
    )
    assert tuple(as_csv[0]) == COLUMNS["cells"]
    assert [float(row["core_p98"]) for row in as_csv] == [row["core_p98"] for row in written["runs"]]


def test_a_folder_of_something_else_is_kept(tmp_path: Path) -> None:
    scenario, out = tmp_path / "a.yaml", tmp_path / "out"
    scenario.write_text(json.dumps(SMALL))
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    refused = CliRunner().invoke(cli.app, ["cells", str(scenario), "--out", str(out)])
    assert refused.exit_code != 0
    assert (out / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_valid(example: Path) -> None:
    assert cells.read(example).cells == 6


def test_an_invalid_scenario_is_named() -> None:
    with pytest.raises(InputError, match="horizon: 0s"):
        cells.read(SMALL | {"horizon": "0s"})
    with pytest.raises(InputError, match=r"cluster\.racks: a list: expected a count"):
        cells.read(SMALL | {"cluster": SMALL["cluster"] | {"racks": [{"name": "a"}]}})
    with pytest.raises(InputError, match="expected JSON values"):
        cells.read(SMALL | {"seed": object()})


def test_progress_may_stop_the_runs() -> None:
    def stop(share: float) -> None:
        if share > 0.5:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        cells.simulate(SMALL, progress=stop)
