"""Causes of utilizations above 105 %, and what discards do to a verdict."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.telemetry.units import Source, doubt

T = 1_795_500_000
Run = Callable[..., subprocess.CompletedProcess[str]]
CLUSTER = {"racks": 2, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "10Gbps"}


@pytest.mark.parametrize(
    ("utilization", "source", "ports", "factor", "words", "never"),
    [
        (1.6, Source(unit_named=True, speeds=True), 1, None, "speed is too low", "bytes"),
        (1.6, Source(unit_named=True), 1, None, "cluster file is too low", "bytes"),
        (1.6, Source(), 2, 2, "copies of one", "prefix"),
        (1.6, Source(unit_named=True), 2, 2, "copies of one", "bytes"),
        (2.5, Source(unit_named=True), 2, None, "cluster file is too low", "copies"),
        (6.4, Source(), 1, 8, "bytes were taken", "cluster file"),
        (6.4, Source(unit_named=True), 1, 1000, "prefix", "bytes"),
        (640, Source(), 1, 1000, "a prefix is wrong by 1000", "bytes"),
        (6400, Source(), 1, 8000, "bytes were taken for bits, and a prefix", "cluster file"),
        (6400, Source(unit_named=True), 1, None, "no usual cause", "bytes"),
    ],
)
def test_causes_fit_the_evidence(
    utilization: float, source: Source, ports: int, factor: float | None, words: str, never: str
) -> None:
    found, why = doubt(utilization, source, ports)
    assert found == factor
    assert words in why
    assert never not in why


@given(st.floats(1.0501, 1e9), st.booleans(), st.booleans(), st.integers(1, 16))
def test_a_factor_explains_the_utilization(utilization: float, named: bool, speeds: bool, ports: int) -> None:
    factor, why = doubt(utilization, Source(named, speeds), ports)
    assert why
    assert factor is None or utilization / factor <= 1.05


def counters(lost: range) -> str:
    """A counter at 80 % of its capacity, which cannot be read for some time."""
    lines = ["t_s,link,ifHCOutOctets"]
    for step in range(24 * 60):
        if step not in lost:
            lines.append(f"{T + 60 * step},r0:uplink,{10**12 + 60_000_000_000 * step}")
        lines.append(f"{T + 60 * step},r1:uplink,{10**12}")
    return "\n".join(lines) + "\n"


def test_lost_intervals_stand_beside_the_verdict(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "loads.csv").write_text(counters(range(600, 720)))
    given_files = "hotspots", tmp_path / "loads.csv", "--cluster", tmp_path / "cluster.json"
    (place,) = json.loads(run(*given_files, "-o", "json").stdout)["hot_places"]
    assert (place["lost"], place["lost_why"]) == (24, "gap 1")
    lines = run(*given_files).stdout.splitlines()
    assert "r0:uplink: 24 intervals are not judged (readings lost: gap 1)" in lines[:10]
    (tmp_path / "loads.csv").write_text(counters(range(0)))
    (place,) = json.loads(run(*given_files, "-o", "json").stdout)["hot_places"]
    assert (place["lost"], place["lost_why"]) == (0, "")
    assert "not judged" not in run(*given_files).stdout
