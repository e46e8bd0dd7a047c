"""Pairs of runs: under each seed a run by HDFS's policy and one by `sinbad`, simulated and real."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy

from leeward import simulate
from leeward._arrays import Floats
from leeward._files import atomic_file
from leeward_reproduce.hdfs import HdfsCluster, up
from leeward_reproduce.hdfs.load import run
from leeward_reproduce.hdfs.outcome import Outcome, median_cv
from leeward_reproduce.sinbad.real import scenario

WAYS = ("downlink", "uplink")
RESULT = "real.json"


@dataclass(frozen=True)
class Measures:
    """Measurements of a run."""

    blocks: list[int]
    """Blocks of each file."""
    seconds: list[float | None]
    """Time of each file; None if it was not complete at the end of a simulation."""
    cv: dict[str, float]
    """Median Cv of the links of racks, by direction."""


@dataclass(frozen=True)
class Pair:
    """Runs under a seed, by the policies of HDFS: `default` and `sinbad`."""

    seed: int
    simulator: dict[str, Measures]
    real: dict[str, Measures]


class Bench:
    """Runs pairs on a cluster, which starts with the first one that a folder does not have."""

    def __init__(self, folder: Path, horizon: str) -> None:
        """Takes a folder for scenarios and results."""
        self._folder = folder
        self._horizon = horizon

    def pairs(self, seeds: Sequence[int], advance: Callable[[float], object]) -> list[Pair]:
        """Makes the pairs of seeds, or reads them.

        Args:
            seeds: The seeds.
            advance: Called with the share of completed runs.

        Raises:
            OSError: The cluster cannot run on this machine.
        """
        files = {seed: self._write(seed) for seed in seeds}
        absent = [seed for seed in seeds if not self._result(seed).is_file()]
        done = len(seeds) - len(absent)
        advance(done / len(seeds))
        if absent:
            with up(scenario.SHAPE, _order(absent[0])[0]) as cluster:
                for seed in absent:

                    def share(part: float, done: int = done) -> None:
                        advance((done + part) / len(seeds))

                    measures = measure(cluster, files[seed], seed, share)
                    content = {name: asdict(one) for name, one in measures.items()}
                    with atomic_file(self._result(seed)) as temporary:
                        temporary.write_text(json.dumps(content), encoding="utf-8")
                    done += 1
        return [Pair(seed, simulated(files[seed]), self._read(seed)) for seed in seeds]

    def _result(self, seed: int) -> Path:
        return self._folder / f"seed-{seed}" / RESULT

    def _write(self, seed: int) -> Path:
        return scenario.write(self._folder / f"seed-{seed}", seed, self._horizon)

    def _read(self, seed: int) -> dict[str, Measures]:
        content = json.loads(self._result(seed).read_text(encoding="utf-8"))
        return {name: Measures(**one) for name, one in content.items()}


def _order(seed: int) -> tuple[str, str]:
    """Policies in the order of their runs, which alternates so that slow changes of a machine cancel out."""
    return ("default", "sinbad") if seed % 2 else ("sinbad", "default")


def measure(
    cluster: HdfsCluster, file: Path, seed: int, progress: Callable[[float], object]
) -> dict[str, Measures]:
    """Runs a scenario on a cluster under both policies."""
    load = scenario.read(file)
    result = {}
    for at, policy in enumerate(_order(seed)):
        if cluster.policy != policy:
            cluster.use(policy)

        def share(part: float, at: int = at) -> None:
            progress((at + part) / 2)

        result[policy] = _measures(run(cluster, load, f"seed-{seed}-{policy}", share))
    return {policy: result[policy] for policy in scenario.POLICIES}


def _measures(outcome: Outcome) -> Measures:
    before = round(scenario.WARMUP_S / scenario.STEP_S)
    cv = {way: median_cv(outcome.loads(way, scenario.STEP_S)[before:]) for way in WAYS}
    blocks = [one.bytes // scenario.SHAPE.block for one in outcome.files]
    return Measures(blocks, [one.seconds for one in outcome.files], cv)


def simulated(file: Path) -> dict[str, Measures]:
    """Runs a scenario in the simulator under both policies."""
    runs = simulate(file, jobs=1)
    result = {}
    for policy, one in zip(scenario.POLICIES, runs, strict=True):
        files = one.files()
        starts, ends = files["write_start_s"].to_pylist(), files["finished_s"].to_pylist()
        seconds = [
            None if start is None or end is None else end - start
            for start, end in zip(starts, ends, strict=True)
        ]
        blocks = [size // scenario.SHAPE.block for size in files["bytes"].to_pylist()]
        links = one.links()
        cv = {way: median_cv(_loads(links, f"rack_{way}")) for way in WAYS}
        result[policy] = Measures(blocks, seconds, cv)
    return result


def _loads(links: Any, kind: str) -> Floats:
    """Loads of links of a kind, by interval and link."""
    rows = [row for row in links.to_pylist() if row["kind"] == kind]
    count = len({row["link"] for row in rows})
    loads: Floats = numpy.array([row["load_bps"] for row in rows]).reshape(-1, count)
    return loads
