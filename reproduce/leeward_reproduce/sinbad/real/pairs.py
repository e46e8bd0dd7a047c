"""Pairs of runs: under each seed and case a run by HDFS's policy and one by `sinbad`, simulated and real."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

from leeward import simulate
from leeward._arrays import Floats
from leeward_reproduce.hdfs import HdfsCluster, up
from leeward_reproduce.hdfs.load import run
from leeward_reproduce.hdfs.outcome import Outcome, median_cv
from leeward_reproduce.hdfs.usage import check_decisions
from leeward_reproduce.real import results
from leeward_reproduce.real.results import decisions_of
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


@dataclass(frozen=True)
class Pair:
    """Runs under a seed in a case."""

    seed: int
    simulator: Runs
    real: Runs


Results = Mapping[Case, Sequence[Pair]]
"""Pairs of each case, seed by seed."""


class Bench:
    """Runs pairs on clusters, which start with the first pair that a folder does not have."""

    def __init__(self, folder: Path, horizon: str) -> None:
        """Takes a folder for scenarios and results."""
        self._folder = folder
        self._horizon = horizon

    def results(
        self, cases: Sequence[Case], seeds: Sequence[int], advance: Callable[[float], object]
    ) -> dict[Case, list[Pair]]:
        """Makes the pairs of cases and seeds, or reads them.

        Args:
            cases: The cases.
            seeds: The seeds.
            advance: Called with the share of completed runs.

        Raises:
            InputError: The folder has a pair of another scenario.
            OSError: The cluster cannot run on this machine.
        """
        files = {(case, seed): self._write(case, seed) for seed in seeds for case in cases}
        real = {key: results.read(file.parent, Measures) for key, file in files.items()}
        absent = [key for key, measures in real.items() if measures is None]
        runs = sum(len(case.policies) for case, _ in files)
        done = runs - sum(len(case.policies) for case, _ in absent)
        advance(done / runs)
        for shape in dict.fromkeys(case.shape for case, _ in absent):
            mine = [(case, seed) for case, seed in absent if case.shape == shape]
            with up(shape, order(*mine[0])[0]) as cluster:
                for case, seed in mine:

                    def share(part: float, done: int = done, weight: int = len(case.policies)) -> None:
                        advance((done + weight * part) / runs)

                    file = files[case, seed]
                    real[case, seed] = measure(cluster, file, case, seed, share)
                    results.write(file.parent, real[case, seed])
                    done += len(case.policies)
        return {
            case: [Pair(seed, simulated(files[case, seed], case), real[case, seed]) for seed in seeds]
            for case in cases
        }

    def _write(self, case: Case, seed: int) -> Path:
        return scenario.write(self._folder / f"seed-{seed}" / case.name, seed, self._horizon, case)


def order(case: Case, seed: int) -> Sequence[str]:
    """Policies in the order of their runs, which alternates so that slow changes of a machine cancel out.

    It alternates over seeds and over cases, so that a case often begins with the policy of the last run.
    """
    is_even = (seed + CASES.index(case)) % 2 == 0
    return case.policies[::-1] if is_even else case.policies


def measure(
    cluster: HdfsCluster, file: Path, case: Case, seed: int, progress: Callable[[float], object]
) -> Runs:
    """Runs a scenario on a cluster under the policies of its case.

    Raises:
        OSError: A run failed, or HDFS's default policy placed its blocks although reports arrived.
    """
    load = scenario.read(file)
    cache = CACHE if case.in_memory else None
    result = {}
    for at, policy in enumerate(order(case, seed)):
        if cluster.policy != policy:
            cluster.use(policy)

        def share(part: float, at: int = at) -> None:
            progress((at + part) / len(case.policies))

        name = f"seed-{seed}-{case.name}-{policy}"
        with _reports(cluster, case, seed):
            outcome = run(cluster, load, name, share, cache)
        if policy != DEFAULT and not case.is_impaired:
            check_decisions(name, outcome.decisions)
        result[policy] = _measures(outcome)
    return {policy: result[policy] for policy in case.policies}


def _reports(cluster: HdfsCluster, case: Case, seed: int) -> AbstractContextManager[None]:
    if case.is_impaired:
        return cluster.reports_impaired(case.delay_s, case.loss, seed)
    return nullcontext()


def _measures(outcome: Outcome) -> Measures:
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


def simulated(file: Path, case: Case) -> Runs:
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
