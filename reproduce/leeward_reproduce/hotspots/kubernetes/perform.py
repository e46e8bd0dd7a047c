"""Runs UTP's tables in Kubernetes, and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from leeward._quantities import read_seconds
from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.hotspots.kubernetes import figures, program, scenario
from leeward_reproduce.hotspots.kubernetes.figures import Pairs
from leeward_reproduce.hotspots.kubernetes.measures import Measures, measure, simulate
from leeward_reproduce.hotspots.kubernetes.run import Links, Step, run
from leeward_reproduce.hotspots.kubernetes.scenario import INTERVAL_S, LENGTH, POLICIES, Size, check_horizon
from leeward_reproduce.real import results
from leeward_reproduce.real.rows import Pair
from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "make_pairs", "runs"]


@dataclass(frozen=True)
class Figure:
    """A table of the paper."""

    title: str
    rows: Callable[[Pairs], list[Row]]
    """Makes the rows from the runs of seeds, which all tables share."""
    draw: "Callable[[Pairs, Sequence[Row]], Picture]"
    """Draws the runs, or their rows."""


FIGURES = {
    "table-2": Figure("one cell before and after UTP", figures.placement, figures.course),
    "table-3": Figure("with and without the proactive part", figures.moves, figures.changes),
}
"""Tables by their names in `--figure`."""


def runs(_selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs; all tables share them."""
    return seeds * len(POLICIES)


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Makes the runs that the folder does not have; see `leeward_reproduce.perform.reproduce`.

    Raises:
        InputError: `jobs` is not 1.
        OSError: The control plane cannot run on this machine.
    """
    if jobs not in (None, 1):
        raise InputError.about(
            "jobs", f"{jobs}: control planes would disturb each other, and follow one another"
        )
    size = Size(horizon_s=read_seconds("horizon", inputs.horizon or LENGTH))
    seeds = range(1, inputs.seeds + 1)
    pairs = make_pairs(out / results_folder.SWEEPS, size, seeds, progress or (lambda _: None))
    rows: list[Row] = []
    for name, figure in selection.items():
        mine = results_folder.mark_rows(figure.rows(pairs), inputs)
        rows += mine
        if keep:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, pairs, mine))
    return rows


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
