"""Figures are read from the outputs of the benchmarks of HDFS and Kubernetes. No benchmark runs."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "benchmarks"))

import integrations  # noqa: E402 (the module is not part of the package)
import results  # noqa: E402


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "WARN\nleeward, controller well: chooseTarget takes 1.14 (1.13 to 1.15) of the default policy's",
            ("hdfs, leeward, over default", "ratio", 1.14),
        ),
        (
            "leeward, controller hangs: chooseTarget takes 0.9970 (0.9 to 1.0) of the default policy's\n",
            ("hdfs, leeward, controller hangs: added", "%", pytest.approx(-0.3)),
        ),
    ],
)
def test_a_relative_time_of_hdfs_is_read(output: str, expected: tuple[str, str, float]) -> None:
    assert integrations.relative(output) == expected


def test_rates_of_a_namenode_are_read() -> None:
    line = "leeward: writes per second: median 8123, and 0.97 (0.95 to 1.01) of the default policy's; 9\n"
    assert integrations.rates(line + line.replace("writes", "creates").replace("0.97", "1.16")) == [
        ("hdfs, writes over default", "ratio", 0.97),
        ("hdfs, creates over default", "ratio", 1.16),
    ]


def jmh(benchmark: str, **params: str) -> dict[str, Any]:
    return {
        "benchmark": f"dev.leeward.hdfs.{benchmark}",
        "params": params,
        "primaryMetric": {
            "scoreUnit": "us/op",
            "scorePercentiles": {"50.0": 7.5, "99.0": 18.0, "99.9": 40.0},
        },
        "secondaryMetrics": {"gc.alloc.rate.norm": {"score": 6300.0}, "gc.count": {"score": 5.0}},
    }


def test_times_and_allocations_of_jmh_are_read() -> None:
    assert list(integrations.jmh([jmh("ChooseTargetBenchmark.chooseTarget", policy="leeward:full")])) == [
        ("hdfs, leeward:full, p50", "us", 7.5),
        ("hdfs, leeward:full, p99", "us", 18.0),
        ("hdfs, leeward:full, allocation", "kB", 6.3),
    ]
    snapshot = jmh("SnapshotBenchmark.whole", racks="500") | {"secondaryMetrics": {}}
    assert [name for name, _, _ in integrations.jmh([snapshot])] == [
        "hdfs, whole of 10000 hosts, p50",
        "hdfs, whole of 10000 hosts, p99",
    ]


def test_times_and_allocations_of_go_are_read() -> None:
    output = (
        "goos: linux\n"
        "BenchmarkReadAWholeSnapshot-2 \t 132\t 9100000 ns/op\t 120.55 MB/s\t 3700000 B/op\t  61 allocs/op\n"
        "BenchmarkAPodAmongFiveThousandNodes   \t 1500\t 760000.5 ns/op\t 8000 B/op\t 12 allocs/op\nok\n"
    )
    assert integrations.go(output) == [
        ("kubernetes, ReadAWholeSnapshot", "us", 9100.0),
        ("kubernetes, ReadAWholeSnapshot, allocation", "kB", 3700.0),
        ("kubernetes, APodAmongFiveThousandNodes", "us", pytest.approx(760.0005)),
        ("kubernetes, APodAmongFiveThousandNodes, allocation", "kB", 8.0),
    ]


@pytest.mark.parametrize("read", [integrations.relative, integrations.rates, integrations.go])
def test_another_output_is_an_error_that_shows_it(read: Any) -> None:
    with pytest.raises(ValueError, match="in its output: 'expected one of"):
        read("expected one of [sinbad]")


def test_the_version_of_hadoop_is_that_of_the_project() -> None:
    assert integrations.hadoop_version().startswith("3.")


def test_the_file_has_no_figure_that_these_benchmarks_do_not_name() -> None:
    figures = results.read()["figures"]
    policies = ("default", *integrations.POLICIES)
    named = {f"hdfs, {policy}, {what}" for policy in policies for what in ("p50", "p99", "allocation")}
    named |= {f"hdfs, {policy}, over default" for policy in integrations.POLICIES}
    named |= {f"hdfs, leeward, controller {failure}: added" for failure in integrations.FAILURES}
    assert {name for name, one in figures.items() if one["part"] == "hdfs-times"} <= named
    assert {name for name, one in figures.items() if one["part"] == "hdfs"} - named == {
        "hdfs, writes over default",
        "hdfs, creates over default",
    }
