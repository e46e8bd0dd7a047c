"""Runs of all arms under each seed, in the simulator and in Kubernetes."""

from collections.abc import Callable, Sequence
from pathlib import Path

from leeward_reproduce.hotspots.kubernetes import program, scenario
from leeward_reproduce.hotspots.kubernetes.measures import Measures, measure, simulate
from leeward_reproduce.hotspots.kubernetes.run import Links, Step, run
from leeward_reproduce.hotspots.kubernetes.scenario import INTERVAL_S, POLICIES, Size
from leeward_reproduce.real import results
from leeward_reproduce.real.rows import Pair


def make_pairs(
    folder: Path, size: Size, seeds: Sequence[int], advance: Callable[[float], object]
) -> list[Pair[Measures]]:
    """Runs all arms under each seed, or reads their runs, and simulates them.

    Args:
        folder: Folder for scenarios and results.
        size: Size of the runs.
        seeds: The seeds.
        advance: Called with the share of completed runs.

    Raises:
        InputError: The folder has runs of another scenario.
        OSError: The control plane cannot run on this machine, or a run failed.
    """
    files = [scenario.write(folder / f"seed-{seed}", seed, size) for seed in seeds]
    found = [results.read(file.parent, Measures) for file in files]
    command = program.build()
    pairs = []
    for at, (seed, file, before) in enumerate(zip(seeds, files, found, strict=True)):
        part = INTERVAL_S / size.horizon_s / len(POLICIES) / len(seeds)
        real = before or _run_arms(command, file, seed, size, _Progress(at / len(seeds), part, advance))
        advance((at + 1) / len(seeds))
        pairs.append(Pair(seed, simulate(file, seed), real))
    return pairs


def _run_arms(
    command: Path, file: Path, seed: int, size: Size, on_step: Callable[[Links, Step], object]
) -> dict[str, Measures]:
    """Runs all arms, in an order that rotates so that slow changes of a machine cancel out."""
    arms = list(POLICIES)
    first = seed % len(arms)
    measured = {
        arm: measure(run(command, file, arm, seed, size, on_step), file, size.warmup_s)
        for arm in arms[first:] + arms[:first]
    }
    results.write(file.parent, measured)
    return measured


class _Progress:
    """Advances by a part with each step."""

    def __init__(self, done: float, part: float, advance: Callable[[float], object]) -> None:
        self._done, self._part, self._advance = done, part, advance

    def __call__(self, _links: Links, _step: Step) -> None:
        self._done += self._part
        self._advance(self._done)
