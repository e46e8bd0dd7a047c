"""Pairs of runs: under each seed a run by HDFS's policy and one by `ccp`, simulated and real."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward_reproduce.hdfs import HdfsCluster, up
from leeward_reproduce.hdfs.usage import check_decisions
from leeward_reproduce.hotspots.real import scenario
from leeward_reproduce.hotspots.real.measures import Measures, measured, simulated
from leeward_reproduce.hotspots.real.run import run
from leeward_reproduce.real import results


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
            InputError: The folder has a pair of another scenario.
            OSError: The cluster cannot run on this machine.
        """
        files = {seed: self._write(seed) for seed in seeds}
        real = {seed: results.read(file.parent, Measures) for seed, file in files.items()}
        absent = [seed for seed, measures in real.items() if measures is None]
        done = len(seeds) - len(absent)
        advance(done / len(seeds))
        if absent:
            with up(scenario.SHAPE, _order(absent[0])[0]) as cluster:
                for seed in absent:

                    def share(part: float, done: int = done) -> None:
                        advance((done + part) / len(seeds))

                    real[seed] = measure(cluster, files[seed], seed, share)
                    results.write(files[seed].parent, real[seed])
                    done += 1
        return [Pair(seed, simulated(files[seed]), real[seed]) for seed in seeds]

    def _write(self, seed: int) -> Path:
        return scenario.write(self._folder / f"seed-{seed}", seed, self._horizon)


def _order(seed: int) -> tuple[str, str]:
    """Policies in the order of their runs, which alternates so that slow changes of a machine cancel out."""
    return ("default", "ccp") if seed % 2 else ("ccp", "default")


def measure(
    cluster: HdfsCluster, file: Path, seed: int, progress: Callable[[float], object]
) -> dict[str, Measures]:
    """Runs a scenario on a cluster under both policies.

    Raises:
        OSError: A run failed, or HDFS's default policy placed the blocks of `ccp`.
    """
    plan = scenario.read(file)
    addresses = {host.address: host.name for host in cluster.network.hosts}
    result = {}
    for at, policy in enumerate(_order(seed)):
        if cluster.policy != policy:
            cluster.use(policy)

        def share(part: float, at: int = at) -> None:
            progress((at + part) / 2)

        name = f"seed-{seed}-{policy}"
        outcome = run(cluster, plan, name, share)
        if policy != "default":
            check_decisions(name, outcome.outcome.decisions)
        result[policy] = measured(outcome, file.parent / "cluster.yaml", addresses, cluster.racks)
    return {policy: result[policy] for policy in scenario.POLICIES}
