"""Pictures of figures: bars with 95 % confidence intervals, and the thesis' value drawn in."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leeward.report.style import OTHER
from leeward.reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bars(rows: Sequence[Row], unit: str, label: str, line: float | None = None, words: str = "") -> "Figure":
    """A bar for each row of a unit.

    Args:
        rows: Of a figure.
        unit: Which of them are drawn.
        label: Of the axis.
        line: A value to compare all with.
        words: What it is.
    """
    from matplotlib import pyplot

    shown = [row for row in rows if row.unit == unit and row.ours is not None]
    values = [row.ours or 0.0 for row in shown]
    errors = [((row.ci_high or 0.0) - (row.ci_low or 0.0)) / 2 for row in shown]
    figure, axes = pyplot.subplots(figsize=(7.6, 0.9 + 0.26 * len(shown)), layout="constrained")
    axes.barh(
        [row.quantity for row in shown],
        values,
        xerr=errors,
        color=OTHER,
        ecolor="#111111",
        capsize=2,
    )
    for at, row in enumerate(shown):
        if row.paper is not None:
            axes.plot([row.paper], [at], "D", color="#111111", markersize=5)
    if any(row.paper is not None for row in shown):
        axes.plot([], [], "D", color="#111111", markersize=5, label="the thesis")
    if line is not None:
        axes.axvline(line, color="#111111", linewidth=0.8, linestyle="--", label=words)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel(label)
    axes.invert_yaxis()
    return figure
