"""Figures 4.2 and 4.9: peak rates of several traces together, and peak rate over mean rate of one trace."""

from collections.abc import Sequence
from typing import Any

from leeward._native import VolumeExperiment, draw_workloads
from leeward_reproduce.rows import Row, measured_row, reference_row
from leeward_reproduce.slo import caches, paper, workloads

WINDOW = 1.0
"""Window of a rate, in seconds; the thesis does not state it."""
TOGETHER = 3
"""Number of traces of figure 4.2."""

Outcome = dict[str, Any]


def together(seed: int) -> Outcome:
    """Figure 4.2: the peak of three traces together, over the sum of their peaks."""
    result: Outcome = {}
    for name, traces, first in _kinds():
        pairs = [(trace, 1.0) for trace in range(first, len(traces))]
        results = traces.peaks(draw_workloads(seed, TOGETHER, pairs), "whole", WINDOW)
        result[name] = results["all"]["bytes"] / sum(one["bytes"] for one in results["each"])
    return result


def ratios(_: int) -> Outcome:
    """Figure 4.9: peak rate of requests over mean rate, of every trace."""
    result: Outcome = {}
    for name, traces, first in _kinds():
        draw_list = [(trace, 0.0, 1.0) for trace in range(first, len(traces))]
        each = traces.peaks(draw_list, "whole", WINDOW)["each"]
        result[name] = sorted(one["requests"] / one["mean_requests"] for one in each)
    return result


def _kinds() -> list[tuple[str, VolumeExperiment, int]]:
    return [("drawn", caches.experiment(), caches.SMALL), ("released", workloads.experiment(), 0)]


def rows_together(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.2."""
    note = f"{TOGETHER} traces, rates over {WINDOW:g} s; the thesis: much lower than 1, in a picture"
    label = "traces: peak together over sum of peaks"
    return [
        measured_row("4.2", f"{name} {label}", "x", [one[name] for one in outcomes], None, note)
        for name in outcomes[0]
    ]


def rows_ratios(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.9."""
    rows = []
    for name, results in outcomes[0].items():
        least, most = paper.PEAKS
        for label, value, theirs in (
            ("least", results[0], least),
            ("median", results[len(results) // 2], None),
            ("most", results[-1], most),
        ):
            note = (
                f"peaks over {WINDOW:g} s; drawn to be like the thesis'"
                if name == "drawn"
                else "traces of block devices, and not those of the thesis"
            )
            # Released traces are others than those of the thesis.
            make = measured_row if name == "drawn" else reference_row
            rows.append(make("4.9", f"{name} traces: peak over mean, {label}", "x", [value], theirs, note))
    return rows
