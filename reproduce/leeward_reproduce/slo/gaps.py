"""Gaps between the requests of chapter 3's workloads: independent, correlated, or recorded.

The thesis states C^2 of the gaps of its private traces (table 3.1). Independent gaps of this C^2 make bursts
of at most twice the mean rate. The gaps of real traces are correlated, and bursts follow one another. So each
experiment of chapter 3 also runs with two other inputs of the same loads:

- correlated gaps of the same C^2, drawn by a Markov-modulated process. Its two parameters follow from two
  statistics of the released traces, medians over the traces of the closest C^2. They are stated here, so that
  this input needs no traces;
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
CLOSEST = 5
"""Number of released traces of the closest C^2, by ratio, over which medians are taken."""
STATED: dict[float, tuple[float, float]] = {
    1.3: (2.01, 1.048),
    2.2: (25.8, 1.184),
    3.6: (5.07, 94.9),
    14.0: (6.92, 29.9),
    20.0: (6.65, 35.1),
    23.0: (3.75, 93.4),
    40.0: (3.18, 147.0),
}
"""Statistics of released traces for each C^2 above 1 of table 3.1 (figure `gaps`): the variance of the number
of requests in a window, over that with independent gaps of the same C^2; and the rate in bursts over the mean
rate, which is ln 2 over the median gap."""

_FIGURE = "gaps"
_NEXT = "correlation of a gap with the next"
_VARIANCE = f"variance of requests in {WINDOW:g} s over that with independent gaps"
_BURSTS = "rate in bursts over the mean rate"

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
    dispersion, height = STATED[gap_c2]
    # Over long times, the variance of counts over their mean is C^2 + (C^2 - 1) p / (1 - p).
    odds = (dispersion - 1.0) * gap_c2 / (gap_c2 - 1.0)
    return {"height": height, "persistence": odds / (1.0 + odds)}


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


def _dispersion(one: Mapping[str, float]) -> float:
    """Variance of the number of requests in a window, over that with independent gaps."""
    return one["dispersion"] / one["c2"]


def _height(one: Mapping[str, float]) -> float:
    """Rate in bursts over the mean rate; at most a billion, for a trace with half of its gaps at 0."""
    return log(2.0) / max(one["median"], 1e-9)


def local(traces: Sequence[Mapping[str, float]], gap_c2: float) -> tuple[float, float]:
    """The statistics of `STATED` for a C^2."""
    usable = [one for one in traces if one["c2"] > 0]
    near = sorted(usable, key=lambda one: abs(log(one["c2"] / gap_c2)))[:CLOSEST]
    return median(_dispersion(one) for one in near), median(_height(one) for one in near)


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
    every = outcomes[0]["traces"]
    count = f"median of {len(every)} released traces"
    result = [
        _row("C^2 of gaps", "", median(one["c2"] for one in every), None, count),
        _row(_NEXT, "", median(one["correlation"] for one in every), None, count),
        _row(_VARIANCE, "x", median(_dispersion(one) for one in every), None, count),
        _row(_BURSTS, "x", median(_height(one) for one in every), None, count),
    ]
    for letter, at in outcomes[0]["of"].items():
        gap_c2, trace = _wanted()[letter], every[at]
        rule = f"{outcomes[0]['names'][at]}, by the closest C^2 that no workload before has"
        label = f"{letter}: its released trace"
        result += [
            _row(f"{label}: C^2 of gaps", "", trace["c2"], gap_c2, rule),
            _row(f"{label}: {_NEXT}", "", trace["correlation"], None, rule),
            _row(f"{label}: {_VARIANCE}", "x", _dispersion(trace), None, rule),
            _row(f"{label}: {_BURSTS}", "x", _height(trace), None, rule),
        ]
    for gap_c2, stated in STATED.items():
        label = f"C^2 of {gap_c2:g}"
        drawn = bursts(gap_c2)
        correlation = drawn["persistence"] * (gap_c2 - 1.0) / (2.0 * gap_c2) if drawn else 0.0
        formula = "drawn with correlated gaps: persistence * (C^2 - 1) / (2 C^2)"
        result.append(computed_row(_FIGURE, f"{label}: {_NEXT}", "", correlation, None, formula))
        for words, value, own in zip((_VARIANCE, _BURSTS), local(every, gap_c2), stated, strict=True):
            note = f"median of the {CLOSEST} released traces of the closest C^2; drawn with {own:g}"
            result.append(_row(f"{label}: {words}", "x", value, None, note))
    return result


def _row(quantity: str, unit: str, value: float, paper: float | None, note: str) -> Row:
    return measured_row(_FIGURE, quantity, unit, [value], paper, note)


def constants() -> object:
    """Inputs that determine the outcomes."""
    return [LETTERS, WINDOW, CLOSEST, list(STATED.items())]
