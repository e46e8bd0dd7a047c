"""The file of figures, docs/reference/speed.json.

A *part* is a group of benchmarks that were measured together. It has the machine, the date, the commit, the
number of runs, the greatest load averages before and after a run, and the peers: other programs that the
same runs measured, with their versions, or the reason why one is missing. A figure has its part, the
median, the least and the greatest value of the runs, and the spread: the greatest less the least, over the
median.
"""

import json
import math
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "reference" / "speed.json"


@dataclass
class Run:
    """Figures and peers of the benchmarks of a part in one run.

    Attributes:
        figures: By name: `unit`, `value`, and `peer` for a figure of or relative to another program.
        peers: By name: `version`, or `missing` with the reason.
    """

    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    peers: dict[str, dict[str, str]] = field(default_factory=dict)


def read_run(text: str) -> Run:
    """Reads the lines that benchmarks recorded.

    Raises:
        ValueError: A line is neither a figure nor a peer, or a value is not finite. Or two figures have one
            name: the median would be that of two different cases. Or a figure has a peer without a version.
    """
    run = Run()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            one = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: not JSON: {error}") from None
        match one:
            case {"name": str(name), "unit": str(unit), "value": int() | float() as value}:
                if not math.isfinite(value):
                    raise ValueError(f"line {number}: {name}: {value} is not finite")
                if name in run.figures:
                    raise ValueError(f"line {number}: {name}: two figures of one run have this name")
                run.figures[name] = {"unit": unit, "value": value} | (
                    {"peer": one["peer"]} if "peer" in one else {}
                )
            case {"peer": str(peer), "version": str(version)}:
                run.peers[peer] = {"version": version}
            case {"peer": str(peer), "missing": str(reason)}:
                run.peers[peer] = {"missing": reason}
            case _:
                raise ValueError(f"line {number}: neither a figure nor a peer: {line}")
    for name, figure in run.figures.items():
        if "peer" in figure and "version" not in run.peers.get(figure["peer"], {}):
            raise ValueError(f"{name}: no version of {figure['peer']}")
    return run


def summarize(part: str, runs: Iterable[Run]) -> dict[str, dict[str, Any]]:
    """Figures of a part: unit, median, least and greatest value, spread, and peer.

    Raises:
        ValueError: A figure has two units.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        for name, figure in run.figures.items():
            found.setdefault(name, []).append(figure)
    return {name: _figure(part, name, figures) for name, figures in sorted(found.items())}


def _figure(part: str, name: str, figures: list[dict[str, Any]]) -> dict[str, Any]:
    units = {figure["unit"] for figure in figures}
    if len(units) > 1:
        raise ValueError(f"{name}: the units {', '.join(sorted(units))}")
    values = [figure["value"] for figure in figures]
    median, least, most = statistics.median(values), min(values), max(values)
    peer = figures[0].get("peer")
    return {
        "part": part,
        "unit": units.pop(),
        "median": float(f"{median:.4g}"),
        "least": float(f"{least:.4g}"),
        "most": float(f"{most:.4g}"),
        "spread": spread(median, least, most),
    } | ({"peer": peer} if peer else {})


def spread(median: float, least: float, most: float) -> float | None:
    """The greatest value less the least one, over the median; None if only the median is zero."""
    if most == least:
        return 0.0
    return round((most - least) / median, 3) if median else None


def conditions(runs: Iterable[Run], before: list[float], after: list[float]) -> dict[str, Any]:
    """Machine, date, commit, number of runs, greatest load averages, and peers of a part measured now."""
    peers: dict[str, dict[str, str]] = {}
    for run in runs:
        peers |= run.peers
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "machine": machine(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": commit.stdout.strip() or "unknown",
        "runs": len(before),
        "load_before": round(max(before), 1),
        "load_after": round(max(after), 1),
        "peers": dict(sorted(peers.items())),
    }


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


def empty() -> dict[str, Any]:
    """A file without figures."""
    return {"parts": {}, "figures": {}}


def replace_part(
    document: dict[str, Any], part: str, conditions: dict[str, Any], figures: dict[str, dict[str, Any]]
) -> None:
    """Puts a part into the document. Earlier figures of this part leave, those of other parts stay.

    Raises:
        ValueError: A figure is already in another part.
    """
    others = {name: figure for name, figure in document["figures"].items() if figure["part"] != part}
    if twice := sorted(others.keys() & figures.keys()):
        raise ValueError(f"{twice[0]}: in the parts {others[twice[0]]['part']} and {part}")
    document["parts"] = dict(sorted((document["parts"] | {part: conditions}).items()))
    document["figures"] = dict(sorted((others | figures).items()))


def write(document: dict[str, Any], path: Path = FIGURES) -> None:
    """Writes a file of figures, with a line for each part and each figure."""

    def block(name: str) -> str:
        rows = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in document[name].items()]
        return f' "{name}": {{\n' + ",\n".join(rows) + "\n }"

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + block("parts") + ",\n" + block("figures") + "\n}\n")


def read(path: Path = FIGURES) -> dict[str, Any]:
    """Reads a file of figures."""
    document: dict[str, Any] = json.loads(path.read_text())
    return document
