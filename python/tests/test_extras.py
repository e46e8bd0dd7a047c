"""Extras: what works without them, and the hint for a missing package."""

import importlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import leeward
from leeward import InputError
from leeward._extras import PACKAGES, MissingExtraError, missing, needed, require
from support.fixtures import Run

CLUSTER = {"racks": 4, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 2}
BLOCKED = f"""
import sys
for package in {sorted(package for packages in PACKAGES.values() for package in packages)}:
    sys.modules[package] = None
"""


def without(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in which the packages of extras cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + script], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_extras_are_those_of_the_project() -> None:
    root = Path(leeward.__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for extra, packages in PACKAGES.items():
        texts = " ".join(project["optional-dependencies"][extra])
        assert all(package in texts for package in packages), extra
    assert not any(
        package in text for text in project["dependencies"] for one in PACKAGES.values() for package in one
    )


def test_decisions_and_simulations_need_no_extra(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    script = """
import leeward
from leeward import circuits, matrix, packets, policy, sweep
assert leeward.place_replicas("c.json", "64MiB", policy="uniform")["hosts"]
session = leeward.Session("c.json", replicas="uniform")
assert session.place_batch([2**20] * 3).hosts.shape == (3, 3)
scenario = {"cluster": "c.json", "workloads": [{"facebook": {}}], "horizon": "30s"}
print(leeward.simulate(scenario, "uniform")[0]._repr_html_()[:5])
"""
    done = without(script, tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("<div>\n", "", 0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import leeward.hotspots", "ibis is missing: pip install 'leeward[analysis]'"),
        ("import leeward.telemetry", "ibis is missing: pip install 'leeward[analysis]'"),
        (
            "from leeward.sweep import interval; interval([1.0, 2.0])",
            "scipy is missing: pip install 'leeward[analysis]'",
        ),
        (
            "from leeward.report.pictures import figure; figure(print)",
            "matplotlib is missing: pip install 'leeward[plot]'",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(script: str, message: str, tmp_path: Path) -> None:
    done = without(script, tmp_path)
    assert done.stderr.splitlines()[-1] == f"leeward._extras.MissingExtraError: {message}"


def test_commands_hint_at_the_extra(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "links.csv").write_text("time,link,bits\n")
    script = """
import sys
sys.argv = ["leeward", "hotspots", "links.csv", "--cluster", "c.json"]
from leeward.cli import main
main()
"""
    done = without(script, tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "error: ibis is missing",
        "hint: pip install 'leeward[analysis]'",
    ]


def test_a_folder_of_results_needs_pictures_before_the_simulation(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    scenario = {"cluster": "c.json", "workloads": [{"facebook": {}}], "horizon": "30s"}
    (tmp_path / "s.json").write_text(json.dumps(scenario))
    monkeypatch.setattr("leeward._extras.find_spec", lambda package: None)
    result = run("simulate", "s.json", "--out", "result")
    assert result.returncode == 2
    assert result.stderr == "error: --out: matplotlib is missing: pip install 'leeward[plot]'\n"
    assert not (tmp_path / "result").exists()


def test_other_errors_of_imports_stay() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, needed():
        importlib.import_module("no_such_module")
    assert not isinstance(caught.value, MissingExtraError)
    assert missing("plot") is None
    require("analysis", "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leeward._extras.find_spec", lambda package: None)
        with pytest.raises(InputError, match=r"out: duckdb and ibis and scipy are missing: pip install"):
            require("analysis", "out")
