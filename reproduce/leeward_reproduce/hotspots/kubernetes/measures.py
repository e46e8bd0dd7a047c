"""Measurements of a run, as the simulator makes them: the columns of its table `cell`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow

from leeward._arrays import Floats, Mask
from leeward.simulation import read_scenario
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.kubernetes.run import Links, Outcome, Step
from leeward_reproduce.hotspots.kubernetes.scenario import POLICIES, SAMPLE_S
from leeward_reproduce.hotspots.windows import Window, window_of
from leeward_reproduce.real.scenario_files import read_csv

HOT = paper.THRESHOLD / 100
"""Utilization from which a link is hot."""
_UP = 0
"""Position of the links out of racks among loads."""
COLUMNS = (
    "start_s",
    "length_s",
    "tors",
    "hot_tors",
    "hot_uplinks",
    "tor_p98",
    "utilization",
    "scheduled",
    "intensive",
    "intensive_on_hot",
    "moved",
    "running",
    "waiting",
)


@dataclass(frozen=True)
class Measures:
    """Measurements of a run.

    Attributes:
        cell: Columns of the table `cell` after the warm-up.
        ranked: Number of scheduling cycles in which the network ranked the nodes; 0 in the simulator.
        placements: Number of placements by kube-scheduler; 0 in the simulator.
        ticks_per_step: Ticks of the clock that a step took on average; None in the simulator.
    """

    cell: dict[str, list[float]]
    ranked: int = 0
    placements: int = 0
    ticks_per_step: float | None = None

    @property
    def window(self) -> Window:
        """The run after the warm-up."""
        return window_of(pyarrow.table(self.cell))


def measure(outcome: Outcome, scenario: Path, warmup_s: float) -> Measures:
    """Measures a run of the control plane.

    Args:
        outcome: The run.
        scenario: File of its scenario.
        warmup_s: Time before the counted part.
    """
    nodes = {row["node"]: row["rack"] for row in read_csv(scenario.parent / "nodes.csv")}
    cell = table(outcome.links, outcome.steps, nodes, intensive(scenario.parent / "tasks.csv"), warmup_s)
    return Measures(cell, outcome.ranked, outcome.placements, outcome.ticks_per_step)


def simulate(scenario: Path, seed: int) -> dict[str, Measures]:
    """Runs the scenario in the simulator; measurements by arm."""
    runs = read_scenario(scenario).run(list(POLICIES.values()), [seed])
    by_policy = {run.policy: run.cell() for run in runs}
    return {
        arm: Measures({name: by_policy[policy][name].to_pylist() for name in COLUMNS})
        for arm, policy in POLICIES.items()
    }


def intensive(tasks: Path) -> Mask:
    """Marks the tenth of the tasks with the most bandwidth per processor."""
    rows = read_csv(tasks)
    rates = numpy.array([float(row["egress_bps"]) + float(row["ingress_bps"]) for row in rows])
    by_processor = rates / numpy.array([float(row["cpus"]) for row in rows])
    ordered = numpy.sort(by_processor)
    most: Mask = by_processor > ordered[len(ordered) - 1 - len(ordered) // 10]
    return most


def table(
    links: Links, steps: Sequence[Step], rack_of: dict[str, str], is_intensive: Mask, warmup_s: float
) -> dict[str, list[float]]:
    """Columns of the table `cell` after the warm-up.

    Args:
        links: Racks and their links.
        steps: Steps of the run.
        rack_of: Rack of each node.
        is_intensive: Whether each task is network-intensive.
        warmup_s: Time before the first interval.
    """
    size = round(SAMPLE_S / links.interval_s)
    number = {rack: at for at, rack in enumerate(links.racks)}
    utilization = numpy.array([step.loads_bps for step in steps]) / links.capacity_bps
    is_hot: Mask = numpy.any(utilization > HOT, axis=1)
    rows: list[tuple[float, ...]] = []
    for first in range(round(warmup_s / links.interval_s), len(steps) - size + 1, size):
        mean: Floats = utilization[first : first + size].mean(axis=0)
        up = mean[_UP]
        placed = [
            (task, at > 0 and bool(is_hot[at - 1, number[rack_of[node]]]))
            for at in range(first, first + size)
            for task, node in steps[at].placed
        ]
        on_hot = [hot for task, hot in placed if is_intensive[task]]
        last = steps[first + size - 1]
        rows.append(
            (
                first * links.interval_s,
                size * links.interval_s,
                len(links.racks),
                int((mean > HOT).any(axis=0).sum()),
                int((up > HOT).sum()),
                float(numpy.quantile(up, 0.98)),
                float((up * links.capacity_bps[_UP]).sum() / links.capacity_bps[_UP].sum()),
                len(placed),
                len(on_hot),
                sum(on_hot),
                sum(len(step.evicted) for step in steps[first : first + size]),
                last.running,
                last.waiting,
            )
        )
    columns = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
    return {name: list(values) for name, values in zip(COLUMNS, columns, strict=True)}
