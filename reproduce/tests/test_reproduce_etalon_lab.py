"""Etalon's figures between kernels of this machine: a very short reproduction through the command."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from leeward_reproduce.etalon.kernels import figures
from support.labs import BOUND, nothing_left


def test_table_1_is_measured_in_the_lab_beside_the_simulator(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "PAIR", 100)
    monkeypatch.setattr("leeward.lab.runs.BOUND", BOUND)
    options = ("--figure", "1", "--horizon", "10ms", "--out", str(tmp_path / "results"), "-o", "json")
    with nothing_left():
        result = run("reproduce", "etalon", "--lab", *options)
    assert result.returncode == 0, result.stderr
    rows = {row["quantity"]: row for row in json.loads(result.stdout)}
    assert set(rows) == {
        "day of a circuit: mean",
        "day of a circuit: standard deviation",
        "week: mean",
        "week: standard deviation",
        "rate of the packet path",
        "rate of a circuit",
    }
    day = rows["day of a circuit: mean"]
    assert day["ours"] == pytest.approx(day["simulator"], rel=0.2)
    # The lab repeats a run that was refused, under a larger dilation.
    assert day["note"].startswith("dilation ")
    # A flow that begins has not yet the rate of its path.
    assert 0 < rows["rate of the packet path"]["ours"] < rows["rate of a circuit"]["ours"] < 81
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert names == {"rows.json", "results.md", "run.json", "pictures"}


def test_without_root_the_lab_measures_nothing(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    result = run("reproduce", "etalon", "--lab", "--figure", "1", "--out", str(tmp_path / "results"))
    assert (result.returncode, "the lab requires root: run the command with sudo" in result.stderr) == (
        1,
        True,
    )
    assert not (tmp_path / "results" / "rows.json").exists()
