"""Figures whose rows are made from pairs of a simulated and a measured run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.real.rows import Pair
from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

M = TypeVar("M")


@dataclass(frozen=True)
class Figure(Generic[M]):
    """A figure or table of the paper."""

    title: str
    rows: Callable[[Sequence[Pair[M]]], list[Row]]
    """Makes the rows from pairs of runs, which all figures share."""
    draw: "Callable[[Sequence[Pair[M]], Sequence[Row]], Picture]"
    """Draws the pairs, or their rows."""


def check_jobs(jobs: int | None) -> None:
    """Rejects simultaneous runs.

    Raises:
        InputError: `jobs` is not 1.
    """
    if jobs not in (None, 1):
        raise InputError.about("jobs", f"{jobs}: real runs would disturb each other, and follow one another")


def make_rows(
    selection: Mapping[str, Figure[M]],
    pairs: Sequence[Pair[M]],
    inputs: results_folder.Inputs,
    out: Path,
    keep: bool,
) -> list[Row]:
    """Makes the rows of figures, and their pictures in `out` if the caller keeps it."""
    rows: list[Row] = []
    for name, figure in selection.items():
        mine = results_folder.mark_rows(figure.rows(pairs), inputs)
        rows += mine
        if keep:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, pairs, mine))
    return rows
