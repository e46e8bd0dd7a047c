"""Traces that break an assumption of stochastic bounds: notes beside the answers, and fields of JSON."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from leeward.traces import open_trace

Run = Callable[..., subprocess.CompletedProcess[str]]
CLUSTER = str(Path(__file__).parents[2] / "examples" / "slo" / "cluster.yaml")
CHANGES = "the load of its trace changes over time; bounds by snc assume that it does not"
TOGETHER = "note: a: its bursts coincide with those of b; without `depends_on`, bounds by snc may be too low"


def write_trace(path: Path, seed: int, bursts: int, growth: float = 1.0) -> None:
    """Ten minutes of reads of 8 KiB at 20 a second, with 60 bursts of 40 reads in a second.

    Args:
        path: File of the trace.
        seed: Seed of the times of single reads.
        bursts: Seed of the times of bursts.
        growth: Factor of the rate of single reads from the middle on.
    """
    draw = numpy.random.default_rng(seed)
    first = draw.uniform(0, 300, 6000)
    second = draw.uniform(300, 600, int(6000 * growth))
    begins = numpy.random.default_rng(bursts).uniform(0, 599, 60)
    times = numpy.sort(numpy.concatenate([first, second, *(begins + 0.025 * at for at in range(40))]))
    lines = (f"{at:.6f},read,8192\n" for at in times)
    path.write_text("seconds,kind,size\n" + "".join(lines))


def write_workloads(folder: Path, name: str, workloads: dict[str, str]) -> str:
    """A file of workloads with their traces and further fields."""
    slo = "slo: {percentile: 99, latency: 1s}"
    lines = [
        f"  - {{name: {workload}, client: r0h0, server: r0h7, {slo}, trace: {fields}}}\n"
        for workload, fields in workloads.items()
    ]
    path = folder / name
    path.write_text("stages: [network-in]\nworkloads:\n" + "".join(lines))
    return str(path)


def notes(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("note: ")]


def test_a_poisson_stream_has_one_state_and_no_note(run: Run, tmp_path: Path) -> None:
    times = numpy.cumsum(numpy.random.default_rng(1).exponential(0.02, 6000))
    lines = "".join(f"{at:.6f},read,8192\n" for at in times)
    (tmp_path / "t.csv").write_text("seconds,kind,size\n" + lines)
    result = run("slo", "model", str(tmp_path / "t.csv"), "--stage", "network-in")
    assert result.stdout.startswith("network-in: 1 state, ")
    assert notes(result) == []
    [model] = json.loads(
        run("slo", "model", str(tmp_path / "t.csv"), "--stage", "network-in", "-o", "json").stdout
    )
    [state] = model["states"]
    assert state["requests_per_s"] == pytest.approx(6000 / (times[-1] - times[0]), rel=1e-3)
    assert (model["lift"], model["batch_s"], model["notes"]) == (1, 0, [])
    assert model["stationarity"]["stationary"] is True
    assert open_trace(str(tmp_path / "t.csv")).model("network-in") == model


def test_a_trace_whose_load_grows_has_a_note_beside_every_answer_of_models(run: Run, tmp_path: Path) -> None:
    write_trace(tmp_path / "calm.csv", 1, 10)
    write_trace(tmp_path / "grows.csv", 2, 20, growth=2)
    result = run("slo", "model", str(tmp_path / "grows.csv"), "--stage", "network-in")
    changes = "note: network-in: its load changes over the trace; bounds by snc assume that it does not"
    assert notes(result) == [changes]
    file = write_workloads(tmp_path, "w.yaml", {"calm": "calm.csv", "grows": "grows.csv"})
    new = write_workloads(tmp_path, "new.yaml", {"more": "grows.csv"})
    for arguments in (
        ("bound", file),
        ("bound", file, "--method", "snc"),
        ("check", file),
        ("check", file, "--replay"),
        ("admit", file, "--arriving", new),
    ):
        result = run("slo", *arguments, "--cluster", CLUSTER)
        names = "grows, more" if arguments[0] == "admit" else "grows"
        assert f"note: {names}: {CHANGES}" in notes(result), arguments
        record = json.loads(run("slo", *arguments, "--cluster", CLUSTER, "-o", "json").stdout)
        assert f"grows: {CHANGES}" in record["notes"]
        tested = {one["workload"]: one["stationarity"] for one in record["workloads"]}
        assert tested["calm"]["stationary"]
        assert not tested["grows"]["stationary"]
        first, second = tested["grows"]["halves_per_s"]
        assert second / first == pytest.approx(1.8, rel=0.2)
    # Worst-case bounds assume nothing of the kind.
    result = run("slo", "bound", file, "--cluster", CLUSTER, "--method", "dnc")
    assert notes(result) == []


def test_traces_that_burst_together_are_suggested_as_dependencies(run: Run, tmp_path: Path) -> None:
    for seed, (name, bursts) in enumerate([("a", 100), ("b", 100), ("c", 300)]):
        write_trace(tmp_path / f"{name}.csv", seed, bursts)
    traces = {name: f"{name}.csv" for name in "abc"}
    file = write_workloads(tmp_path, "w.yaml", traces)
    result = run("slo", "bound", file, "--cluster", CLUSTER)
    assert TOGETHER in notes(result)
    record: dict[str, Any] = json.loads(run("slo", "bound", file, "--cluster", CLUSTER, "-o", "json").stdout)
    [pair] = record["dependent"]
    assert pair["workloads"] == ["a", "b"]
    assert pair["correlation"] > 0.3
    assert 0 <= pair["p"] < 0.01
    known = write_workloads(tmp_path, "known.yaml", traces | {"b": "b.csv, depends_on: [a]"})
    result = run("slo", "bound", known, "--cluster", CLUSTER)
    assert TOGETHER not in notes(result)
    # A trace that several workloads share stands for workloads like it.
    shared = write_workloads(tmp_path, "shared.yaml", dict.fromkeys("abc", "a.csv"))
    record = json.loads(run("slo", "bound", shared, "--cluster", CLUSTER, "-o", "json").stdout)
    assert record["dependent"] == []
