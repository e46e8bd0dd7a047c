"""Runs Sinbad's figures on real bytes, and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.etalon.kernels.pictures import bars
from leeward_reproduce.hdfs import missing
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad.real import figures
from leeward_reproduce.sinbad.real.pairs import Bench, Pair
from leeward_reproduce.sinbad.real.scenario import LENGTH, check_horizon

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper."""

    title: str
    rows: Callable[[Sequence[Pair]], list[Row]]
    """Makes the rows from pairs of runs, which all figures share."""


FIGURES = {
    "6": Figure("blocks and files", figures.blocks),
    "7": Figure("files by size", figures.sizes),
    "8": Figure("imbalance of the links of racks", figures.imbalance),
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
    bench = Bench(out / results_folder.SWEEPS, inputs.horizon or LENGTH)
    pairs = bench.pairs(range(1, inputs.seeds + 1), progress or (lambda _: None))
    rows: list[Row] = []
    for name, figure in selection.items():
        mine = results_folder.mark_rows(figure.rows(pairs), inputs)
        rows += mine
        if keep:
            drawing.write(out / results_folder.PICTURES, name, partial(bars, mine, inputs.measured))
    return rows
