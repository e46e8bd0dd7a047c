"""Runs Sinbad's figures on real bytes, and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leeward_reproduce import results_folder
from leeward_reproduce.real.figures import ResultsFigure, check_jobs, make_rows
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad.real import conditions, figures
from leeward_reproduce.sinbad.real.cases import CASES, Case
from leeward_reproduce.sinbad.real.pairs import Results, make_pairs
from leeward_reproduce.sinbad.real.scenario import LENGTH, check_horizon

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure(ResultsFigure[Results]):
    """A figure of the paper."""

    cases: Sequence[Case] = ()
    """Cases whose runs it needs. Figures share them."""


FIGURES = {
    "6": Figure("blocks and files", figures.blocks, cases=figures.CASES),
    "7": Figure("files by size", figures.sizes, cases=figures.CASES),
    "7.4": Figure("storage after the run", figures.storage, cases=figures.CASES),
    "7.6": Figure("files in memory", conditions.memory, cases=conditions.MEMORY_CASES),
    "8": Figure("imbalance of the links of racks", figures.rack_imbalance, cases=figures.CASES),
    "9": Figure("imbalance of the links of machines", figures.machine_imbalance, cases=figures.CASES),
    "11": Figure("arrival rates", conditions.load, cases=conditions.LOAD_CASES),
    "reports": Figure("late and lost reports", conditions.reports, cases=conditions.REPORT_CASES),
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
        OSError: A run is absent, and HDFS cannot run in a lab on this machine.
    """
    check_jobs(jobs)
    results = make_pairs(
        out / results_folder.SWEEPS,
        inputs.horizon or LENGTH,
        _cases(selection),
        range(1, inputs.seeds + 1),
        progress or (lambda _: None),
    )
    return make_rows(selection, results, inputs, out, keep)
