"""Runs UTP's tables in Kubernetes, and makes the rows of results."""

from collections.abc import Callable, Mapping
from pathlib import Path

from leeward._quantities import read_seconds
from leeward_reproduce import results_folder
from leeward_reproduce.hotspots.kubernetes import figures
from leeward_reproduce.hotspots.kubernetes.measures import Measures
from leeward_reproduce.hotspots.kubernetes.pairs import make_pairs
from leeward_reproduce.hotspots.kubernetes.scenario import LENGTH, POLICIES, Size, check_horizon
from leeward_reproduce.real.figures import Figure, check_jobs, make_rows
from leeward_reproduce.rows import Row

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]

FIGURES = {
    "table-2": Figure("one cell before and after UTP", figures.placement, figures.course),
    "table-3": Figure("with and without the proactive part", figures.moves, figures.changes),
}
"""Tables by their names in `--figure`."""


def runs(_selection: Mapping[str, Figure[Measures]], seeds: int) -> int:
    """Number of runs; all tables share them."""
    return seeds * len(POLICIES)


def make(
    selection: Mapping[str, Figure[Measures]],
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
    check_jobs(jobs)
    size = Size(horizon_s=read_seconds("horizon", inputs.horizon or LENGTH))
    seeds = range(1, inputs.seeds + 1)
    pairs = make_pairs(out / results_folder.SWEEPS, size, seeds, progress or (lambda _: None))
    return make_rows(selection, pairs, inputs, out, keep)
