"""Benchmarks of the integrations: the policy for HDFS beside the default policy, and modules for Kubernetes.

The benchmarks of HDFS are in `integrations/hdfs/src/bench`, and need Java 17 and Maven; those of Kubernetes
are Go benchmarks, and need Go 1.26. Without these, the error says what to install, because these parts are
measured only by name.

    python python/benchmarks/integrations.py hdfs|hdfs-times|hdfs-full|hdfs-snapshots|kubernetes
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from record import record, record_peer

ROOT = Path(__file__).resolve().parents[2]
HDFS = ROOT / "integrations" / "hdfs"
KUBERNETES = ROOT / "integrations" / "kubernetes"
PEER = "Hadoop"
POLICIES = ("sinbad", "ccp", "rehdfs", "leeward")
FAILURES = ("killed", "hangs", "garbage")
RELATIVE = re.compile(r"^(\w+), controller (\w+): chooseTarget takes ([\d.]+) \(", re.MULTILINE)
RATES = re.compile(r"^(\w+): (\w+) per second: median [\d.]+, and ([\d.]+) \(", re.MULTILINE)
GO = re.compile(
    r"^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:\s+[\d.]+ MB/s)?\s+(\d+) B/op", re.MULTILINE
)
PACKAGES = ("./score", "./snapshot", "./placements")

Figure = tuple[str, str, float]
"""Name, unit and value."""


def relative(output: str) -> Figure:
    """Reads the output of `RelativeBenchmark`: the time of a policy, relative to the default policy.

    Raises:
        ValueError: The output has no such line.
    """
    if not (found := RELATIVE.search(output)):
        raise ValueError(f"RelativeBenchmark: no relative time in its output: {output[:200]!r}")
    policy, failure, ratio = found[1], found[2], float(found[3])
    if failure == "well":
        return f"hdfs, {policy}, over default", "ratio", ratio
    return f"hdfs, {policy}, controller {failure}: added", "%", 100 * (ratio - 1)


def rates(output: str) -> list[Figure]:
    """Reads the output of `NameNodeBenchmark`: rates of operations, relative to the default policy.

    Raises:
        ValueError: The output has no such line.
    """
    found = [(f"hdfs, {one[2]} over default", "ratio", float(one[3])) for one in RATES.finditer(output)]
    if not found:
        raise ValueError(f"NameNodeBenchmark: no rates in its output: {output[:200]!r}")
    return found


def jmh(results: Sequence[dict[str, Any]]) -> Iterator[Figure]:
    """Figures of JMH's JSON: median and 99th percentile, and the allocation of an operation if measured."""
    for one in results:
        unit = one["primaryMetric"]["scoreUnit"].removesuffix("/op")
        name = _jmh_name(one["benchmark"].rpartition(".")[2], one["params"])
        percentiles = one["primaryMetric"]["scorePercentiles"]
        yield f"{name}, p50", unit, percentiles["50.0"]
        yield f"{name}, p99", unit, percentiles["99.0"]
        for metric, value in one.get("secondaryMetrics", {}).items():
            if metric.endswith("gc.alloc.rate.norm"):
                yield f"{name}, allocation", "kB", value["score"] / 1e3


def _jmh_name(method: str, params: dict[str, str]) -> str:
    if method == "chooseTarget":
        return f"hdfs, {params['policy']}"
    return f"hdfs, {method} of {20 * int(params['racks'])} hosts"


def go(output: str) -> list[Figure]:
    """Reads the output of `go test -bench -benchmem`: time and bytes of an operation.

    Raises:
        ValueError: The output has no benchmark.
    """
    found: list[Figure] = []
    for one in GO.finditer(output):
        found.append((f"kubernetes, {one[1]}", "us", float(one[2]) / 1e3))
        found.append((f"kubernetes, {one[1]}, allocation", "kB", int(one[3]) / 1e3))
    if not found:
        raise ValueError(f"go test: no benchmark in its output: {output[:200]!r}")
    return found


def hadoop_version() -> str:
    """Version of Hadoop in the file of the project."""
    found = re.search(r"<hadoop\.version>([^<]+)<", (HDFS / "pom.xml").read_text())
    if found is None:
        raise ValueError(f"{HDFS / 'pom.xml'}: no hadoop.version")
    return found[1]


def _maven(main: str, arguments: str) -> str:
    command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", f"--file={HDFS / 'pom.xml'}"]
    command += ["-Pbench", f"-Dbench.main={main}", f"-Dbench.arguments={arguments}", "verify"]
    return _output(command, HDFS)


def _output(command: Sequence[str], folder: Path) -> str:
    if shutil.which(command[0]) is None:
        raise SystemExit(f"error: {command[0]} is not installed: this part needs it")
    process = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return process.stdout


def _run_jmh(arguments: str) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        _maven("org.openjdk.jmh.Main", f"-rf json -rff {path} {arguments}")
        return list(jmh(json.loads(path.read_text())))


def measure(part: str) -> list[Figure]:
    """Measures a part and returns its figures.

    Raises:
        ValueError: A benchmark printed something else, or the part does not exist.
    """
    times = "ChooseTargetBenchmark -prof gc -p policy="
    match part:
        case "hdfs":
            cases = [*POLICIES, *(f"leeward:{failure}" for failure in FAILURES)]
            found = [relative(_maven("dev.leeward.hdfs.RelativeBenchmark", case)) for case in cases]
            return found + rates(_maven("dev.leeward.hdfs.NameNodeBenchmark", "leeward"))
        case "hdfs-times":
            return _run_jmh(times + ",".join(("default", *POLICIES)))
        case "hdfs-full":
            return _run_jmh(f"{times}default:full,leeward:full")
        case "hdfs-snapshots":
            return _run_jmh("SnapshotBenchmark")
        case "kubernetes":
            command = ["go", "test", "-run=^$", "-bench=.", "-benchmem", *PACKAGES]
            return go(_output(command, KUBERNETES))
    raise ValueError(f"no part {part!r}")


def main() -> None:
    """Records the figures of a part and prints them."""
    part = sys.argv[1] if len(sys.argv) == 2 else ""
    figures = measure(part)
    if part.startswith("hdfs"):
        record_peer(PEER, hadoop_version())
    for name, unit, value in figures:
        record(name, unit, value, PEER if "default" in name or name.endswith(": added") else None)
        print(f"{name:<60} {value:>12.4g} {unit}")


if __name__ == "__main__":
    main()
