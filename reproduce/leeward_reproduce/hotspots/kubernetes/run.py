"""A run of the control plane: one arm on one scenario, and the steps that its program prints."""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import numpy

from leeward._arrays import Floats
from leeward_reproduce.hdfs.processes import Process, ended_by_signals
from leeward_reproduce.hotspots.kubernetes import service
from leeward_reproduce.hotspots.kubernetes.scenario import INTERVAL_S, NETWORK_SHARE, RESTART_S, Size

TICK_S = 0.5
"""Real time of a step. Scheduling and telemetry need about a third of a second."""
WITH_PLUGIN = ("network-load", "both")
"""Arms with the plugin."""
LEAST_RANKED = 0.95
"""Least share of placements that the network ranked, in a run with the plugin."""
_END_S = 60.0
"""Time limit for the end of a control plane with thousands of pods."""

Placements = Sequence[tuple[int, str]]
"""Tasks by their numbers, each with a node."""


@dataclass(frozen=True)
class Step:
    """A step of simulated time.

    Attributes:
        loads_bps: Loads of the racks' links: those out of the racks, and those into them.
        placed: Tasks that got a node at the start of the step.
        evicted: Tasks that were evicted since the last step, with their nodes of before.
        running: Number of tasks that send.
        waiting: Number of tasks without a node.
    """

    loads_bps: Floats
    placed: Placements
    evicted: Placements
    running: int
    waiting: int


@dataclass(frozen=True)
class Links:
    """The racks of a run, and the capacities of their links by direction."""

    racks: list[str]
    capacity_bps: Floats
    interval_s: float


@dataclass(frozen=True)
class Outcome:
    """A complete run.

    Attributes:
        links: Racks and their links.
        steps: All steps.
        ranked: Number of scheduling cycles in which the network ranked the nodes.
        placements: Number of placements.
        ticks_per_step: Ticks of the clock that a step took on average; above 1, simulated time stood still.
    """

    links: Links
    steps: list[Step]
    ranked: int
    placements: int
    ticks_per_step: float = 1.0


OnStep = Callable[[Links, Step], object]


def run(
    program: Path,
    scenario: Path,
    arm: str,
    seed: int,
    size: Size,
    on_step: OnStep = lambda _links, _step: None,
    tick_s: float = TICK_S,
) -> Outcome:
    """Runs an arm beside a service of its own. All processes have ended after it, also after an error.

    Args:
        program: The built command.
        scenario: File of the scenario, with its lists beside it.
        arm: One of `scenario.POLICIES`.
        seed: Seed of the rates.
        size: Size of the run.
        on_step: Called with each step.
        tick_s: Real time of a step.

    Raises:
        OSError: A process failed, or the network did not rank the nodes of enough pods.
    """
    with ended_by_signals(), tempfile.TemporaryDirectory(prefix="leeward-kubernetes-") as folder:
        cluster = scenario.parent / "cluster.yaml"
        with service.up(Path(folder), cluster, tick_s, service.free_port()) as url:
            return drive(program, scenario, arm, seed, size, url, Path(folder), on_step, tick_s)


def drive(
    program: Path,
    scenario: Path,
    arm: str,
    seed: int,
    size: Size,
    url: str,
    folder: Path,
    on_step: OnStep,
    tick_s: float = TICK_S,
) -> Outcome:
    """Runs an arm beside a service at an address; see `run`.

    Raises:
        OSError: A process failed, or the network did not rank the nodes of enough pods.
    """
    command = [str(program), "-arm", arm, "-controller", url, "-seed", str(seed)]
    command += ["-nodes", str(scenario.parent / "nodes.csv"), "-tasks", str(scenario.parent / "tasks.csv")]
    command += ["-interval", f"{INTERVAL_S:g}s", "-restart", f"{RESTART_S:g}s", "-tick", f"{tick_s:g}s"]
    command += ["-network-share", str(NETWORK_SHARE), "-steps", str(round(size.horizon_s / INTERVAL_S))]
    log = folder / f"{arm}.log"
    with log.open("w", encoding="utf-8") as errors:
        # A session of its own: an interrupt from the terminal reaches this program alone.
        child = Popen(
            command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            text=True,
            # Its data go with the folder, also if it is killed.
            env=os.environ | {"TMPDIR": str(folder)},
            start_new_session=True,
        )
    process = Process(f"control plane with arm {arm}", child, log)
    try:
        assert child.stdout is not None
        with child.stdout as output:
            outcome = read(output, on_step)
        if outcome is None:
            process.finish(_END_S)
            raise process.error("ended before its last step")
    finally:
        service.end(child, _END_S)
    check(arm, outcome)
    return outcome


def read(lines: Any, on_step: OnStep) -> Outcome | None:
    """Reads the output of the program; None if it ends before the last line.

    Args:
        lines: Lines of text.
        on_step: Called with each step.
    """
    links: Links | None = None
    steps: list[Step] = []
    for line in lines:
        fields = json.loads(line)
        if links is None:
            capacity = numpy.array(fields["capacity_bps"], dtype=float)
            links = Links(fields["racks"], capacity, fields["interval_s"])
        elif "step" in fields:
            step = Step(
                numpy.array(fields["load_bps"], dtype=float),
                [(task, node) for task, node in fields["placed"]],
                [(task, node) for task, node in fields["evicted"]],
                fields["running"],
                fields["waiting"],
            )
            steps.append(step)
            on_step(links, step)
        else:
            return Outcome(links, steps, fields["ranked"], fields["placements"], fields["ticks_per_step"])
    return None


def check(arm: str, outcome: Outcome) -> None:
    """Checks that the network had a say in the placements of a run with the plugin, and in no other.

    Raises:
        OSError: It did not.
    """
    share = outcome.ranked / max(outcome.placements, 1)
    if arm in WITH_PLUGIN and share < LEAST_RANKED:
        message = f"arm {arm}: the network ranked the nodes of {share:.0%} of the pods"
        raise OSError(f"{message}: the machine is too busy, or the service did not respond")
    if arm not in WITH_PLUGIN and outcome.ranked:
        raise OSError(f"arm {arm}: the network ranked the nodes of {outcome.ranked} pods without the plugin")
