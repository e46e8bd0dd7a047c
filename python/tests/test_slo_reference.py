"""Curves and models against the authors' released code, by the functions and commands that users call."""

import gzip
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leeward.slo import load
from leeward.traces import open_trace

Run = Callable[..., subprocess.CompletedProcess[str]]
STAGES = {"networkIn": "network-in", "networkOut": "network-out"}


def references(folder: Path) -> Iterator[tuple[dict[str, Any], Path, str]]:
    """Each reference of a network stage, with its trace and the name of the stage."""
    for path in sorted(folder.glob("*.network*.json")):
        reference = json.loads(path.read_text())
        kind = reference.get("estimatorType") or reference["estimator"]["type"]
        yield reference, folder.parent / "traces" / f"{reference['trace']}.gz", STAGES[kind]


def assert_published(model: dict[str, Any], arrivals: dict[str, Any]) -> None:
    """Checks a model against an `arrivalInfo` of the released code."""
    assert len(model["states"]) == len(arrivals["MGFs"])
    for state, expected in zip(model["states"], arrivals["MGFs"], strict=True):
        assert state["requests_per_step"] == pytest.approx(expected["p"], rel=1e-11)
        if expected["count"]:
            assert state["sizes"]["exponential"] == pytest.approx(1 / expected["lambda"], rel=1e-11)
    assert np.allclose(model["transitions"], arrivals["transitionMatrix"], rtol=1e-11, atol=0)


def test_published_models_are_those_of_the_released_code(run: Run, golden: Path) -> None:
    compared = 0
    for reference, trace, stage in references(golden / "qos" / "mmbp"):
        assert_published(open_trace(trace).model(stage, published=True), reference["arrivalInfo"])
        if compared % 4 == 0:
            result = run("slo", "model", str(trace), "--published", "--stage", stage, "-o", "json")
            assert_published(json.loads(result.stdout)[0], reference["arrivalInfo"])
        compared += 1
    assert compared >= 10


def test_curves_are_those_of_the_released_code(golden: Path) -> None:
    compared = 0
    for reference, trace, stage in references(golden / "qos" / "rb"):
        curve = open_trace(trace).curve(stage)
        assert curve["mean_rate"] == pytest.approx(reference["minRate"], rel=1e-9)
        vertices = sorted((bucket["rate"], bucket["burst"]) for bucket in curve["buckets"])
        rates, bursts = zip(*vertices, strict=True)
        points = [point for point in reference["rb_points"] if point["r"] >= rates[0]]
        expected = [point["b"] for point in points]
        assert np.interp([point["r"] for point in points], rates, bursts) == pytest.approx(expected, rel=1e-9)
        compared += len(points)
    assert compared > 100


def write_trace(folder: Path, first: float, name: str = "t.csv.gz") -> Path:
    """10, 100 and 20 requests in three seconds of the trace's clock, whose first request is at `first`."""
    counts = ((first, 1 - first, 10), (1.0, 1.0, 100), (2.0, 1.0, 20))
    times = [start + length * at / count for start, length, count in counts for at in range(count)]
    with gzip.open(folder / name, "wt") as file:
        file.writelines(f"{round(1e9 * at)},0x1000,Get\n" for at in times)
    return folder / name


@pytest.mark.parametrize("first", [0.0, 0.25, 0.5, 0.9])
def test_the_published_fit_counts_seconds_of_the_clock_of_the_trace(
    run: Run, tmp_path: Path, first: float
) -> None:
    trace = write_trace(tmp_path, first)
    top = (101**0.5 - 1) ** 2  # The rate whose range ends at 100 requests: x + 2 sqrt(x) = 100.
    model = open_trace(trace).model("network-out", published=True)
    assert model["states"][-1]["requests_per_s"] == pytest.approx(top)
    result = run("slo", "model", str(trace), "--published", "--stage", "network-out", "-o", "json")
    assert json.loads(result.stdout)[0]["states"] == model["states"]


def test_a_file_of_workloads_fits_the_model_that_the_command_prints(run: Run, tmp_path: Path) -> None:
    trace = write_trace(tmp_path, 0.5)
    bounds = []
    (tmp_path / "cluster.yaml").write_text("racks: 1\nhosts_per_rack: 2\nnic: 10Mbps\nrack_link: 1Gbps\n")
    for published in (True, False):
        flags = ("--published",) if published else ()
        result = run("slo", "model", str(trace), *flags, "--stage", "network-out", "-o", "json")
        (tmp_path / "model.json").write_text(result.stdout)
        for source in (f"trace: {trace.name}", "model: model.json"):
            text = f"""
fit: {{ published: {str(published).lower()} }}
margin: 0%
stages: [network-out]
workloads:
  - {{ name: w, client: r0h0, server: r0h1, slo: {{ percentile: 99, latency: 1s }}, {source} }}
"""
            (tmp_path / "w.yaml").write_text(text)
            workloads = load(tmp_path / "w.yaml", tmp_path / "cluster.yaml")
            bounds.append(workloads.bound("snc")["workloads"][0]["bound_s"])
    assert all(isinstance(bound, float) for bound in bounds)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
    assert bounds[2] == pytest.approx(bounds[3], rel=1e-9)
    assert bounds[0] != pytest.approx(bounds[2], rel=1e-3)
