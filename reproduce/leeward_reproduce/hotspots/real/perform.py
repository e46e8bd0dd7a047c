"""Runs CCP's figures on real bytes, and makes the rows of results."""

from collections.abc import Callable, Mapping
from pathlib import Path

from leeward_reproduce import results_folder
from leeward_reproduce.hotspots.real import figures
from leeward_reproduce.hotspots.real.measures import Measures
from leeward_reproduce.hotspots.real.pairs import make_pairs
from leeward_reproduce.hotspots.real.scenario import LENGTH, check_horizon
from leeward_reproduce.real.figures import Figure, check_jobs, make_rows
from leeward_reproduce.rows import Row

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]

FIGURES = {
    "14": Figure("requests by class of uplink, before and after CCP", figures.requests, figures.classes),
    "20": Figure("reads with and without CCP", figures.times, figures.changes),
}
"""Figures by their names in `--figure`."""


def runs(_selection: Mapping[str, Figure[Measures]], seeds: int) -> int:
    """Number of pairs of runs; all figures share them."""
    return seeds


def make(
    selection: Mapping[str, Figure[Measures]],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the pairs that the folder does not have; see `leeward_reproduce.perform.reproduce`.

    Raises:
        InputError: `jobs` is not 1.
        OSError: A run is absent, and HDFS cannot run in a lab on this machine.
    """
    check_jobs(jobs)
    pairs = make_pairs(
        out / results_folder.SWEEPS,
        inputs.horizon or LENGTH,
        range(1, inputs.seeds + 1),
        progress or (lambda _: None),
    )
    return make_rows(selection, pairs, inputs, out, keep)
