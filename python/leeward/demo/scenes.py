"""The two scenes of `leeward demo`, simulated: a scheduler's tasks, and the blocks of a file system.

Each scene has a variant that favours Leeward less: a busier network for tasks, slower disks for blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy

from leeward._native import Run, Scenario
from leeward.data import data_folder
from leeward.demo.held_back import HeldBack, held_back
from leeward.sweep.statistics import interval

Simulate = Callable[[Scenario, Sequence[int]], Sequence[Run]]
"""Runs all policies of a scenario under seeds."""
FOLDER = Path(str(files("leeward.demo")))
SEEDS = (1, 2, 3, 4, 5)
"""Seeds of the tasks."""
NETWORK, BUSIER_NETWORK = 0.45, 0.6
"""Average load that tasks send out of racks, as a share of the capacity of all uplinks.

The second is the load of the reproduction of Hotspots.
"""


@dataclass(frozen=True)
class TaskScene:
    """The same tasks placed by two policies, under several seeds.

    Attributes:
        network: Average load that tasks send, as a share of the capacity of all uplinks.
        policies: Names of both policies; the first ignores the network.
        hot_shares: Share of racks and intervals that are hot, for each policy and seed.
        runs: Runs under the first seed, one for each policy.
    """

    network: float
    policies: tuple[str, ...]
    hot_shares: tuple[tuple[float, ...], ...]
    runs: tuple[Run, ...]

    def mean(self, at: int) -> float:
        """Average of the hot shares of a policy over the seeds."""
        return float(numpy.mean(self.hot_shares[at]))

    @property
    def difference(self) -> tuple[float, float]:
        """Mean difference of the hot shares of both policies, and half of its 95 % confidence interval."""
        before, after = self.hot_shares
        low, high = interval([b - a for b, a in zip(after, before, strict=True)]) or (0.0, 0.0)
        return (low + high) / 2, (high - low) / 2

    def record(self) -> dict[str, Any]:
        """The scene for JSON; shares are fractions of 1."""
        return {
            "network": self.network,
            "seeds": list(SEEDS),
            "hot_share": dict(zip(self.policies, map(list, self.hot_shares), strict=True)),
            "difference": dict(zip(("mean", "half_interval"), self.difference, strict=True)),
        }


@dataclass(frozen=True)
class BlockScene:
    """The same blocks placed by several policies, under one seed.

    Attributes:
        disks: The disks in words.
        scenario: The scenario.
        runs: Runs, one for each policy; the first is HDFS's default.
        held_back: Shares of the full blocks that links and hosts held back, for each run.
    """

    disks: str
    scenario: Scenario
    runs: tuple[Run, ...]
    held_back: tuple[HeldBack, ...]

    def record(self) -> dict[str, Any]:
        """The scene for JSON; times in seconds, shares are fractions of 1."""
        return {
            "disks": self.disks,
            "policies": {
                run.policy: {
                    "full_block_write_s": run.summary()["full_block_write_s"],
                    "held_back": shares.record(),
                }
                for run, shares in zip(self.runs, self.held_back, strict=True)
            },
        }


def task_scene(network: float, simulate: Simulate) -> TaskScene:
    """Simulates a day of tasks under both policies and all seeds.

    Args:
        network: Average load that tasks send, as a share of the capacity of all uplinks.
        simulate: Runs all policies of a scenario under seeds.
    """
    text = (FOLDER / "tasks.yaml").read_text().replace(f"network: {NETWORK}", f"network: {network}")
    scenario = Scenario.from_text(text, FOLDER, name="tasks.yaml")
    runs = {(run.policy, run.seed): run for run in simulate(scenario, SEEDS)}
    hot_shares = {key: run.summary()["tasks"]["hot_tor_share"] for key, run in runs.items()}
    policies = tuple(scenario.policies)
    return TaskScene(
        network,
        policies,
        tuple(tuple(hot_shares[policy, seed] for seed in SEEDS) for policy in policies),
        tuple(runs[policy, SEEDS[0]] for policy in policies),
    )


def block_scenario(source: Path, cluster: str) -> Scenario:
    """Scenario of block writes; see `block_scene`."""
    text = source.read_text().replace("cluster: cluster.yaml", f"cluster: {cluster}")
    return Scenario.from_text(text, FOLDER, data_folder(), source.name)


def block_scene(source: Path, cluster: str, disks: str, simulate: Simulate) -> BlockScene:
    """Simulates an hour of block writes.

    Args:
        source: Scenario file.
        cluster: Name of the cluster file in the folder of the demo.
        disks: Disks of this cluster in words.
        simulate: Runs all policies of a scenario under seeds.
    """
    scenario = block_scenario(source, cluster)
    runs = tuple(simulate(scenario, (scenario.seed,)))
    return BlockScene(disks, scenario, runs, tuple(held_back(run, scenario.cluster) for run in runs))
