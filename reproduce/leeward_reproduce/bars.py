"""Bars of rows that the paper, the simulator and a lab have, beside each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#111111", "#1f5fa8", "#c25a00")


def bars(rows: Sequence[Row], measured: str = "lab") -> "Figure":
    """Horizontal bars of all rows that the paper and the lab have, with intervals; one panel for each unit.

    Args:
        rows: The rows.
        measured: Name of what was measured beside the simulator.
    """
    from matplotlib import pyplot

    shown = [row for row in rows if row.ours is not None and row.paper is not None]
    units = list(dict.fromkeys(row.unit for row in shown))
    heights = [sum(row.unit == unit for row in shown) for unit in units]
    figure, panels = pyplot.subplots(
        max(len(units), 1),
        1,
        figsize=(7.5, 1.0 + 0.42 * max(sum(heights), 2) + 0.5 * len(units)),
        height_ratios=[height + 1 for height in heights] or None,
        squeeze=False,
        layout="constrained",
    )
    for unit, axes in zip(units, panels[:, 0], strict=False):
        mine = [row for row in shown if row.unit == unit]
        at = numpy.arange(len(mine))
        columns = {
            "paper": [row.nearest for row in mine],
            "simulator": [row.simulator for row in mine],
            measured: [row.ours for row in mine],
        }
        intervals: dict[str, list[tuple[float | None, float | None]]] = {
            "paper": [(None, None) for _ in mine],
            "simulator": [(row.simulator_low, row.simulator_high) for row in mine],
            measured: [(row.ci_low, row.ci_high) for row in mine],
        }
        for number, ((kind, values), colour) in enumerate(zip(columns.items(), _COLOURS, strict=True)):
            drawn = [numpy.nan if value is None else value for value in values]
            axes.barh(at + 0.27 * (number - 1), drawn, 0.25, color=colour, label=kind)
            for height, (low, high) in zip(at + 0.27 * (number - 1), intervals[kind], strict=True):
                if low is not None and high is not None:
                    axes.plot([low, high], [height, height], color="#808080", linewidth=2)
        axes.set_yticks(at, [row.quantity for row in mine], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("multiple" if unit == "x" else unit)
    if units:
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), fontsize=8)
    return figure
