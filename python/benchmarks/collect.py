"""Runs all benchmarks several times, and writes their figures to docs/reference/speed.json.

Each figure has the median, the least and the greatest value of the runs. The file also has the machine, the
date, the commit, and the greatest load average before a run, because other work slows a benchmark down. `make
tables` then writes the tables of docs/reference/speed.md from this file. If a benchmark fails, the file stays
as it was.

    python python/benchmarks/collect.py [--runs 5] [--rows 10000000] [--memory 4GB]
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BENCHES = (
    ("calculus", "curve"),
    ("calculus", "snc"),
    ("capture", "read"),
    ("circuits", "schedule"),
    ("circuits", "switch"),
    ("controller", "hour"),
    ("controller", "load", "--seconds", "5"),
    ("controller", "load", "--seconds", "5", "--curve"),
    ("controller", "service"),
    ("fluid", "fluid"),
    ("operations", "operations"),
    ("packets", "packets"),
    ("placement", "decision"),
    ("placement", "tasks"),
    ("requests", "requests"),
    ("shaping", "shaping"),
    ("slo", "pack"),
    ("slo", "slo"),
)
"""Crates, their benchmarks that record figures, and arguments. Other benchmarks print comparisons."""
FIGURES = ROOT / "docs" / "reference" / "speed.json"


def machine() -> dict[str, Any]:
    """Processor, number of cores, memory and kernel of this machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
    memory = Path("/proc/meminfo").read_text().splitlines()[0].split()[1]
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(int(memory) / 1e6),
        "kernel": platform.release(),
    }


def run(rows: int, memory: str) -> list[dict[str, Any]]:
    """Runs every benchmark once, and returns its figures."""
    programs = [
        *(
            ["cargo", "bench", "--locked", "-p", f"leeward-{crate}", "--bench", name, "--", *arguments]
            for crate, name, *arguments in BENCHES
        ),
        [sys.executable, "python/benchmarks/fluid.py"],
        [sys.executable, "python/benchmarks/policies.py"],
        [sys.executable, "python/benchmarks/hotspots.py", "--rows", str(rows), "--memory", memory],
    ]
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        for program in programs:
            start = time.monotonic()
            subprocess.run(program, cwd=ROOT, env=os.environ | {"LEEWARD_BENCH": file.name}, check=True)
            print(f"{' '.join(program[1:])}: {time.monotonic() - start:.0f} s", file=sys.stderr)
        return [json.loads(line) for line in Path(file.name).read_text().splitlines()]


def summarize(runs: Iterable[list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Unit, median, least and greatest value of each figure.

    Raises:
        ValueError: A run has two figures of one name: the median would be that of two different cases.
    """
    values: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for figures in runs:
        for name, count in Counter(figure["name"] for figure in figures).items():
            if count > 1:
                raise ValueError(f"{name}: {count} figures of one run have this name")
        for figure in figures:
            values.setdefault(figure["name"], []).append(figure["value"])
            units[figure["name"]] = figure["unit"]
    return {
        name: {
            "unit": units[name],
            "median": float(f"{statistics.median(found):.4g}"),
            "least": float(f"{min(found):.4g}"),
            "most": float(f"{max(found):.4g}"),
        }
        for name, found in sorted(values.items())
    }


def main() -> None:
    """Runs the benchmarks and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000, help="samples of the benchmark of hotspots")
    parser.add_argument("--memory", default="4GB", help="limit of memory of the benchmark of hotspots")
    options = parser.parse_args()
    runs, loads = [], []
    for _ in range(options.runs):
        loads.append(os.getloadavg()[0])
        runs.append(run(options.rows, options.memory))
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    document = {
        "machine": machine(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit.stdout.strip(),
        "runs": options.runs,
        "load_before": round(max(loads), 1),
        "figures": summarize(runs),
    }
    FIGURES.write_text(json.dumps(document, indent=1) + "\n")
    print(f"wrote {FIGURES.relative_to(ROOT)}: {len(document['figures'])} figures; make tables prints them")


if __name__ == "__main__":
    main()
