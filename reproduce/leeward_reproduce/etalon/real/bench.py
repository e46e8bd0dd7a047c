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
BLOCK = 128 << 20
"""Bytes of a full block, as in the paper and in HDFS."""
DILATIONS = (640, 960, 1280, 1920)
"""Dilations that a system tries until its packets are in time. Programs of Java take more of the processors'
time for a byte than the lab's own writer, which needs half of the first three."""
LATE = 0.1
"""Largest share of a run's views in which packets are later than the bound of a lab, and of its time without
views."""
RESULT, REJECTED = "real.json", "rejected.json"
"""Files of a system: its run, and the reasons for which runs were rejected, by dilation."""
_NAMES = [name + kind for name in SYSTEMS for kind in KINDS]


class Bench:
    """Runs systems that a folder does not have. The systems of a kind share a lab, one after another."""

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
            OSError: HDFS cannot run in a lab on this machine.
        """
        for kind in KINDS:
            for dilation in DILATIONS:
                absent = [name for name in SYSTEMS if self._is_open(name + kind, dilation)]
                if absent:
                    self._measure(kind, absent, dilation)
        self._advance(1.0)
        return {name: self._both(name) for name in _NAMES}

    def _measure(self, kind: str, names: Sequence[str], dilation: int) -> None:
        """Runs systems of a kind under a dilation."""
        mappers, size = FILES // files.RACKS, read_bytes("size", self._size)
        scenario = scenario_of("HDFS", kind, self._size)
        with circuits.up(scenario, dilation, BLOCK, SYSTEMS[names[0]]) as cluster:
            for name in names:
                if cluster.policy != SYSTEMS[name]:
                    cluster.use(SYSTEMS[name])
                done = sum((self._folder / one / RESULT).is_file() for one in _NAMES)

                def progress(share: float, done: int = done) -> None:
                    self._advance((done + share) / len(_NAMES))

                job = dfsio.run(cluster, mappers, size, name, read_seconds("bound", BOUND), progress)
                run, note = judge(job, cluster.addresses, dilation, cluster.circuits.notes)
                if run is None:
                    self._reject(name + kind, dilation, note)
                else:
                    self._store(name + kind, run, note)

    def _both(self, name: str) -> Both[WriteRun]:
        base, kind = next((base, name.removeprefix(base)) for base in SYSTEMS if name.startswith(base))
        simulated = files.measure_writes(packets.simulate(scenario_of(base, kind, self._size)))
        rejected = list(reversed(self._rejected(name).values()))
        path = self._folder / name / RESULT
        if not path.is_file():
            return Both(simulated, None, {}, "; ".join(rejected))
        content = json.loads(path.read_text(encoding="utf-8"))
        writes = numpy.array(content["run"].pop("writes"))
        note = "; ".join([content["note"], *rejected])
        return Both(simulated, WriteRun(writes=writes, **content["run"]), {}, note)

    def _is_open(self, name: str, dilation: int) -> bool:
        """True if a system has no run yet, and none was rejected under a dilation."""
        has_run = (self._folder / name / RESULT).is_file()
        return not has_run and str(dilation) not in self._rejected(name)

    def _rejected(self, name: str) -> dict[str, str]:
        path = self._folder / name / REJECTED
        if not path.is_file():
            return {}
        rejected: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        return rejected

    def _store(self, name: str, run: WriteRun, note: str) -> None:
        content = asdict(run) | {"writes": [float(one) for one in run.writes]}
        self._write(name, RESULT, {"run": content, "note": note})

    def _reject(self, name: str, dilation: int, note: str) -> None:
        self._write(name, REJECTED, self._rejected(name) | {str(dilation): note})

    def _write(self, name: str, file: str, content: Mapping[str, Any]) -> None:
        path = self._folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")


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
