"""Runs the figures of the thesis on real disks, and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leeward.errors import InputError
from leeward_reproduce import results_folder
from leeward_reproduce.real.figures import ResultsFigure, check_jobs, make_rows
from leeward_reproduce.rows import Row, missing_row
from leeward_reproduce.slo import workloads
from leeward_reproduce.slo.real import bench, chapter3, chapter4, chapter5, figures, overhead
from leeward_reproduce.slo.real.cases import Case
from leeward_reproduce.slo.real.figures import Results

__all__ = ["FIGURES", "SEEDS", "Figure", "check_horizon", "make", "runs"]

SEEDS = 3
"""Number of seeds. Cases with long runs, or with many, have one (`Case.most_seeds`)."""


@dataclass(frozen=True)
class Figure(ResultsFigure[Results]):
    """A figure of the thesis."""

    cases: Sequence[Case] = ()
    """Cases whose runs it needs."""
    released: bool = False
    """True if the cases need the released traces."""
    of_enforcer: bool = False
    """True if it needs the overhead of the storage enforcer."""


def _packed(name: str, words: str) -> Figure:
    return Figure(
        f"held-out halves of workloads with {words}",
        partial(figures.held_out, name),
        cases=list(chapter5.CASES[name].values()),
        released=True,
    )


FIGURES = {
    "overhead": Figure("overhead of the storage enforcer", figures.overhead, of_enforcer=True),
    "within": Figure("requests within limits against bounds", figures.within, cases=[chapter3.WITHIN_CASE]),
    "3.2": Figure(
        "one limit or three for a workload that misbehaves", figures.limited, cases=[chapter3.LIMITED]
    ),
    "3.3": Figure("SLOs on a shared disk", figures.shared, cases=[chapter3.SHARED]),
    "3.5": Figure("burstiness", figures.bursts, cases=list(chapter3.BURSTY.values())),
    "3.6": Figure(
        "a workload beside one that misbehaves", figures.isolated, cases=[chapter3.CALM, chapter3.FLOODED]
    ),
    "3.7": Figure("links as the bottleneck", figures.linked, cases=[chapter3.LINKED]),
    "3.9": Figure("all orders of three SLOs", figures.orders, cases=chapter3.ORDERS),
    "4.10": Figure("workloads admitted on networks", figures.admitted, cases=[chapter4.ADMITTED]),
    "5.5": _packed("5.5", "one SLO"),
    "5.6": _packed("5.6", "random SLOs"),
}
"""Figures by their names in `--figure`."""


def check_horizon(horizon: str) -> None:
    """Rejects every horizon: traces have the lengths that figures need.

    Raises:
        InputError: In all cases.
    """
    message = f"`{horizon}`: each trace is replayed to its end; leave the horizon out"
    raise InputError.about("horizon", message)


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs."""
    cases = [case for figure in selection.values() for case in figure.cases]
    return sum(len(case.policies) * len(case.seeds(seeds)) for case in cases) + any(
        figure.of_enforcer for figure in selection.values()
    )


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
        OSError: A run is absent, and file servers cannot run in a lab on this machine; or a run failed.
    """
    check_jobs(jobs)
    absent = workloads.absent() if any(one.released for one in selection.values()) else None
    possible = {name: one for name, one in selection.items() if not (one.released and absent)}
    cases = [case for one in possible.values() for case in one.cases]
    count = max(runs(possible, inputs.seeds), 1)
    measures = any(one.of_enforcer for one in possible.values())

    def advance(done: float) -> None:
        if progress is not None:
            progress(done)

    sweeps = out / results_folder.SWEEPS
    measured = overhead.make(sweeps, lambda share: advance(share / count)) if measures else None
    first = int(measures) / count
    outcomes = bench.make_outcomes(
        cases, inputs.seeds, sweeps, lambda share: advance(first + share * (1 - first))
    )
    rows = make_rows(possible, Results(outcomes, measured), inputs, out, keep)
    reason = f"there is no {absent} in the folder of traces"
    missing = [name for name in selection if name not in possible]
    return rows + [missing_row(name, selection[name].title, "", None, reason) for name in missing]
