"""The scenario of a pair of runs: files of the simulator, which the cluster reads as well.

All hosts write files of one block. When all are written, hosts read them. Both load the links of racks, of
which two have half of the average rate, two have it, and two have half as much again.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import yaml

from leeward._quantities import read_seconds
from leeward_reproduce.hdfs import Shape
from leeward_reproduce.hdfs.load import Write
from leeward_reproduce.real import scenario_files
from leeward_reproduce.real.scenario_files import read_csv, write_csv

LINKS_BPS = (20e6, 40e6, 60e6)
"""Rates of the links of racks, each of as many racks. All racks have the same disks."""


@dataclass(frozen=True)
class UnevenShape(Shape):
    """Racks whose links differ, beside equal disks."""

    racks: int = 6
    hosts_per_rack: int = 2
    block: int = 4 << 20

    def cluster(self) -> dict[str, Any]:
        """The cluster in the fields of a cluster file."""
        fields = super().cluster()
        del fields["rack_link"]
        count = self.racks // len(LINKS_BPS)
        return fields | {"racks": [{"count": count, "link": f"{rate:.0f}bps"} for rate in LINKS_BPS]}


SHAPE = UnevenShape()
LENGTH = "90s"
"""Length of a run."""
check_horizon = partial(scenario_files.check_horizon, least_s=30.0)
"""Checks the length of runs."""
WARMUP_S = 5.0
"""Time before the first file, in which the first reports of agents arrive."""
WRITING = 0.4
"""Share of a run, after the warm-up, in which files begin. Reads follow after `PAUSE_S`, until `TAIL_S`."""
PAUSE_S = 5.0
TAIL_S = 5.0
WINDOW_S = 5.0
"""Length of an interval of link loads. The paper has 30 s."""
FILES_PER_S = 2.0
READS_PER_S = 3.0
"""Reads from other racks. Under HDFS's policy, writes take about half of a slow rack's downlink, and these
reads 80 % of its uplink."""
_SIMULATED_READS_PER_S = READS_PER_S * SHAPE.racks / (SHAPE.racks - 1)
"""Reads of the simulator, whose readers are in all racks: as many cross racks on average."""
POLICIES = {"default": "uniform", "ccp": "ccp"}
"""Policies of HDFS, and of the simulator."""


@dataclass(frozen=True)
class Read:
    """A read of a whole file, from a time on, in seconds from the start of the run.

    Attributes:
        at_s: Time of the request.
        file: Number of the file among the written ones.
        draw: Number from 0 to 1 that selects the reader among the hosts in racks without a copy.
    """

    at_s: float
    file: int
    draw: float


@dataclass(frozen=True)
class Plan:
    """Writes and reads of a run."""

    writes: list[Write]
    reads: list[Read]
    reads_from_s: float
    """Time of the first possible read."""
    seconds: float
    """Length of the run. Writes and reads that are not complete at its end are waited for."""


def write(folder: Path, seed: int, horizon: str) -> Path:
    """Draws a scenario and writes it into a folder: `leeward simulate` runs it. Returns its file.

    The simulator draws reads of its own, of which as many per second cross racks on average. Those of the
    cluster are in `reads.csv`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng([seed, 52])
    seconds = read_seconds("horizon", horizon)
    written = WARMUP_S + WRITING * (seconds - WARMUP_S)
    start, end = written + PAUSE_S, seconds - TAIL_S
    (folder / "cluster.yaml").write_text(yaml.safe_dump(SHAPE.cluster(), sort_keys=False), encoding="utf-8")
    blocks = _blocks(random, written)
    write_csv(folder / "blocks.csv", ("t_arrival_s", "writer", "size_bytes"), blocks)
    write_csv(folder / "reads.csv", ("t_s", "file", "draw"), _reads(random, start, end, len(blocks)))
    scenario = {
        "name": "chunks on racks with uneven uplinks, small, on real bytes",
        "cluster": "cluster.yaml",
        "workloads": [
            {"blocks": {"file": "blocks.csv", "block": f"{SHAPE.block}B"}},
            {
                "reads": {
                    "per_second": _SIMULATED_READS_PER_S,
                    "size": f"{SHAPE.block}B",
                    "start": f"{start:g}s",
                    "duration": f"{end - start:g}s",
                }
            },
        ],
        # Agents report the links of hosts, and the controller adds them up.
        "telemetry": {"counters": ["hosts"]},
        "policies": list(POLICIES.values()),
        "horizon": horizon,
        "warmup": f"{WARMUP_S:g}s",
        "sample": f"{WINDOW_S:g}s",
        "seed": seed,
    }
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario, sort_keys=False), encoding="utf-8")
    return file


def read(file: Path) -> Plan:
    """The writes and the reads of a scenario, for the cluster."""
    scenario = yaml.safe_load(file.read_text(encoding="utf-8"))
    writes = [
        Write(float(row["t_arrival_s"]), row["writer"], int(row["size_bytes"]))
        for row in read_csv(file.parent / "blocks.csv")
    ]
    reads = [
        Read(float(row["t_s"]), int(row["file"]), float(row["draw"]))
        for row in read_csv(file.parent / "reads.csv")
    ]
    start = read_seconds("start", scenario["workloads"][1]["reads"]["start"])
    return Plan(writes, reads, start, read_seconds("horizon", scenario["horizon"]))


def _blocks(random: numpy.random.Generator, end: float) -> list[tuple[object, ...]]:
    count = max(round(FILES_PER_S * (end - WARMUP_S)), 1)
    times = numpy.sort(random.uniform(WARMUP_S, end, count)).round(3)
    hosts = random.integers(0, SHAPE.racks * SHAPE.hosts_per_rack, count)
    return [
        (float(at), f"r{host // SHAPE.hosts_per_rack}h{host % SHAPE.hosts_per_rack}", SHAPE.block)
        for at, host in zip(times, hosts, strict=True)
    ]


def _reads(random: numpy.random.Generator, start: float, end: float, files: int) -> list[tuple[object, ...]]:
    count = max(round(READS_PER_S * (end - start)), 1)
    times = numpy.sort(random.uniform(start, end, count)).round(3)
    chosen, draws = random.integers(0, files, count), random.random(count).round(6)
    return [(float(at), int(file), float(draw)) for at, file, draw in zip(times, chosen, draws, strict=True)]
