"""Sweeps: results of many runs, their storage, resumption and summary."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import leeward
from leeward import InputError, sweep
from leeward.cli import sweep as command_line
from leeward.cli.output import Format
from leeward.policy import BlockRequest, View
from leeward.report import comparison_rows, interval_rows
from leeward.simulation import TABLES

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
  - swim: {file: jobs.tsv}     # twenty jobs
  - flows: {file: flows.csv}
horizon: 3min
warmup: 25s
"""
POLICIES = ["uniform", "sinbad:threshold=1MB", "sinbad"]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario in its own folder. A run takes milliseconds."""
    jobs = [f"job{i}\t{5 + 4 * i}\t0\t0\t0\t{(i % 3 + 1) * 2**27}" for i in range(20)]
    flows = [f"{10 + i},r{i % 4}h0,r{(i + 1) % 4}h1,50000000" for i in range(30)]
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.tsv").write_text("\n".join(jobs) + "\n")
    (tmp_path / "flows.csv").write_text("\n".join(["t_arrival_s,src,dst,size_bytes", *flows]) + "\n")
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A scenario with runs of almost a second."""
    racks = CLUSTER.replace("racks: 4", "racks: 60").replace("hosts_per_rack: 4", "hosts_per_rack: 20")
    (tmp_path / "cluster.yaml").write_text(racks)
    path = tmp_path / "slow.yaml"
    path.write_text("cluster: cluster.yaml\nworkloads: [{facebook: {}}]\nhorizon: 10min\n")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cell_times(folder: Path) -> dict[str, int]:
    """Modification times of a sweep's cells."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}


def command() -> str:
    return str(Path(sys.executable).with_name("leeward"))


@pytest.mark.parametrize(("jobs", "backend"), [(1, "threading"), (3, "threading"), (2, "loky"), (1, "loky")])
def test_jobs_and_backend_do_not_change_the_results(
    scenario: Path, tmp_path: Path, jobs: int, backend: str
) -> None:
    settings = {"telemetry.delay": ["0s", "2s"]}
    expected = sweep.run(scenario, POLICIES, seeds=[1, 2], settings=settings, jobs=2, out=tmp_path / "a")
    cells = sweep.run(
        scenario, POLICIES, seeds=[1, 2], settings=settings, jobs=jobs, backend=backend, out=tmp_path / "b"
    )
    assert cells.equals(expected)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert len(cells) == 12


def test_a_sweep_without_an_output_folder_has_the_same_results(scenario: Path, tmp_path: Path) -> None:
    assert sweep.run(scenario, POLICIES).equals(sweep.run(scenario, POLICIES, out=tmp_path / "out"))


@pytest.mark.skipif(
    os.environ.get("LEEWARD_TEST_RAY") != "1" or importlib.util.find_spec("ray") is None,
    reason="sweeps on Ray need an installed Ray and LEEWARD_TEST_RAY=1",
)
@pytest.mark.filterwarnings("default")
def test_ray_does_not_change_the_results(scenario: Path, tmp_path: Path) -> None:
    # A function of a function goes to other processes with its code; one of this module needs the module.
    def coolest(request: BlockRequest, view: View) -> Any:
        return view.residual_in

    policies: list[Any] = [*POLICIES, coolest]
    for backend in ("threading", "ray"):
        sweep.run(scenario, policies, seeds=range(1, 5), jobs=2, backend=backend, out=tmp_path / backend)
    assert contents(tmp_path / "threading") == contents(tmp_path / "ray")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_the_ray_backend_without_ray_names_the_install_command(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "--seeds", "2", "--backend", "ray")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "error: --backend: `ray`: Ray is not installed",
        "hint: pip install 'leeward[ray]' installs it",
    ]


@pytest.mark.parametrize("warmup", ["", "warmup: 0s", "warmup: 25s", "warmup: 1min"])
def test_cells_equal_single_runs_bit_for_bit(scenario: Path, warmup: str) -> None:
    scenario.write_text(SCENARIO.replace("warmup: 25s", warmup))
    cells = sweep.run(scenario, POLICIES, seeds=[1, 2]).to_pylist()
    runs = leeward.simulate(scenario, POLICIES, [1, 2])
    for at, (cell, run) in enumerate(zip(cells, runs, strict=True)):
        assert (cell["policy"], cell["seed"], cell["baseline"]) == (run.policy, run.seed, "uniform")
        compared = run.compare(runs[at - at % 3])
        for name, value in run.summary().items():
            for part, figure in value.items() if isinstance(value, dict) else [("", value)]:
                assert cell[f"{name}.{part}".rstrip(".")] == figure
        for name in ("blocks", "full_blocks", "partial_blocks", "files", "jobs"):
            for part, figure in compared[name].items():
                assert cell[f"against_baseline.{name}.{part}"] == (figure if at % 3 else None)


def test_the_first_policy_is_the_baseline_and_the_order_changes_nothing_else(scenario: Path) -> None:
    first, *others = POLICIES
    cells = [sweep.run(scenario, order, seeds=[1, 2]) for order in (POLICIES, [first, *reversed(others)])]
    keys = [("seed", "ascending"), ("policy", "ascending")]
    assert cells[0].sort_by(keys).equals(cells[1].sort_by(keys))
    assert sweep.run(scenario, [*others, first])["baseline"].unique().to_pylist() == [others[0]]


def test_a_killed_sweep_resumes_without_its_finished_cells(slow: Path, tmp_path: Path) -> None:
    arguments = [command(), "simulate", str(slow), "--seeds", "6", "--jobs", "2", "-o", "json", "--out"]
    killed = subprocess.Popen(
        [*arguments, str(tmp_path / "killed")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    cells = tmp_path / "killed" / "cells"
    deadline = time.monotonic() + 120
    while len(list(cells.glob("[!.]*.json"))) < 3:
        assert time.monotonic() < deadline
        assert killed.poll() is None
        time.sleep(0.005)
    killed.kill()
    killed.wait()
    before = cell_times(tmp_path / "killed")
    complete = {path.stem for path in cells.glob("[!.]*.json")}
    assert 3 <= len(complete) < 12
    assert not (tmp_path / "killed" / "summary.json").exists()
    resumed = subprocess.run(
        [*arguments, str(tmp_path / "killed")], capture_output=True, text=True, check=True
    )
    assert f"{len(complete)} of 12 cells are there already" in resumed.stderr
    after = cell_times(tmp_path / "killed")
    kept = {name for name in before if Path(name).stem in complete}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    uninterrupted = subprocess.run(
        [*arguments, str(tmp_path / "whole")], capture_output=True, text=True, check=True
    )
    assert resumed.stdout == uninterrupted.stdout
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_ctrl_c_stops_a_sweep_at_once_and_prints_how_to_resume(
    slow: Path, tmp_path: Path, backend: str
) -> None:
    out = tmp_path / "out"
    arguments = [command(), "simulate", str(slow), "--seeds", "40", "--backend", backend, "--out", str(out)]
    stopped = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list((out / "cells").glob("*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stopped.send_signal(signal.SIGINT)
    start = time.monotonic()
    stdout, stderr = stopped.communicate(timeout=30)
    assert time.monotonic() - start < 10
    assert (stopped.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == f"stopped; the same command resumes from {out}"
    assert "Traceback" not in stderr


@pytest.mark.parametrize("damage", ["cut json", "changed json", "cut parquet", "no parquet"])
def test_a_damaged_cell_is_reported_and_computed_again(
    scenario: Path, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    sweep.run(scenario, POLICIES, seeds=[1, 2], out=out)
    whole, before = contents(out), cell_times(out)
    kind, suffix = damage.split()
    damaged = sorted((out / "cells").glob(f"*.{suffix}"))[2]
    data = damaged.read_bytes()
    if kind == "no":
        damaged.unlink()
    else:
        damaged.write_bytes(
            data[: len(data) // 2] if kind == "cut" else data.replace(b'"blocks": ', b'"blocks": 1')
        )
        assert damaged.read_bytes() != data
    sweep.run(scenario, POLICIES, seeds=[1, 2], out=out)
    lines = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 1
    assert lines[0].startswith(str(damaged))
    assert contents(out) == whole
    changed = {name for name, at in cell_times(out).items() if before[name] != at}
    assert changed == {f"{damaged.stem}.json", f"{damaged.stem}.parquet"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("scenario.yaml", "3min", "2min"), ("cluster.yaml", "50MB/s}", "60MB/s}"), ("jobs.tsv", "job3", "jobX")],
)
def test_cells_of_a_changed_scenario_are_neither_used_nor_modified(
    scenario: Path, tmp_path: Path, name: str, old: str, new: str, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    sweep.run(scenario, POLICIES, seeds=[1, 2], out=out)
    before = cell_times(out)
    file = tmp_path / name
    file.write_text(file.read_text().replace(old, new))
    cells = sweep.run(scenario, POLICIES, seeds=[1, 2], out=out)
    assert cells.equals(sweep.run(scenario, POLICIES, seeds=[1, 2]))
    assert "6 cells are of an earlier state" in caplog.text
    assert cell_times(out).items() >= before.items()
    assert len(cell_times(out)) == 2 * len(before)


def test_more_seeds_and_policies_reuse_existing_cells(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep.run(scenario, POLICIES[:2], seeds=[1, 2], out=out)
    before = cell_times(out)
    cells = sweep.run(scenario, POLICIES[::-1], seeds=[1, 2, 3], out=out)
    assert cell_times(out).items() >= before.items()
    assert cells.equals(sweep.run(scenario, POLICIES[::-1], seeds=[1, 2, 3]))


def test_a_second_sweep_into_the_same_folder_is_rejected(run: Run, scenario: Path, tmp_path: Path) -> None:
    from leeward.sweep.store import Store

    with Store(tmp_path / "out").lock():
        result = run("simulate", str(scenario), "--seeds", "2", "--out", "out")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --out: `out`: another sweep is writing to it")
    assert run("simulate", str(scenario), "--seeds", "2", "--out", "out").returncode == 0


def test_tables_of_every_run_are_written_on_request(scenario: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "out"
    sweep.run(scenario, POLICIES, out=out)
    sweep.run(scenario, POLICIES, out=out, tables=True)
    folders = sorted(path for path in (out / "cells").iterdir() if path.is_dir())
    assert len(folders) == 3
    (uniform,) = leeward.simulate(scenario, ["uniform"])
    (folder,) = (path for path in folders if path.name.startswith("uniform"))
    for name in TABLES:
        assert parquet.read_table(folder / f"{name}.parquet").equals(getattr(uniform, name)())
    before = contents(out)
    sweep.run(scenario, POLICIES, out=out, tables=True)
    assert contents(out) == before


def test_progress_of_every_cell_reaches_one(scenario: Path, tmp_path: Path) -> None:
    updates: dict[int, list[float]] = {}

    def progress(cell: int, share: float) -> None:
        updates.setdefault(cell, []).append(share)

    for _ in range(2):
        updates.clear()
        sweep.run(scenario, POLICIES, out=tmp_path / "out", progress=progress)
        assert set(updates) == {0, 1, 2}
        assert all(shares == sorted(shares) and shares[-1] == 1 for shares in updates.values())


def table(values: dict[str, list[float | None]]) -> pyarrow.Table:
    rows = [
        {"policy": policy, "seed": seed, "baseline": "a", "time": value}
        for policy, of_policy in values.items()
        for seed, value in enumerate(of_policy)
    ]
    return pyarrow.Table.from_pylist(rows)


def test_confidence_intervals_match_a_calculation_by_hand() -> None:
    # The 0.975 quantile of Student's t with 3 degrees of freedom is 3.18245; a half-width is 3.18245 s / 2.
    # b has a mean of 5 and a sum of squares of 9 + 1 + 1 + 9 = 20: s = 2.58199, half-width 4.10853.
    # b - a has the values -1, 1, 1, -1 and a mean of 0: s = 1.15470, half-width 1.83739.
    # a / b has the values 1.5, 0.75, 5 / 6, 1.125, a mean of 1.052083, and a sum of squares of 0.200629 +
    # 0.091255 + 0.047852 + 0.005317 = 0.345052: s = 0.339142, half-width 0.539651.
    rows = sweep.summarize(table({"a": [3, 3, 5, 9], "b": [2, 4, 6, 8]})).to_pylist()
    a, b = rows
    assert (a["mean"], a["difference"], a["ratio"], a["ratio_low"]) == (5, None, None, None)
    assert (b["seeds"], b["mean"], b["difference"]) == (4, 5, 0)
    assert [b["low"], b["high"]] == pytest.approx([0.89147, 9.10853], abs=1e-5)
    assert [b["difference_low"], b["difference_high"]] == pytest.approx([-1.83739, 1.83739], abs=1e-5)
    assert [b["ratio"], b["ratio_low"], b["ratio_high"]] == pytest.approx(
        [1.052083, 0.512432, 1.591735], abs=1e-5
    )


def test_a_paired_interval_excludes_the_effect_of_the_seed_on_both_policies() -> None:
    _, b = sweep.summarize(table({"a": [1, 10, 100], "b": [0.5, 9.5, 99.5]})).to_pylist()
    assert (b["difference"], b["difference_low"], b["difference_high"]) == (-0.5, -0.5, -0.5)
    assert b["high"] - b["low"] > 200


def test_seeds_without_a_value_are_left_out_of_the_summary() -> None:
    _, b = sweep.summarize(table({"a": [1, 2, 3], "b": [2, None, 0]})).to_pylist()
    assert (b["seeds"], b["mean"], b["difference"], b["ratio"]) == (2, 1, -1, None)
    (_, one) = sweep.summarize(table({"a": [4], "b": [2]})).to_pylist()
    assert (one["mean"], one["low"], one["ratio"], one["ratio_high"]) == (2, None, 2, None)


def test_the_command_prints_a_table_for_each_setting(run: Run, scenario: Path) -> None:
    options = ["--policy", "uniform, sinbad", "--seeds", "3", "--seed", "5", "--out", "out"]
    result = run("simulate", str(scenario), *options, "--set", "telemetry.delay=0s,2s")
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if "=" in line] == [
        "telemetry.delay=0s",
        "telemetry.delay=2s",
    ]
    header, blocks = result.stdout.splitlines()[1:3]
    assert header.split() == ["uniform", "sinbad"]
    assert blocks.split() == ["blocks", "written", *["20", "±", "0"] * 2]
    assert "3 seeds, 5 to 7: mean and 95 % confidence interval" in result.stderr
    again = run("simulate", str(scenario), *options, "--set", "telemetry.delay=0s,2s", "-o", "json")
    assert "out: 12 of 12 cells are there already" in again.stderr
    document = json.loads(again.stdout)
    assert (document["baseline"], document["seeds"]) == ("uniform", [5, 6, 7])
    assert len(document["cells"]) == 12
    assert json.loads((scenario.parent / "out" / "summary.json").read_text()) == document


def test_one_seed_gives_the_same_output_as_a_single_simulation(run: Run, scenario: Path) -> None:
    plain = run("simulate", str(scenario), "--out", "plain")
    one = run("simulate", str(scenario), "--seeds", "1", "--out", "one")
    assert (one.returncode, one.stdout) == (0, plain.stdout)
    assert contents(scenario.parent / "plain") == contents(scenario.parent / "one")
    shutil.rmtree(scenario.parent / "one")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--seeds", "0"), "error: Invalid value for '--seeds'"),
        (
            ("--seeds", "2", "--set", "horizon=1min", "--set", "seed=3"),
            "error: --set seed: policies and seeds",
        ),
        (("--backend", "loky"), "error: Invalid value for --backend: requires a sweep: --seeds or --set"),
        (("--seeds", "2", "--tables"), "error: Invalid value for --tables: requires --out"),
        (("--seeds", "2", "--policy", "sinbad,sinbad"), "error: --policy: `sinbad` is given twice"),
        (("--seeds", "2", "--policy", "uniform,best"), "error: --policy: unknown policy `best`"),
        (("--set", "telemetry"), "error: --set telemetry: expected a path and values"),
        (("--set", "telemetry.dely=0s"), "error: --set telemetry.dely=0s: telemetry.dely: unknown field"),
        (
            ("--set", "telemetry.delay=0s,2"),
            "error: --set telemetry.delay=2: telemetry.delay: `2`: the unit is missing",
        ),
        (("--set", "workloads[2].swim.keep=1"), "error: --set workloads[2].swim.keep=1: [2]: there are 2"),
        (
            ("--set", "workloads.swim.keep=1"),
            "error: --set workloads.swim.keep=1: `swim`: the scenario has no fields there, but a list of 2",
        ),
        (("--set", "cluster.racks=3"), "error: --set cluster.racks=3: `racks`: the scenario has no fields"),
        (("--set", "horizon=1min,1min"), "error: --set horizon=1min: given twice"),
        (("--set", "horizon=1min", "--set", "horizon=2min"), "error: --set horizon=2min: given twice"),
        (("--set", "horizon="), "error: --set horizon=: expected a word"),
        (("--set", "policies=[sinbad]"), "error: --set policies: policies and seeds"),
        (("--set", "cluster=none.yaml"), "error: --set cluster=none.yaml: "),
        (("--set", "workloads[0].swim.file=none.tsv"), "error: none.tsv: no such file"),
    ],
)
def test_invalid_options_print_an_error_and_exit_with_2(
    run: Run, scenario: Path, options: tuple[str, ...], error: str
) -> None:
    result = run("simulate", "scenario.yaml", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr
    assert "Traceback" not in result.stderr


def test_a_seed_without_written_blocks_has_no_means_and_no_factors(scenario: Path) -> None:
    (scenario.parent / "jobs.tsv").write_text("job\t1\t0\t0\t0\t0\n")
    (cell,) = sweep.run(scenario, ["uniform"]).to_pylist()
    assert (cell["blocks"], cell["full_block_write_s.count"]) == (0, 0)
    timed = [name for name in cell if name.endswith((".mean", ".p50", ".p95", ".p99", ".max"))]
    empty = {name for name in timed if not cell[f"{name.rpartition('.')[0]}.count"]}
    assert {"block_write_s.mean", "full_block_write_s.p99", "partial_block_write_s.max"} <= empty
    assert all((cell[name] is None) == (name in empty) for name in timed)
    pair = sweep.run(scenario, ["uniform", "sinbad"]).to_pylist()[1]
    for name in ("factor", "faster", "same", "slower", "twice_as_fast"):
        assert pair[f"against_baseline.full_blocks.{name}"] is None
    assert pair["against_baseline.full_blocks.count"] == 0


def test_a_run_without_finished_jobs_has_no_byte_weighted_job_time(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("  - swim: {file: jobs.tsv}     # twenty jobs\n", ""))
    (cell,) = sweep.run(scenario, ["uniform"]).to_pylist()
    assert cell["job_communication_s.count"] == 0
    assert cell["job_communication_by_bytes_s"] is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--policy", "uniform,best"), "error: --policy: unknown policy `best`"),
        (("--policy", "uniform,sinbad:interval=1"), "error: --policy: sinbad.interval: `1`: the unit"),
        (("--set", "workloads[0].swim.file=none.tsv"), "error: none.tsv: no such file"),
        (("--set", "workloads[0].swim.file=jobs.tsv,none.tsv"), "error: none.tsv: no such file"),
        (("--set", "workloads[0].swim.file=data:none/it.tsv"), "error: data:none/it.tsv: "),
    ],
)
def test_errors_are_reported_before_the_output_folder_is_created(
    run: Run, scenario: Path, options: tuple[str, ...], error: str
) -> None:
    result = run("simulate", "scenario.yaml", "--seeds", "2", "--out", "out", *options, LEEWARD_DATA="traces")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr
    assert not (scenario.parent / "out").exists()


def test_an_unavailable_backend_is_rejected_before_the_folder_is_created(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for backend in ("ray", "best"):
        with pytest.raises(InputError, match=f"^backend: `{backend}`: "):
            sweep.run(scenario, POLICIES, backend=backend, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "foreign",
    [
        "summary.json",
        "notes.txt",
        "cells/notes.txt",
        ".cells.parquet",
        "cells.parquet",
        "cells.parquet/notes.txt",
    ],
)
def test_a_sweep_does_not_overwrite_files_of_other_programs(
    scenario: Path, tmp_path: Path, foreign: str
) -> None:
    out = tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    (out / foreign).parent.mkdir(exist_ok=True)
    (out / foreign).write_text('{"cells": "mine"}')
    with pytest.raises(InputError, match=r"^out: `.*`: holds `") as caught:
        sweep.run(scenario, POLICIES, out=out)
    assert foreign.partition("/notes")[0] in str(caught.value)
    assert contents(out) == {foreign: b'{"cells": "mine"}'}


def test_a_sweep_resumes_in_a_folder_with_partial_temporary_files(
    run: Run, scenario: Path, tmp_path: Path
) -> None:
    assert run("simulate", str(scenario), "--seeds", "2", "--out", "out").returncode == 0
    for name in (".cells.77.parquet", ".summary.77.json", "cells/.uniform-1-0123456789abcdef.77.json"):
        (tmp_path / "out" / name).write_text("half")
    result = run("simulate", str(scenario), "--seeds", "2", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "4 of 4 cells are there already" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"tables": True}, "tables: expected a folder for them"),
        ({"out": "afile"}, "out: `afile`: `afile` is not a folder"),
        ({"out": "afile/below"}, "out: `afile/below`: `afile` is not a folder"),
        ({"settings": {"telemetry.delay": "2x"}}, "settings telemetry.delay=2x: "),
        ({"backend": "best"}, "backend: `best`: expected one of"),
        ({"policies": "uniform,sinbad"}, "policies: unknown policy `uniform,sinbad`"),
    ],
)
def test_invalid_arguments_are_input_errors(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("afile").write_text("")
    with pytest.raises(InputError) as caught:
        sweep.run(scenario, **arguments)
    assert str(caught.value).startswith(error)


def test_a_text_is_one_value_of_a_setting(scenario: Path) -> None:
    cells = sweep.run(scenario, ["uniform"], settings={"telemetry.delay": "2s"})
    assert cells["set.telemetry.delay"].to_pylist() == ["2s"]


@pytest.mark.parametrize("confidence", [0, 1, 2, -0.5, float("nan")])
def test_a_confidence_outside_zero_to_one_is_rejected(confidence: float) -> None:
    with pytest.raises(InputError, match=r"^confidence: "):
        sweep.summarize(table({"a": [1, 2]}), confidence)


def test_the_table_of_a_sweep_has_the_rows_of_a_single_run_in_order(scenario: Path) -> None:
    policies = ["uniform", "sinbad"]
    single = [row.quantity for row in comparison_rows(leeward.simulate(scenario, policies))]
    summary = sweep.summarize(sweep.run(scenario, policies, seeds=[1, 2])).to_pylist()
    lines = [row.quantity for row in interval_rows(summary, policies)]
    assert [line for line in lines if not line.startswith("    ")] == single
    assert {"  median", "  smaller blocks", "  all blocks", "  files"} <= set(single)


def test_the_table_of_a_sweep_shows_a_dash_for_a_missing_value(scenario: Path) -> None:
    (scenario.parent / "jobs.tsv").write_text("job\t1\t0\t0\t0\t0\n")
    policies = ["uniform", "sinbad"]
    summary = sweep.summarize(sweep.run(scenario, policies, seeds=[1, 2])).to_pylist()
    rows = {row.quantity: row.cells for row in interval_rows(summary, policies)}
    assert rows["full block write time, mean"] == ("-", "-")
    assert rows["time of the same full blocks, uniform / this"] == ("", "-")
    assert rows["    uniform / this"] == ("", "-")


@pytest.mark.parametrize("options", [(), ("-o", "json"), ("--seeds", "2")])
def test_a_policy_that_refuses_every_block_is_named(
    run: Run, scenario: Path, options: tuple[str, ...]
) -> None:
    result = run("simulate", str(scenario), "--policy", "uniform,ccp", *options)
    assert result.returncode == 0
    lines = [line for line in result.stderr.splitlines() if line.startswith(("warning:", "hint:"))]
    assert len(lines) == 2
    assert re.fullmatch(r"warning: ccp: no block was written: \d+ blocks were refused [\d,]+ times", lines[0])
    assert lines[1].startswith("hint: leeward place replicas --policy ccp ")


def test_the_loky_backend_announces_progress_per_run(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = []

    @contextmanager
    def slow_notice(name: str) -> Iterator[Callable[[], None]]:
        messages.append(name)
        yield lambda: None

    monkeypatch.setattr(command_line, "slow_notice", slow_notice)
    for backend in ("threading", "loky"):
        command_line.sweep(
            str(scenario), ["uniform"], None, 1, ["warmup=1s"], 1, backend, False, None, Format.table
        )
    assert messages == [
        "reading the workloads of scenario",
        "simulating uniform under 1 seed on loky: progress appears as runs end",
    ]


@pytest.mark.parametrize(
    ("setting", "option"), [("seed=1,2", "--seed and --seeds"), ("policies=[sinbad]", "--policy")]
)
def test_a_setting_of_seeds_or_policies_is_rejected_with_the_option_to_use(
    run: Run, scenario: Path, setting: str, option: str
) -> None:
    result = run("simulate", str(scenario), "--set", setting)
    assert result.returncode == 2
    assert result.stderr.splitlines()[1:] == [f"hint: use {option} instead"]
