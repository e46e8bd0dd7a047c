"""Pairs of runs: under each seed a run by HDFS's policy and one by `ccp`, simulated and real."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from leeward._files import atomic_file
from leeward_reproduce.hdfs import HdfsCluster, up
from leeward_reproduce.hotspots.real import scenario
from leeward_reproduce.hotspots.real.measures import Measures, measured, simulated
from leeward_reproduce.hotspots.real.run import run

RESULT = "real.json"


@dataclass(frozen=True)
class Pair:
    """Runs under a seed, by the policies of HDFS: `default` and `ccp`."""

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
    return ("default", "ccp") if seed % 2 else ("ccp", "default")


def measure(
    cluster: HdfsCluster, file: Path, seed: int, progress: Callable[[float], object]
) -> dict[str, Measures]:
    """Runs a scenario on a cluster under both policies."""
    plan = scenario.read(file)
    addresses = {host.address: host.name for host in cluster.network.hosts}
    result = {}
    for at, policy in enumerate(_order(seed)):
        if cluster.policy != policy:
            cluster.use(policy)

        def share(part: float, at: int = at) -> None:
            progress((at + part) / 2)

        outcome = run(cluster, plan, f"seed-{seed}-{policy}", share)
        result[policy] = measured(outcome, file.parent / "cluster.yaml", addresses, cluster.racks)
    return {policy: result[policy] for policy in scenario.POLICIES}
