"""Devices of SLO workloads: what a profile measured, and what bounds and replays assume of it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
SIZES = (4096, 65536)


def write_profile(folder: Path, rows: dict[tuple[int, float], float], **more: object) -> str:
    """A device file whose reads and writes have these latencies in seconds, by size and percentile."""
    unloaded = [
        {"kind": kind, "size_bytes": size, "percentile": percentile, "seconds": seconds}
        for kind in ("read", "write")
        for (size, percentile), seconds in rows.items()
    ]
    table = [{"size_bytes": size, "read_iops": 8000, "write_iops": 8000} for size in SIZES]
    (folder / "dev.json").write_text(json.dumps({"table": table, "unloaded": unloaded, **more}))
    return str(folder / "dev.json")


def write_trace(folder: Path, *sizes: int) -> str:
    """A trace with a read of each size, a second apart."""
    rows = "".join(f"{at},read,{size}\n" for at, size in enumerate(sizes))
    (folder / "t.csv").write_text(f"seconds,kind,size\n{rows}")
    return str(folder / "t.csv")


@pytest.mark.parametrize(
    ("size", "percentile", "seconds", "message"),
    [
        (4096, "99.9", 0.004, ""),
        (65536, "99", 0.002, ""),
        (34816, "99", 0.0015, ""),
        (512, "99.9", 0.004, ""),
        (65536, "99.9", None, "for reads of 64KiB at it, only up to 99: profile this size longer"),
        (131072, "99", None, "for reads of 128KiB at it, only 4KiB to 64KiB: profile this size longer"),
    ],
)
def test_a_latency_that_was_not_measured_is_an_error_with_kind_size_and_percentile(
    run: Run, tmp_path: Path, size: int, percentile: str, seconds: float | None, message: str
) -> None:
    device = write_profile(tmp_path, {(4096, 99): 0.001, (65536, 99): 0.002, (4096, 99.9): 0.004})
    trace = write_trace(tmp_path, 512, size)
    result = run("slo", "curve", trace, "--device", device, "--percentile", percentile, "-o", "json")
    if seconds is None:
        assert result.returncode == 2
        assert f"percentile {percentile}: no latency without queueing was measured {message}" in result.stderr
    else:
        assert json.loads(result.stdout)["trace"]["unloaded_s"] == pytest.approx(seconds)


def write_workload(folder: Path, trace: str, more: str = "", head: str = "") -> tuple[str, str]:
    """A workload of the trace alone on a device, and its cluster."""
    (folder / "cluster.yaml").write_text(
        "racks: 1\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 10Gbps\n"
        "devices: [{name: ssd, read: 1GB/s, write: 1GB/s}]\n"
    )
    (folder / "w.yaml").write_text(
        f"device: dev.json\nmargin: 0%\n{head}\nstages: [storage]\nworkloads:\n"
        f"  - {{name: w, client: r0h0, server: r0h1, trace: {trace}, "
        f"slo: {{percentile: 99.9, latency: 50ms}}{more}}}\n"
    )
    return str(folder / "w.yaml"), str(folder / "cluster.yaml")


def test_bounds_refuse_a_latency_that_was_not_measured_unless_it_is_stated(run: Run, tmp_path: Path) -> None:
    write_profile(tmp_path, {(4096, 99): 0.001, (65536, 99): 0.002, (4096, 99.9): 0.004})
    trace = write_trace(tmp_path, *([4096, 65536] * 3))
    workloads, cluster = write_workload(tmp_path, trace)
    for command in (("bound",), ("check", "--replay")):
        result = run("slo", command[0], workloads, "--cluster", cluster, *command[1:])
        assert result.returncode == 2
        assert "w.yaml:6:5: workloads[0].slo.percentile: percentile 99.9: no latency" in result.stderr
        assert "for reads of 64KiB at it, only up to 99" in result.stderr
    workloads, cluster = write_workload(tmp_path, trace, ", unloaded: 9ms")
    result = run("slo", "bound", workloads, "--cluster", cluster, "-o", "json")
    assert json.loads(result.stdout)["workloads"][0]["stages"][0]["unloaded_s"] == 0.009
