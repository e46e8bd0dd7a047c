"""Runs Sinbad's figures on real bytes, and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leeward_reproduce import drawing, results_folder
from leeward_reproduce.bars import bars
from leeward_reproduce.hdfs import missing
from leeward_reproduce.real.figures import check_jobs
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad.real import conditions, figures
from leeward_reproduce.sinbad.real.cases import CASES, Case
from leeward_reproduce.sinbad.real.pairs import Results, make_pairs
from leeward_reproduce.sinbad.real.scenario import LENGTH, check_horizon

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper."""

    title: str
    cases: Sequence[Case]
    """Cases whose runs it needs. Figures share them."""
    rows: Callable[[Results], list[Row]]


FIGURES = {
    "6": Figure("blocks and files", figures.CASES, figures.blocks),
    "7": Figure("files by size", figures.CASES, figures.sizes),
    "7.4": Figure("storage after the run", figures.CASES, figures.storage),
    "7.6": Figure("files in memory", conditions.MEMORY_CASES, conditions.memory),
    "8": Figure("imbalance of the links of racks", figures.CASES, figures.rack_imbalance),
    "9": Figure("imbalance of the links of machines", figures.CASES, figures.machine_imbalance),
    "11": Figure("arrival rates", conditions.LOAD_CASES, conditions.load),
    "reports": Figure("late and lost reports", conditions.REPORT_CASES, conditions.reports),
}
"""Figures by their names in `--figure`."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs."""
    return seeds * sum(len(case.policies) for case in _cases(selection))


def _cases(selection: Mapping[str, Figure]) -> list[Case]:
    """Cases of figures, in the order in which they run."""
    needed = {case for figure in selection.values() for case in figure.cases}
    return [case for case in CASES if case in needed]


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
        OSError: HDFS cannot run in a lab on this machine.
    """
    check_jobs(jobs)
    lacks = missing()
    if lacks is not None:
        raise OSError(lacks)
    results = make_pairs(
        out / results_folder.SWEEPS,
        inputs.horizon or LENGTH,
        _cases(selection),
        range(1, inputs.seeds + 1),
        progress or (lambda _: None),
    )
    rows: list[Row] = []
    for name, figure in selection.items():
        mine = results_folder.mark_rows(figure.rows(results), inputs)
        rows += mine
        # Pictures compare with values of the paper.
        if keep and any(row.paper is not None for row in mine):
            drawing.write(out / results_folder.PICTURES, name, partial(bars, mine, inputs.measured))
    return rows
