"""Output folders: checked before any simulation, complete or absent, nothing lost."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leeward.cli.results import folders_of

Run = Callable[..., subprocess.CompletedProcess[str]]

SCENARIO = """\
cluster: {cluster}
workloads: [{{swim: {{file: jobs.tsv}}}}]
horizon: 1min
"""
CLUSTER = "racks: 3\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 3\n"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    """A scenario of one job."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.tsv").write_text("job\t1\t0\t0\t0\t300000000\n")
    (tmp_path / "scenario.yaml").write_text(SCENARIO.format(cluster="cluster.yaml"))
    return "scenario.yaml"


def files(folder: Path) -> list[str]:
    """Every file below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (".", "`.`: this is the current folder, or a folder above it"),
        ("..", "`..`: this is the current folder, or a folder above it"),
        ("file", "`file`: `file` is not a folder"),
        ("file/below", "`file/below`: `file` is not a folder"),
        ("broken", "`broken`: `broken` is not a folder"),
        ("notes", "`notes`: holds `notes.txt`; expected an empty folder or an earlier result of one seed"),
        ("other", "`other`: holds `summary.json`; expected an empty folder or an earlier"),
    ],
)
def test_an_unusable_output_folder_is_rejected_before_the_simulation(
    run: Run, scenario: str, tmp_path: Path, path: str, error: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "summary.json").write_text('{"runs": 3}')
    before = files(tmp_path)
    result = run("simulate", scenario, "--out", path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: --out: {error}"), result.stderr
    assert files(tmp_path) == before


WITHOUT_ROOT = """\
import os, pwd, sys
from leeward.cli import main

# This run is rejected too. It loads the modules, which may be in a folder that only root can read.
command, sys.argv = sys.argv, [*sys.argv, "--out", "cluster.yaml/results"]
try:
    main()
except SystemExit:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setuid(pwd.getpwnam("nobody").pw_uid)
sys.argv = [*command, "--out", "locked/results"]
main()
"""
"""Runs `leeward` with arguments into two folders, the second time as a user who is not root."""


@pytest.mark.parametrize("options", [(), ("--seeds", "2")])
def test_a_folder_without_write_permission_is_rejected(
    scenario: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(0o555)
    command = [sys.executable, "-c", WITHOUT_ROOT, "simulate", scenario, *options]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "error: --out: `cluster.yaml/results`: `cluster.yaml` is not a folder",
        "error: --out: `locked`: no permission to write to this folder",
    ]


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("none/demo.html", "error: --report: `none/demo.html`: there is no folder `none`"),
        ("folder", "error: --report: `folder`: is a folder; expected a file"),
    ],
)
def test_an_unusable_page_path_is_rejected_before_the_demo_runs(
    run: Run, tmp_path: Path, page: str, error: str
) -> None:
    (tmp_path / "folder").mkdir()
    result = run("demo", "--report", page)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", error + "\n")


def test_a_policy_that_the_demo_has_already_is_rejected_before_it_runs(run: Run) -> None:
    result = run("demo", "--policy", "sinbad")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --policy: `sinbad` is given twice")


def test_an_earlier_result_is_replaced_completely(run: Run, scenario: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    assert run("simulate", scenario, "--out", "results", "--policy", "uniform,sinbad").returncode == 0
    assert {path.name for path in out.iterdir()} == {"uniform", "sinbad", "summary.json", "report.html"}
    assert run("simulate", scenario, "--out", "results", "--policy", "uniform,leeward").returncode == 0
    assert {path.name for path in out.iterdir()} == {"uniform", "leeward", "summary.json", "report.html"}
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("mine", ["notes.txt", "uniform/notes.txt"])
def test_a_result_with_a_file_of_the_user_in_it_is_not_replaced(
    run: Run, scenario: str, tmp_path: Path, mine: str
) -> None:
    assert run("simulate", scenario, "--out", "results").returncode == 0
    (tmp_path / "results" / mine).write_text("mine")
    before = files(tmp_path)
    result = run("simulate", scenario, "--out", "results")
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: --out: `results`: holds `{mine}`")
    assert files(tmp_path) == before


def test_a_sweep_and_a_single_result_do_not_share_a_folder(run: Run, scenario: str, tmp_path: Path) -> None:
    assert run("simulate", scenario, "--out", "one").returncode == 0
    assert run("simulate", scenario, "--out", "many", "--seeds", "2").returncode == 0
    before = files(tmp_path)
    sweep = run("simulate", scenario, "--out", "one", "--seeds", "2")
    single = run("simulate", scenario, "--out", "many")
    assert (sweep.returncode, single.returncode) == (2, 2)
    assert sweep.stderr.startswith(
        "error: --out: `one`: holds `report.html`; expected an empty folder or an earlier sweep"
    )
    assert single.stderr.startswith(
        "error: --out: `many`: holds `cells`; expected an empty folder or an earlier"
    )
    assert files(tmp_path) == before


def test_the_table_is_printed_even_if_files_cannot_be_written(
    run: Run, scenario: str, tmp_path: Path
) -> None:
    # The name has nearly the maximum length of a file name, so a longer temporary name is impossible.
    result = run("simulate", scenario, "--out", "x" * 254)
    assert result.returncode == 1
    assert result.stdout.splitlines()[1].startswith("blocks written")
    assert result.stderr.splitlines()[-1] == f"error: {tmp_path / ('x' * 254)}: File name too long"
    assert files(tmp_path) == ["cluster.yaml", "jobs.tsv", "scenario.yaml"]


def test_policies_that_differ_in_special_characters_have_separate_folders() -> None:
    names = folders_of(["rehdfs:offsets=[1, 2]", "rehdfs:offsets=[1,2]", "uniform"])
    assert len(set(names)) == 3
    assert all(not set(name) & set('/\\:*?"<>|[] ') for name in names)


@pytest.mark.parametrize(
    "arguments",
    [("simulate", "scenario.yaml", "--out"), ("demo", "--report"), ("reproduce", "sinbad", "--out")],
)
@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_output_path_is_rejected(
    run: Run, scenario: str, tmp_path: Path, arguments: tuple[str, ...], path: str
) -> None:
    before = files(tmp_path)
    result = run(*arguments, path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: Invalid value for '{arguments[-1]}': expected a path")
    assert files(tmp_path) == before
