"""Runs the paper's six systems in the simulator, and with HDFS in a lab with circuits."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy

from leeward import packets
from leeward._files import atomic_file
from leeward._quantities import read_bytes, read_seconds
from leeward.lab.runs import BOUND
from leeward_reproduce.etalon import experiments, files
from leeward_reproduce.etalon.files import FILES, FULL, GIB, KINDS, WriteRun
from leeward_reproduce.etalon.kernels.bench import LINUX, Both
from leeward_reproduce.hdfs import circuits, dfsio
from leeward_reproduce.hdfs.dfsio import Job
from leeward_reproduce.hdfs.machine import rack_number

SEED = 1
SYSTEMS = {"HDFS": "default", "reHDFS": "rehdfs"}
"""Policies of HDFS by the paper's names."""
ORDER = ("reHDFS", "HDFS")
"""Systems in the order of their runs. reHDFS has shorter runs and more late packets, so it is the first to
show that a dilation is too small."""
BLOCK = 128 << 20
"""Bytes of a full block, as in the paper and in HDFS."""
DILATIONS = (640, 960, 1280, 1920)
"""Dilations that a kind of network tries until the packets of both systems are in time. Programs of Java take
more of the processors' time for a byte than the lab's own writer, which needs half of the first three."""
LATE = 0.1
"""Largest share of a run's views in which packets are later than the bound of a lab, and of its time without
views."""
RESULT, REJECTED = "real.json", "rejected.json"
"""Files of a kind: runs of both systems, and the reason for which each dilation was rejected."""


class Bench:
    """Runs the kinds of networks that a folder does not have.

    Both systems of a kind run in one lab. Programs and waits of HDFS take less virtual time under a larger
    dilation, so runs of a kind count only if both systems are in time under the same one.
    """

    def __init__(self, folder: Path, size: str, advance: Callable[[float], object]) -> None:
        """Makes a bench.

        Args:
            folder: Folder of results.
            size: Size of each file, in MiB.
            advance: Called with the share of runs.
        """
        self._folder = folder
        self._size = size
        self._advance = advance

    def runs(self) -> dict[str, Both[WriteRun]]:
        """The paper's systems by name, in its order.

        Raises:
            OSError: A run is absent, and HDFS cannot run in a lab on this machine.
        """
        for at, kind in enumerate(KINDS):
            for dilation in DILATIONS:
                if self._is_open(kind, dilation):
                    self._measure(kind, dilation, at / len(KINDS))
        self._advance(1.0)
        return {name + kind: self._both(name, kind) for name in SYSTEMS for kind in KINDS}

    def _measure(self, kind: str, dilation: int, done: float) -> None:
        """Runs the systems of a kind under a dilation, until one is rejected.

        Args:
            kind: The kind.
            dilation: The dilation.
            done: Share of the runs that are complete.
        """
        mappers, size = FILES // files.RACKS, read_bytes("size", self._size)
        scenario = scenario_of("HDFS", kind, self._size)
        accepted: dict[str, tuple[WriteRun, str]] = {}
        with circuits.up(scenario, dilation, BLOCK, SYSTEMS[ORDER[0]]) as cluster:
            for at, name in enumerate(ORDER):
                if cluster.policy != SYSTEMS[name]:
                    cluster.use(SYSTEMS[name])

                def progress(share: float, at: int = at) -> None:
                    self._advance(done + (at + share) / len(ORDER) / len(KINDS))

                job = dfsio.run(cluster, mappers, size, name, read_seconds("bound", BOUND), progress)
                run, note = judge(job, cluster.addresses, dilation, cluster.circuits.notes)
                if run is None:
                    self._reject(kind, dilation, f"{name + kind} {note}")
                    return
                accepted[name] = run, note
        self._store(kind, accepted)

    def _both(self, name: str, kind: str) -> Both[WriteRun]:
        simulated = files.measure_writes(packets.simulate(scenario_of(name, kind, self._size)))
        rejected = list(reversed(self._read(kind, REJECTED).values()))
        stored = self._read(kind, RESULT).get(name)
        if stored is None:
            return Both(simulated, None, {}, "; ".join(rejected))
        run = {**stored["run"], "writes": numpy.array(stored["run"]["writes"])}
        return Both(simulated, WriteRun(**run), {}, "; ".join([stored["note"], *rejected]))

    def _is_open(self, kind: str, dilation: int) -> bool:
        """True if a kind has no runs yet, and a dilation was not rejected."""
        return not self._read(kind, RESULT) and str(dilation) not in self._read(kind, REJECTED)

    def _store(self, kind: str, runs: Mapping[str, tuple[WriteRun, str]]) -> None:
        content = {
            name: {"run": asdict(run) | {"writes": [float(one) for one in run.writes]}, "note": note}
            for name, (run, note) in runs.items()
        }
        self._write(kind, RESULT, content)

    def _reject(self, kind: str, dilation: int, note: str) -> None:
        self._write(kind, REJECTED, self._read(kind, REJECTED) | {str(dilation): note})

    def _read(self, kind: str, file: str) -> dict[str, Any]:
        path = self._path(kind, file)
        if not path.is_file():
            return {}
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def _write(self, kind: str, file: str, content: Mapping[str, Any]) -> None:
        path = self._path(kind, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")

    def _path(self, kind: str, file: str) -> Path:
        # An earlier version had a folder for each system, whose runs may have different dilations.
        return self._folder / f"both{kind}" / file


def scenario_of(name: str, kind: str, size: str) -> dict[str, Any]:
    """Scenario of a system, with Linux's rules of TCP."""
    scenario = files.writes_scenario(SEED, experiments.HORIZON, files.POLICIES[name], kind, size)
    return {**scenario, "tcp": {**scenario.get("tcp", {}), **LINUX}}


def judge(
    job: Job, addresses: Mapping[str, str], dilation: int, notes: Sequence[str]
) -> tuple[WriteRun | None, str]:
    """The run of a job, or None if its packets were too late or lost; and a note."""
    carried = job.carried
    late = "no packets" if carried.late_s is None else f"packets late by {1e6 * carried.late_s:.1f} us at p99"
    state = f"dilation {dilation}: {late}, processors {carried.busy:.0%} busy"
    if carried.late_s is None:
        return None, f"rejected: {state}"
    if carried.missed_share > LATE:
        return None, f"rejected: {state}, and {carried.missed_share:.0%} of the time without views"
    if carried.late_share > LATE:
        return None, f"rejected: {state}, and {carried.late_share:.0%} of the time over {BOUND}"
    if carried.lost_packets:
        return None, f"rejected: {state}, and {carried.lost_packets} packets lost outside the switch"
    return measure(job, addresses, dilation), "; ".join([state, *notes])


def measure(job: Job, addresses: Mapping[str, str], dilation: int) -> WriteRun:
    """Measures a job in virtual time, as `files.measure_writes` does in the simulator.

    Args:
        job: The job.
        addresses: Names of hosts by their addresses.
        dilation: Real seconds for each virtual second.
    """
    total = sum(one.bytes for one in job.writes)
    began = min(one.began_s for one in job.writes)
    ended = max(one.ended_s for one in job.writes)
    of_rack = numpy.zeros((files.RACKS, files.RACKS))
    for copy in job.copies:
        of_rack[rack_number(addresses[copy.source]), rack_number(addresses[copy.destination])] += 1
    sums = of_rack.sum(axis=1)
    with_copies = of_rack[sums > 0]
    return WriteRun(
        1e3 * numpy.array([one.seconds for one in job.writes if one.bytes > FULL]) / dilation,
        1e3 * (ended - began) / dilation,
        8 * total / GIB / (float(numpy.mean(job.files)) / dilation) / 2,
        job.carried.packet_bytes / GIB,
        job.carried.circuit_bytes / GIB,
        float((with_copies > 0).sum(axis=1).mean()),
        float((100 * with_copies.max(axis=1) / with_copies.sum(axis=1)).mean()),
    )
