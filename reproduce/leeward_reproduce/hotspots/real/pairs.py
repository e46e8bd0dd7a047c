"""Pairs of runs: under each seed a run by HDFS's policy and one by `ccp`, simulated and real."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from leeward_reproduce.hdfs import ObservedCluster
from leeward_reproduce.hdfs.usage import check_decisions
from leeward_reproduce.hotspots.real import scenario
from leeward_reproduce.hotspots.real.measures import Measures, measure, simulate_pair
from leeward_reproduce.hotspots.real.run import run
from leeward_reproduce.real import bench
from leeward_reproduce.real.bench import Advance, Task
from leeward_reproduce.real.rows import Pair


def make_pairs(folder: Path, horizon: str, seeds: Sequence[int], advance: Advance) -> list[Pair[Measures]]:
    """Makes the pairs of seeds, or reads them.

    Args:
        folder: Folder for scenarios and results.
        horizon: Length of runs.
        seeds: The seeds.
        advance: Called with the share of completed runs.

    Raises:
        InputError: The folder has a pair of another scenario.
        OSError: A run is absent and the cluster cannot run on this machine, or a run failed.
    """
    files = [scenario.write(folder / f"seed-{seed}", seed, horizon) for seed in seeds]
    tasks = [
        Task(file.parent, scenario.SHAPE, _order(seed), partial(_measure, file, seed))
        for seed, file in zip(seeds, files, strict=True)
    ]
    real = bench.perform(tasks, Measures, advance)
    return [Pair(seed, simulate_pair(file), one) for seed, file, one in zip(seeds, files, real, strict=True)]


def _order(seed: int) -> tuple[str, str]:
    """Policies in the order of their runs, which alternates so that slow changes of a machine cancel out."""
    return ("default", "ccp") if seed % 2 else ("ccp", "default")


def _measure(file: Path, seed: int, cluster: ObservedCluster, policy: str, advance: Advance) -> Measures:
    """Runs a scenario on a cluster.

    Raises:
        OSError: The run failed, or HDFS's default policy placed the blocks of `ccp`.
    """
    name = f"seed-{seed}-{policy}"
    chunks = run(cluster, scenario.read(file), name, advance)
    if policy != "default":
        check_decisions(name, chunks.outcome.decisions)
    addresses = {host.address: host.name for host in cluster.network.hosts}
    return measure(chunks, file.parent / "cluster.yaml", addresses, cluster.racks)
