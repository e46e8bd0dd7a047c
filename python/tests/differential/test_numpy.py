"""Statistics that the command prints, computed once more with numpy from the same files."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(2, 30))]

START = 1_767_225_600
CADENCE, INTERVAL = 30, 300
HOURS = 4
CAPACITY = 40e9
RACKS, HOSTS = 5, 3


def write(path: Path, header: str, rows: Any) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def printed(run: Run, *arguments: str) -> Any:
    result = run(*arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def loads(random: numpy.random.Generator) -> numpy.ndarray:
    """Utilization of each link at each reading, with nan where a reading is missing."""
    count, length = 2 * RACKS, HOURS * 3600 // CADENCE
    level = numpy.clip(
        random.uniform(0.2, 0.9, (count, 1)) + random.normal(0, 0.05, (count, length)).cumsum(1) / 4, 0, 1
    )
    level[random.random((count, length)) < random.choice([0.0, 0.1, 0.7], (count, 1))] = numpy.nan
    return level


@pytest.mark.parametrize("seed", SEEDS)
def test_hotspots_are_those_of_numpy(run: Run, tmp_path: Path, seed: int) -> None:
    level = loads(numpy.random.default_rng(seed))
    names = [f"r{at // 2}:{'uplink' if at % 2 else 'downlink'}" for at in range(2 * RACKS)]
    every = [
        (START + CADENCE * (step + 1), names[at], repr(float(level[at, step] * CAPACITY)))
        for at, step in numpy.argwhere(~numpy.isnan(level))
    ]
    write(tmp_path / "loads.csv", "t_s,link,load_bps", every)
    cluster = {"racks": RACKS, "hosts_per_rack": HOSTS, "nic": "25Gbps", "rack_link": "40Gbps"}
    (tmp_path / "c.json").write_text(json.dumps(cluster))
    found = printed(run, "hotspots", "loads.csv", "--cluster", "c.json", "--cadence", f"{CADENCE}s")

    shape = (len(names), HOURS * 3600 // INTERVAL, INTERVAL // CADENCE)
    parts = level.reshape(shape)
    observed = (~numpy.isnan(parts)).sum(2)
    mean = numpy.divide(numpy.nansum(parts, 2), observed, out=numpy.zeros(shape[:2]), where=observed > 0)
    judged = observed >= shape[2] / 2
    hot = judged & (mean > 0.75)
    rows = {row["name"]: row for row in found["links"]}
    for at, name in enumerate(names):
        if not judged[at].any():
            assert name not in rows or rows[name]["intervals"] == 0
            continue
        row, values = rows[name], mean[at][judged[at]]
        assert (row["intervals"], row["hot"]) == (judged[at].sum(), hot[at].sum())
        assert row["mean_ppm"] == pytest.approx(1e6 * numpy.nanmean(parts[at][judged[at]]), abs=1)
        for rank in (50, 95, 98):
            exact = 1e6 * numpy.percentile(values, rank, method="inverted_cdf")
            # Percentiles are the lower ends of bins of 1 %.
            assert row[f"p{rank}_ppm"] - 1 <= exact < row[f"p{rank}_ppm"] + 10_001
        edges = numpy.diff(numpy.concatenate([[0], hot[at].astype(int), [0]]))
        lengths = numpy.flatnonzero(edges == -1) - numpy.flatnonzero(edges == 1)
        assert row["runs"] == len(lengths)
        assert (row["longest_ms"] or 0) == 1000 * INTERVAL * max(lengths, default=0)
    assert found["extent"]["hot"] == hot.sum()
    assert found["extent"]["thin"] == ((observed > 0) & ~judged).sum()
    for at, direction in enumerate(("down", "up")):
        row = next(
            row
            for row in found["unevenness"]
            if (row["cross_section"], row["direction"]) == ("ToR-pod", direction)
        )
        seen, each = judged[at::2], numpy.where(judged[at::2], mean[at::2], numpy.nan)
        seen_intervals = seen.any(0)
        uneven = numpy.nanstd(each[:, seen_intervals], 0) / numpy.nanmean(each[:, seen_intervals], 0)
        assert (row["intervals"], row["links"]) == (seen_intervals.sum(), seen.sum(0).max())
        for rank in (25, 50, 75, 95):
            exact = numpy.percentile(uneven, rank, method="inverted_cdf")
            # Utilizations are of 0.01 %, and Cv is rounded down to a thousandth.
            assert row[f"cv_p{rank}"] == pytest.approx(exact, abs=0.0025)


@pytest.mark.parametrize("seed", SEEDS)
def test_curves_are_the_greatest_excess_over_all_pairs_of_requests(
    run: Run, tmp_path: Path, seed: int
) -> None:
    random = numpy.random.default_rng(seed)
    count = int(random.integers(2, 250))
    gaps = random.choice([0.0, 1e-3, 0.5], count) * random.exponential(1, count)
    at = numpy.round(numpy.cumsum(gaps), 6)
    kinds, sizes = random.choice(["read", "write"], count), random.integers(1, 2**20, count)
    write(tmp_path / "t.csv", "seconds,kind,size", zip(map(repr, at.tolist()), kinds, sizes, strict=True))
    found = printed(run, "slo", "curve", "t.csv", "--stage", "network-out,network-in")
    for curve in found["curves"]:
        payload = numpy.where(kinds == ("read" if curve["stage"] == "network-out" else "write"), 1.1, 0.025)
        work = 200 + payload * sizes
        total = numpy.concatenate([[0], work.cumsum()])
        rates = numpy.array([bucket["rate"] for bucket in curve["buckets"]])
        bursts = numpy.array([bucket["burst"] for bucket in curve["buckets"]])
        order = numpy.argsort(rates)
        tried = numpy.concatenate([rates, random.uniform(rates.min(), rates.max(), 20)])
        for rate in tried:
            # The work of requests i to j beyond what the rate serves between them.
            excess = (total[1:] - rate * at)[None, :] - (total[:-1] - rate * at)[:, None]
            exact = numpy.triu(excess).max() if count > 1 else work[0]
            ours = numpy.interp(rate, rates[order], bursts[order])
            assert ours == pytest.approx(exact, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_summary_of_a_trace_is_that_of_numpy(run: Run, tmp_path: Path, seed: int) -> None:
    random = numpy.random.default_rng(1000 + seed)
    count = int(random.integers(2, 400))
    at = numpy.round(numpy.cumsum(random.exponential(0.1, count)), 6)
    kinds, sizes = random.choice(["read", "write"], count), random.integers(1, 2**20, count)
    write(tmp_path / "t.csv", "seconds,kind,size", zip(map(repr, at.tolist()), kinds, sizes, strict=True))
    trace = printed(run, "slo", "curve", "t.csv")["trace"]
    gaps = numpy.diff(at)
    assert (trace["requests"], trace["bytes"]) == (count, sizes.sum())
    assert trace["seconds"] == pytest.approx(at[-1] - at[0])
    assert trace["gap_c2"] == pytest.approx(gaps.var() / gaps.mean() ** 2)
    assert trace["read_share"] == pytest.approx((kinds == "read").mean())
    assert trace["mean_size_bytes"] == pytest.approx(sizes.mean())
