"""Runs CCP's figures on real bytes, and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.hdfs import missing
from leeward_reproduce.hotspots.real import figures
from leeward_reproduce.hotspots.real.figures import Pairs
from leeward_reproduce.hotspots.real.pairs import make_pairs
from leeward_reproduce.hotspots.real.scenario import LENGTH, check_horizon
from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper."""

    title: str
    rows: Callable[[Pairs], list[Row]]
    """Makes the rows from pairs of runs, which all figures share."""
    draw: "Callable[[Pairs, Sequence[Row]], Picture]"
    """Draws the pairs, or their rows."""


FIGURES = {
    "14": Figure("requests by class of uplink, before and after CCP", figures.requests, figures.classes),
    "20": Figure("reads with and without CCP", figures.times, figures.changes),
}
"""Figures by their names in `--figure`."""


def runs(_selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of pairs of runs; all figures share them."""
    return seeds


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the pairs that the folder does not have; see `leeward_reproduce.perform.reproduce`.

    Raises:
        InputError: `jobs` is not 1.
        OSError: HDFS cannot run in a lab on this machine.
    """
    if jobs not in (None, 1):
        raise InputError.about("jobs", f"{jobs}: real runs would disturb each other, and follow one another")
    lacks = missing()
    if lacks is not None:
        raise OSError(lacks)
    pairs = make_pairs(
        out / results_folder.SWEEPS,
        inputs.horizon or LENGTH,
        range(1, inputs.seeds + 1),
        progress or (lambda _: None),
    )
    rows: list[Row] = []
    for name, figure in selection.items():
        mine = results_folder.mark_rows(figure.rows(pairs), inputs)
        rows += mine
        if keep:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, pairs, mine))
    return rows
