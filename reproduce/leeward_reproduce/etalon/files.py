"""Section 6: files of DFSIO under the placement of HDFS, reHDFS and Leeward; measurements of a run.

As in the testbed, one data node of each rack runs eight mappers on a port that the paper does not limit. The
port has 40 Gb/s, which are 800 Gb/s because the testbed divides its times by 20. Solstice reads the demand
from queues, and counts entries of at least 8 kB.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy

from leeward import packets
from leeward_reproduce.etalon.experiments import BIG, EARLY, HORIZON, JITTER, columns

POLICIES = {"HDFS": "uniform", "reHDFS": "rehdfs", "leeward": "leeward:circuit_turn=2s"}
"""Policies by the paper's names. The paper's reHDFS is meant to change racks every few seconds; so does
`leeward`."""
KINDS = ("", "+Resize", "+reTCP")
FILES, RACKS = 64, 8
GIB = 2.0**30
FULL = 99 * 2**20
"""The paper counts writes of more bytes than this: blocks of 128 MiB and not the rest of a file."""
_ENOUGH = "20s"
"""Maximum length of a run without a horizon: all files are written by then."""
IN_JOB = "leeward:circuit_turn=400ms"
"""Policy whose second turn begins 300 ms after the files: it sees an idle network for 100 ms before them."""
LONG, LONG_TURN = "4GiB", "leeward:circuit_turn=2s"
"""A job that lasts for several turns."""
BESIDE_SEEDS, LONG_SEEDS = 3, 1
"""Number of seeds of the comparison with reHDFS, and number of seeds of the long job, of which each run takes
half a minute."""


@dataclass(frozen=True)
class WriteRun:
    """A run. Times of writes of full blocks and of the job are in ms."""

    writes: Any
    job: float
    gbps: float
    """As in the paper's scripts: DFSIO's rate of a file times the files, halved; a Gb has 2^30 bits."""
    packet_gib: float
    circuit_gib: float
    racks: float
    """Average number of other racks that hold copies of a rack's blocks."""
    worst: float
    """Percent of a rack's copies that are in the other rack with most of them; average over racks."""


@lru_cache(maxsize=512)
def run_writes(seed: int, horizon: str, policy: str, kind: str, size: str = "400MiB") -> WriteRun:
    """Simulates `writes_scenario`."""
    return measure_writes(packets.read(writes_scenario(seed, horizon, policy, kind, size)).run())


def writes_scenario(seed: int, horizon: str, policy: str, kind: str, size: str = "400MiB") -> dict[str, Any]:
    """Files of `size` from 64 mappers.

    Args:
        seed: Seed of the run.
        horizon: Maximum length of the run; with `HORIZON`, the default, it ends when all files are written.
        policy: Policy for replicas.
        kind: One of `KINDS`.
        size: Size of each file.
    """
    scenario: dict[str, Any] = {
        "network": {"hosts_per_rack": 1, "nic": "800Gbps", "jitter": JITTER},
        "scheduler": {"name": "solstice-etalon:prepare=element:small=8kB", "demand": "voq"},
        "workload": {"dfsio": {"mappers": FILES, "bytes": size, "copies": policy}},
        "horizon": _ENOUGH if horizon == HORIZON else horizon,
        "seed": seed,
    }
    if kind:
        scenario["resize"] = {"small": 16, "big": BIG, "tau": "1000us"}
    if kind == "+reTCP":
        scenario["tcp"] = {"control": "retcp", "ece": EARLY}
    return scenario


def measure_writes(run: packets.PacketRun) -> WriteRun:
    """Measures a run of `writes_scenario`."""
    blocks, totals = columns(run.copies()), run.totals()
    ended = numpy.where(numpy.isnan(blocks["finished_s"]), totals["ended_s"], blocks["finished_s"])
    full = blocks["bytes"] > FULL
    files = numpy.array([ended[blocks["file"] == file].max() for file in range(FILES)])
    of_rack = numpy.zeros((RACKS, RACKS))
    numpy.add.at(of_rack, (blocks["writer_rack"], blocks["copy_rack"]), 1)
    return WriteRun(
        1e3 * (ended - blocks["began_s"])[full],
        1e3 * float(files.max()),
        float(8 * blocks["bytes"].sum() / GIB / files.mean() / 2),
        totals["packet_bytes"] / GIB,
        totals["circuit_bytes"] / GIB,
        float((of_rack > 0).sum(axis=1).mean()),
        float((100 * of_rack.max(axis=1) / of_rack.sum(axis=1)).mean()),
    )


def systems(seed: int, horizon: str) -> dict[str, WriteRun]:
    """The paper's six systems."""
    return {
        name + kind: run_writes(seed, horizon, POLICIES[name], kind)
        for name in ("HDFS", "reHDFS")
        for kind in KINDS
    }


def compare_leeward(seed: int, horizon: str) -> dict[str, dict[str, WriteRun]]:
    """Leeward and reHDFS on the paper's job, on that job with a turn in it, and on a job of several turns."""

    def runs(policies: dict[str, str], max_seed: int, size: str = "400MiB") -> dict[str, WriteRun]:
        return {
            name + kind: run_writes(seed, horizon, policy, kind, size)
            for name, policy in policies.items()
            for kind in KINDS
            if seed <= max_seed
        }

    rehdfs = {"reHDFS": POLICIES["reHDFS"]}
    return {
        "job": runs({**rehdfs, "leeward": POLICIES["leeward"]}, BESIDE_SEEDS),
        "turn": runs({"leeward": IN_JOB}, BESIDE_SEEDS),
        "several": runs({**rehdfs, "leeward": LONG_TURN}, LONG_SEEDS, LONG),
    }
