"""Rows of tables 2 and 3: the paper, the simulator and the control plane beside each other.

Both arms of a change have the same tasks, and the values are means over the counted part of a run.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy

from leeward.report.style import COLOURS
from leeward_reproduce.bars import bars
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.kubernetes.measures import Measures
from leeward_reproduce.hotspots.kubernetes.scenario import POLICIES
from leeward_reproduce.hotspots.windows import paired_p_value
from leeward_reproduce.real.rows import Pair, row, values
from leeward_reproduce.rows import Reason, Row, computed_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[str, Measures]
Pairs = Sequence[Pair[Measures]]

NAMES = {
    "default": "kube-scheduler as it is",
    "network-load": "NetworkLoad",
    "evictor": "the evictor alone",
    "both": "NetworkLoad and the evictor",
}
"""Names of the arms in rows."""
_WORDS = {
    "hot": "ToRs hot outbound",
    "p98": "p98 of ToRs' outbound utilization",
    "utilization": "utilization of all uplinks",
    "moves": "tasks moved",
    "violations": "network-intensive tasks put on hot ToRs",
}
_UNITS = {"moves": "a day"}
_SAME = "the same tasks under both, where the paper has two windows"
_WHY = Reason("all peaks are known here, and few objectives rank above the network")


def placement(pairs: Pairs) -> list[Row]:
    """Table 2: kube-scheduler before and after Leeward's parts."""
    reported = {"hot": paper.HOT_TORS, "p98": paper.P98, "utilization": paper.UTILIZATION}
    rows = [_change("table-2", metric, "default", "both", pairs, value) for metric, value in reported.items()]
    rows += [_change("table-2", metric, "default", "network-load", pairs) for metric in ("hot", "p98")]
    rows += [_difference("table-2", metric, "default", "both", pairs) for metric in ("hot", "p98")]
    for metric in ("hot", "p98"):
        rows += [_level("table-2", metric, arm, pairs) for arm in POLICIES]
    note = "above 1, simulated time stood still while pods were placed"
    for arm in POLICIES:
        quantity = f"ticks of the clock for a step, {NAMES[arm]}"
        rows.append(row("table-2", quantity, "", values(_ticks(arm), pairs), note=note))
    return rows


def moves(pairs: Pairs) -> list[Row]:
    """Table 3: the reactive part alone, and both parts."""
    reported = {"moves": paper.MOVES, "violations": paper.VIOLATIONS}
    rows = [_change("table-3", metric, "evictor", "both", pairs, value) for metric, value in reported.items()]
    rows.append(_change("table-3", "violations", "default", "both", pairs))
    rows += [_difference("table-3", metric, "evictor", "both", pairs) for metric in reported]
    for metric in reported:
        moving = [arm for arm in POLICIES if metric != "moves" or arm in ("evictor", "both")]
        rows += [_level("table-3", metric, arm, pairs) for arm in moving]
    return rows


def course(pairs: Pairs, _: Sequence[Row]) -> "Figure":
    """Table 2: hot ToRs over time, as means over seeds, in the simulator and on the control plane."""
    from matplotlib import pyplot

    fig, panels = pyplot.subplots(1, 2, figsize=(8.6, 3.4), sharey=True, layout="constrained")
    sides: tuple[tuple[str, Callable[[Pair[Measures]], Runs]], ...] = (
        ("simulator", lambda pair: pair.simulator),
        ("Kubernetes", lambda pair: pair.real),
    )
    for axes, (title, side) in zip(panels, sides, strict=True):
        for arm, policy in POLICIES.items():
            cells = [side(pair)[arm].cell for pair in pairs]
            hot = numpy.mean([100 * numpy.divide(one["hot_uplinks"], one["tors"]) for one in cells], axis=0)
            hours = (numpy.array(cells[0]["start_s"]) + numpy.array(cells[0]["length_s"]) / 2) / 3600
            style = "--" if arm in ("evictor", "network-load") else "-"
            axes.plot(hours, hot, style, color=COLOURS[policy], label=NAMES[arm])
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("hours")
        axes.set_ylim(0, None)
    panels[0].set_ylabel("ToRs hot outbound, %")
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", fontsize=8, ncols=2)
    return fig


def changes(_: Pairs, rows: Sequence[Row]) -> "Figure":
    """Table 3: the paper, the simulator and the control plane."""
    return bars(rows, "kubernetes")


def _mean(metric: str, arm: str) -> Callable[[Runs], float]:
    return lambda runs: runs[arm].window.mean(metric)


def _ticks(arm: str) -> Callable[[Runs], float]:
    def ticks(runs: Runs) -> float:
        found = runs[arm].ticks_per_step
        return math.nan if found is None else found

    return ticks


def _level(figure: str, metric: str, arm: str, pairs: Pairs) -> Row:
    quantity = f"{_WORDS[metric]}, {NAMES[arm]}"
    return row(figure, quantity, _UNITS.get(metric, "%"), values(_mean(metric, arm), pairs))


def _change(
    figure: str, metric: str, before: str, after: str, pairs: Pairs, reported: float | None = None
) -> Row:
    """The change of a mean, in percent of that of before. A seed in which that is zero has no value."""

    def change(runs: Runs) -> float:
        first, second = (_mean(metric, arm)(runs) for arm in (before, after))
        return 100 * (second - first) / first if first > 0 else math.nan

    quantity = f"{_WORDS[metric]}: change, {NAMES[before]} to {NAMES[after]}"
    note = _SAME if reported else ""
    return row(figure, quantity, "%", values(change, pairs), reported, note, _WHY, is_change=True)


def _difference(figure: str, metric: str, before: str, after: str, pairs: Pairs) -> Row:
    """P-value of a paired test over seeds."""
    quantity = f"{_WORDS[metric]}: p of a paired test over seeds, {NAMES[before]} and {NAMES[after]}"
    simulator, real = (
        paired_p_value(*([_mean(metric, arm)(runs) for runs in side] for arm in (before, after)))
        for side in ([pair.simulator for pair in pairs], [pair.real for pair in pairs])
    )
    return replace(computed_row(figure, quantity, "", real), simulator=simulator)
