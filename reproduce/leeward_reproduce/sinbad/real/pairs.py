"""Pairs of runs: under each seed and case a run by HDFS's policy and one by `sinbad`, simulated and real."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from leeward import simulate
from leeward._arrays import Floats
from leeward_reproduce.hdfs import ObservedCluster
from leeward_reproduce.hdfs.load import run
from leeward_reproduce.hdfs.outcome import Outcome, median_cv
from leeward_reproduce.hdfs.usage import check_decisions
from leeward_reproduce.real import bench
from leeward_reproduce.real.bench import Advance, Task
from leeward_reproduce.real.results import decisions_of
from leeward_reproduce.real.rows import Pair
from leeward_reproduce.sinbad.real import scenario
from leeward_reproduce.sinbad.real.cases import CACHE, CASES, DEFAULT, SHAPE, Case

WAYS = {
    "downlink": "rack_downlink",
    "uplink": "rack_uplink",
    "ingress": "host_ingress",
    "egress": "host_egress",
}
"""Directions of the links of racks and hosts, with the simulator's names of their kinds."""
_IDLE = 0.01
"""Mean utilization up to which links are idle: they carry heartbeats, reports and acknowledgements, which are
even, and which the simulator does not have."""
_IDLE_BPS = {
    way: _IDLE * (scenario.LINK_BPS if kind.startswith("rack") else scenario.NIC_BPS)
    for way, kind in WAYS.items()
}


@dataclass(frozen=True)
class Measures:
    """Measurements of a run."""

    blocks: list[int]
    """Blocks of each file."""
    seconds: list[float | None]
    """Time of each file; None if it was not complete at the end of a simulation."""
    cv: dict[str, float]
    """Median Cv of the links of racks and of hosts, by direction, over intervals with load."""
    stored: dict[str, int]
    """Bytes that each host stores at the end."""
    evicted: int = 0
    """Files that a full cache deleted; none in the simulator."""
    decisions: dict[str, int] = field(default_factory=dict)
    """Number of decisions of the policy by reason; none under HDFS's own policy."""
    busy: float | None = None
    """Share of the processors' time in use; None in the simulator."""


Runs = Mapping[str, Measures]
"""Measurements by policy."""


Results = Mapping[Case, Sequence[Pair[Measures]]]
"""Pairs of each case, seed by seed."""


def make_pairs(
    folder: Path, horizon: str, cases: Sequence[Case], seeds: Sequence[int], advance: Advance
) -> dict[Case, list[Pair[Measures]]]:
    """Makes the pairs of cases and seeds, or reads them.

    Args:
        folder: Folder for scenarios and results.
        horizon: Length of runs.
        cases: The cases.
        seeds: The seeds.
        advance: Called with the share of completed runs.

    Raises:
        InputError: The folder has a pair of another scenario.
        OSError: A run is absent and the cluster cannot run on this machine, or a run failed.
    """
    files = {
        (case, seed): scenario.write(folder / f"seed-{seed}" / case.name, seed, horizon, case)
        for seed in seeds
        for case in cases
    }
    tasks = [
        Task(file.parent, case.shape, order(case, seed), partial(_measure, file, case, seed), case.properties)
        for (case, seed), file in files.items()
    ]
    real = dict(zip(files, bench.perform(tasks, Measures, advance), strict=True))
    return {
        case: [Pair(seed, simulate_pair(files[case, seed], case), real[case, seed]) for seed in seeds]
        for case in cases
    }


def order(case: Case, seed: int) -> Sequence[str]:
    """Policies in the order of their runs, which alternates so that slow changes of a machine cancel out.

    It alternates over seeds and over cases, so that a case often begins with the policy of the last run.
    """
    is_even = (seed + CASES.index(case)) % 2 == 0
    return case.policies[::-1] if is_even else case.policies


def _measure(
    file: Path, case: Case, seed: int, cluster: ObservedCluster, policy: str, advance: Advance
) -> Measures:
    """Runs a scenario on a cluster.

    Raises:
        OSError: The run failed, or HDFS's default policy placed its blocks although reports arrived.
    """
    name = f"seed-{seed}-{case.name}-{policy}"
    with _reports(cluster, case, seed):
        outcome = run(cluster, scenario.read(file), name, advance, CACHE if case.in_memory else None)
    if policy != DEFAULT and not case.is_impaired:
        check_decisions(name, outcome.decisions)
    return measure(outcome)


def _reports(cluster: ObservedCluster, case: Case, seed: int) -> AbstractContextManager[None]:
    if case.is_impaired:
        return cluster.reports_impaired(case.delay_s, case.loss, seed)
    return nullcontext()


def measure(outcome: Outcome) -> Measures:
    """Measures a run of the cluster."""
    before = round(scenario.WARMUP_S / scenario.STEP_S)
    cv = {way: median_cv(outcome.loads(way, scenario.STEP_S)[before:], _IDLE_BPS[way]) for way in WAYS}
    blocks = [one.bytes // SHAPE.block for one in outcome.files]
    return Measures(
        blocks,
        [one.seconds for one in outcome.files],
        cv,
        outcome.stored,
        outcome.evicted,
        outcome.decisions,
        outcome.busy,
    )


def simulate_pair(file: Path, case: Case) -> Runs:
    """Runs a scenario in the simulator under the policies of its case."""
    runs = simulate(file, jobs=1)
    result = {}
    for policy, one in zip(case.policies, runs, strict=True):
        files = one.files()
        starts, ends = files["write_start_s"].to_pylist(), files["finished_s"].to_pylist()
        seconds = [
            None if start is None or end is None else end - start
            for start, end in zip(starts, ends, strict=True)
        ]
        blocks = [size // SHAPE.block for size in files["bytes"].to_pylist()]
        balance = one.balance()
        cv = {way: _median(balance, kind, _IDLE_BPS[way]) for way, kind in WAYS.items()}
        hosts = one.hosts()
        stored = dict(zip(hosts["host"].to_pylist(), hosts["bytes"].to_pylist(), strict=True))
        decisions = {} if policy == DEFAULT else decisions_of(one)
        result[policy] = Measures(blocks, seconds, cv, stored, decisions=decisions)
    return result


def _median(balance: Any, kind: str, idle_bps: float) -> float:
    """Median Cv of the links of a kind over intervals with load; NaN without any."""
    rows = [row for row in balance.to_pylist() if row["kind"] == kind and row["mean_bps"] > idle_bps]
    values: Floats = numpy.array([row["cv"] for row in rows])
    return float(numpy.median(values)) if len(values) else float("nan")
