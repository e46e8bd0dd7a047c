"""Figures 4.7, 4.8, 4.13 and 4.14: bounds of one path by each analysis, and the time to compute bounds."""

import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.slo import caches, paper, workloads

ON_PATH = (2, 4, 6, 8, 10)
"""Numbers of workloads from one client to one server (figure 4.7)."""
SEVEN = 7
"""Number of equal workloads of figure 4.8."""
DEPENDENT = (0, 2, 3, 4, 5, 6, 7)
"""Numbers of dependent workloads among the seven."""
NINES = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 33, 40, 50, 70, 100)
"""Numbers of nines of the percentile (figure 4.13); 3 nines are 99.9 %."""
SIZES = (45, 90, 180)
"""Numbers of workloads of figure 4.14."""
KINDS = {"ours": {}, "as published": {"bounds": caches.PUBLISHED}}
"""Settings of the analyses: ours, with blocks and percentiles of requests; and those of the thesis."""

Outcome = dict[str, Any]
_EARLIER = {
    "ours": Reason("DNC is computed from whole curves here, which know the longest burst of each trace"),
    "as published": Reason(
        "sums over each step of 10 us cost more than the percentile gains", "unions over blocks (`ours`)"
    ),
}
_MORE_ON_A_LINK = Reason("more workloads share the same links, and each bound depends on all on its links")


def _tails(drawn: workloads.Draws, kind: str, excess: float, dependent: int = 0) -> dict[str, float | None]:
    request = {
        "part": "first",
        "bytes_per_second": workloads.GIGABIT,
        "excess": excess,
        "dependent": dependent,
        **KINDS[kind],
    }
    results: dict[str, float | None] = caches.experiment(kind != "ours").tails(drawn, json.dumps(request))
    return results


def methods(seed: int) -> Outcome:
    """Figure 4.7: the three analyses and DNC, with more and more workloads on two queues."""
    draw_list = caches.draws(seed, max(ON_PATH))
    return {kind: {str(n): _tails(draw_list[:n], kind, 1e-3) for n in ON_PATH} for kind in KINDS}


def dependence(seed: int) -> Outcome:
    """Figure 4.8: seven equal workloads, with more and more dependent ones."""
    draw_list = caches.draws(seed, 1) * SEVEN
    return {kind: {str(n): _tails(draw_list, kind, 1e-3, n) for n in DEPENDENT} for kind in KINDS}


def nines(seed: int) -> Outcome:
    """Figure 4.13: bounds by nines of the percentile."""
    draw_list = caches.draws(seed, SEVEN)
    return {kind: {str(n): _tails(draw_list, kind, 10.0**-n) for n in NINES} for kind in KINDS}


def clock(seed: int) -> Outcome:
    """Figure 4.14: processor time in seconds of the bounds of all workloads of a cluster."""
    result: Outcome = {}
    request = {
        "part": "first",
        "stages": caches.NETWORK,
        "method": "snc",
        "shape": caches.machines(3) | {"bytes_per_second": 10 * workloads.GIGABIT},
    }
    for size in SIZES:
        draw_list, on = caches.draws(seed, size), caches.links(seed, size, 3)
        # The first call fits the models; their time does not count.
        caches.experiment().bounds(draw_list, on, json.dumps(request))
        began = time.thread_time()
        caches.experiment().bounds(draw_list, on, json.dumps(request))
        result[str(size)] = time.thread_time() - began
    return result


def rows_methods(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.7."""
    rows, most = [], str(max(ON_PATH))
    note = f"the last of {most} workloads by priority, on drawn traces; the thesis: 2 to 4 times"
    for kind in KINDS:
        for name, label in (("hop_by_hop", "hop by hop"), ("convolution", "convolution"), ("dnc", "DNC")):
            ratio = _ratios([one[kind][most] for one in outcomes], name, "bipartite")
            rows.append(measured_row("4.7", f"{kind}: {label} over SNC-Meister's", "x", ratio, None, note))
    first = [_milliseconds(one["as published"][most]["bipartite"]) for one in outcomes]
    rows.append(measured_row("4.7", "as published: SNC-Meister's bound", "ms", _finite(first)))
    first = [_milliseconds(one["ours"][most]["bipartite"]) for one in outcomes]
    rows.append(measured_row("4.7", "ours: SNC-Meister's bound", "ms", _finite(first)))
    return rows


def rows_dependence(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.8."""
    rows = []
    for kind in KINDS:
        for n in DEPENDENT:
            ratio = _ratios([one[kind][str(n)] for one in outcomes], "bipartite", "dnc")
            note = "the thesis: below DNC except where nearly all are dependent" if n == DEPENDENT[0] else ""
            label = f"{kind}: {n} of {SEVEN} dependent, SNC over DNC"
            rows.append(measured_row("4.8", label, "x", ratio, None, note))
    return rows


def rows_nines(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.13."""
    rows = []
    for kind in KINDS:
        for n in (1, 3, 8, 33):
            ratio = _ratios([one[kind][str(n)] for one in outcomes], "bipartite", "dnc")
            rows.append(measured_row("4.13", f"{kind}: SNC over DNC at {n} nines", "x", ratio))
        passes = [float(_passes(one[kind])) for one in outcomes]
        note = f"the last of {SEVEN} workloads on one path; {max(NINES)} where it never does; of drawn traces"
        theirs = paper.NINES
        label = f"{kind}: SNC passes DNC at"
        rows.append(measured_row("4.13", label, "nines", passes, theirs, note, _EARLIER[kind]))
    return rows


def rows_clock(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.14."""
    rows = []
    note = "processor time of this machine; links of 10 Gb/s, so that all have a bound; the thesis: linear"
    for size in SIZES:
        seconds = [1000 * one[str(size)] for one in outcomes]
        rows.append(measured_row("4.14", f"bounds of {size} workloads", "ms", seconds, None, note))
    for small, large in itertools.pairwise(SIZES):
        ratio = [one[str(large)] / one[str(small)] for one in outcomes]
        label = f"time of {large} over that of {small}"
        rows.append(measured_row("4.14", label, "x", ratio, large / small, reason=_MORE_ON_A_LINK))
    return rows


def _passes(by: dict[str, dict[str, float | None]]) -> int:
    for n in NINES:
        tails = by[str(n)]
        stochastic, certain = tails["bipartite"], tails["dnc"]
        if certain is not None and (stochastic is None or stochastic > certain):
            return n
    return NINES[-1]


def _ratios(tails: Sequence[dict[str, float | None]], over: str, under: str) -> list[float]:
    pairs = [(one[over], one[under]) for one in tails]
    return [a / b for a, b in pairs if a is not None and b]


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
