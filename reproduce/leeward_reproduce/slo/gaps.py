"""Gaps between the requests of chapter 3's workloads: independent, correlated, or recorded.

The thesis states C^2 of the gaps of its private traces (table 3.1). Independent gaps of this C^2 make bursts
of at most twice the mean rate. The gaps of real traces are correlated, and bursts follow one another. So each
experiment of chapter 3 also runs with two other inputs of the same loads:

- correlated gaps of the same C^2, drawn by a Markov-modulated process. Its two parameters follow from the
  medians of two statistics over the released traces, which are stated here, so that it needs no traces;
- released traces. By rule, each workload has the trace whose C^2 is closest to that of table 3.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from leeward import data
from leeward._native import published_workloads
from leeward_reproduce.rows import Row, computed_row, measured_row
from leeward_reproduce.slo import workloads

LETTERS = "ABCDFGH"
"""Workloads on a disk, for which released traces stand."""
WINDOW = 10.0
"""Window of counts of requests, in seconds."""
DISPERSION = 1.0
"""Variance of the number of requests in a window, over that with independent gaps of the same C^2: the median
of the released traces (figure `gaps`)."""
HEIGHT = 1.0
"""Rate in bursts over the mean rate: the median of the released traces (figure `gaps`). More than half of all
gaps are in bursts, so the median gap is ln 2 over this rate."""

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Gaps:
    """An input of chapter 3's experiments: where the gaps between requests come from."""

    suffix: str
    """Suffix of the names of figures."""
    words: str
    """Suffix of the titles of figures."""
    note: str
    """Note of rows."""

    def sends(self, gap_c2: float) -> dict[str, Any]:
        """Settings of a workload's gaps."""
        return {"gap_c2": gap_c2, "bursts": bursts(gap_c2) if self == CORRELATED else None}

    def member(self, letter: str) -> dict[str, Any]:
        """Settings of a workload: the file of its trace, if it has one."""
        return {"trace": assignment()[letter]} if self == RELEASED and letter in LETTERS else {}


INDEPENDENT = Gaps("", "", "drawn by the load and C^2 of table 3.1, for the thesis' traces are private")
CORRELATED = Gaps(
    "-correlated",
    ", correlated gaps",
    "drawn by the load and C^2 of table 3.1, with correlated gaps where C^2 is above 1",
)
RELEASED = Gaps(
    "-released",
    ", released traces",
    "released traces of the closest C^2, at the load of table 3.1; places on the disk are drawn",
)


def bursts(gap_c2: float) -> dict[str, float] | None:
    """Parameters of correlated gaps of this C^2; None for a Poisson stream, whose gaps are independent."""
    if gap_c2 <= 1.0:
        return None
    # Over long times, the variance of counts over their mean is C^2 + (C^2 - 1) p / (1 - p).
    odds = (DISPERSION - 1.0) * gap_c2 / (gap_c2 - 1.0)
    return {"height": HEIGHT, "persistence": odds / (1.0 + odds)}


def closest(known: Mapping[str, float], wanted: Mapping[str, float]) -> dict[str, str]:
    """Name of a trace for each workload: that of the closest C^2, by ratio, which no earlier workload has.

    Args:
        known: C^2 of each trace.
        wanted: C^2 of each workload.
    """
    result: dict[str, str] = {}
    free: dict[str, float] = {}
    for letter, c2 in wanted.items():
        # With fewer traces than workloads, a trace stands for several.
        free = free or dict(known)
        result[letter] = min(free, key=lambda name: (abs(log(free[name] / c2)), name))
        del free[result[letter]]
    return result


def assignment() -> dict[str, str]:
    """File of the released trace that stands for each workload."""
    return _assignment(data.data_folder())


@cache
def _assignment(_folder: Path | None) -> dict[str, str]:
    known = {name: one["c2"] for name, one in zip(workloads.paths(), _statistics(), strict=True)}
    return closest({name: c2 for name, c2 in known.items() if c2 > 0}, _wanted())


def _wanted() -> dict[str, float]:
    return {letter: published_workloads()[letter]["gap_c2"] for letter in LETTERS}


def _statistics() -> list[dict[str, float]]:
    """Statistics of the gaps of each released trace."""
    traces = workloads.experiment()
    return [traces.gaps(trace, WINDOW) for trace in range(len(traces))]


def released(_: int) -> Outcome:
    """Statistics of the gaps of the released traces."""
    files = workloads.paths()
    return {
        "traces": _statistics(),
        "of": {letter: files.index(file) for letter, file in assignment().items()},
        "names": [Path(file).name for file in files],
    }


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Statistics of released traces, and those of the drawn workloads that follow from them."""
    outcome = outcomes[0]
    every = outcome["traces"]
    count = f"median of {len(every)} released traces"
    figure = "gaps"
    result = [
        measured_row(figure, "C^2 of gaps", "", [median(one["c2"] for one in every)], None, count),
        measured_row(
            figure,
            "correlation of a gap with the next",
            "",
            [median(one["correlation"] for one in every)],
            None,
            count,
        ),
        measured_row(
            figure,
            f"variance of requests in {WINDOW:g} s over that with independent gaps",
            "x",
            [median(one["dispersion"] / one["c2"] for one in every)],
            None,
            f"{count}; the drawn workloads with correlated gaps have {DISPERSION:g}",
        ),
        measured_row(
            figure,
            "rate in bursts over the mean rate",
            "x",
            [median(log(2.0) / max(one["median"], 1e-9) for one in every)],
            None,
            f"{count}; ln 2 over the median gap; the drawn workloads with correlated gaps have {HEIGHT:g}",
        ),
    ]
    for letter, gap_c2 in _wanted().items():
        one = every[outcome["of"][letter]]
        name = outcome["names"][outcome["of"][letter]]
        rule = f"{name}, by the closest C^2; a trace stands for one workload"
        label = f"{letter}: its released trace"
        drawn = bursts(gap_c2)
        correlation = drawn["persistence"] * (gap_c2 - 1.0) / (2.0 * gap_c2) if drawn else 0.0
        result += [
            measured_row(figure, f"{label}: C^2 of gaps", "", [one["c2"]], gap_c2, rule),
            measured_row(
                figure, f"{label}: correlation of a gap with the next", "", [one["correlation"]], None, rule
            ),
            computed_row(
                figure,
                f"{letter}: drawn with correlated gaps: correlation of a gap with the next",
                "",
                correlation,
                None,
                "persistence * (C^2 - 1) / (2 C^2)",
            ),
        ]
    return result


def constants() -> object:
    """Inputs that determine the outcomes."""
    return [LETTERS, WINDOW, DISPERSION, HEIGHT]
