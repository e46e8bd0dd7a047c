"""Figures of runs on real bytes, with their rows and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.bars import bars
from leeward_reproduce.real.rows import Pair
from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

M = TypeVar("M")
R = TypeVar("R")


@dataclass(frozen=True)
class ResultsFigure(Generic[R]):
    """A figure or table of the paper."""

    title: str
    rows: Callable[[R], list[Row]]
    """Makes the rows from results, which all figures share."""
    draw: "Callable[[R, Sequence[Row]], Picture] | None" = None
    """Draws the results, or their rows; by default, bars of the rows that the paper has."""


@dataclass(frozen=True)
class Figure(ResultsFigure[Sequence[Pair[M]]], Generic[M]):
    """A figure of pairs of a simulated and a measured run, with a picture of its own."""

    draw: "Callable[[Sequence[Pair[M]], Sequence[Row]], Picture]"


def check_jobs(jobs: int | None) -> None:
    """Rejects simultaneous runs.

    Raises:
        InputError: `jobs` is not 1.
    """
    if jobs not in (None, 1):
        raise InputError.about("jobs", f"{jobs}: real runs would disturb each other, and follow one another")


def make_rows(
    selection: Mapping[str, ResultsFigure[R]],
    results: R,
    inputs: results_folder.Inputs,
    out: Path,
    keep: bool,
) -> list[Row]:
    """Makes the rows of figures, and their pictures in `out` if the caller keeps it."""
    rows: list[Row] = []
    for name, figure in selection.items():
        mine = results_folder.mark_rows(figure.rows(results), inputs)
        rows += mine
        if figure.draw is not None:
            picture = partial(figure.draw, results, mine)
        elif any(row.paper is not None for row in mine):
            picture = partial(bars, mine, inputs.measured)
        else:
            continue
        if keep:
            drawing.write(out / results_folder.PICTURES, name, picture)
    return rows
