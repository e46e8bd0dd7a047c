"""Pictures of figures: bars with 95 % confidence intervals, and the thesis' value if it has one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leeward.report.style import OTHER
from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WAYS = {
    "1.5x average": "#b07d00",
    "2x average": "#e08e45",
    "knee": "#6f6f6f",
    "effective bandwidth": "#0b62a4",
    "effective bandwidth, thirds": "#7fb2d9",
}
"""Colours of methods of limits."""
OVER = " over compactor"
"""Suffix of quantities that are a number of servers over the compactor's number of servers."""


def ways(rows: Sequence[Row]) -> "Figure":
    """A group of bars for each set of workloads: servers of each method over the compactor's.

    Args:
        rows: Rows of a figure. Rows with a quantity such as `random SLOs: knee over compactor` are drawn.
    """
    from matplotlib import pyplot

    groups: dict[str, dict[str, Row]] = {}
    for row in rows:
        words, _, way = row.quantity.removesuffix(OVER).rpartition(": ")
        if row.quantity.endswith(OVER):
            groups.setdefault(words, {})[way] = row
    height = 0.8 / len(WAYS)
    figure, axes = pyplot.subplots(figsize=(7.6, 1.2 + 0.75 * len(groups)), layout="constrained")
    for at, (way, colour) in enumerate(WAYS.items()):
        visible = [(place, of[way]) for place, of in enumerate(groups.values()) if way in of]
        axes.barh(
            [place + (at - (len(WAYS) - 1) / 2) * height for place, _ in visible],
            [row.ours or 0.0 for _, row in visible],
            height,
            xerr=[((row.ci_high or 0.0) - (row.ci_low or 0.0)) / 2 for _, row in visible],
            color=colour,
            ecolor="#111111",
            capsize=1.5,
            error_kw={"elinewidth": 0.8},
            label=way,
        )
    axes.axvline(1.0, color="#111111", linewidth=0.8, linestyle="--", label="compactor")
    axes.set_yticks(range(len(groups)), list(groups))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("servers over the compactor's")
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3, fontsize=8)
    return figure


def bars(rows: Sequence[Row], unit: str, label: str, line: float | None = None, words: str = "") -> "Figure":
    """A bar for each row of a unit.

    Args:
        rows: Rows of a figure.
        unit: Unit of the rows to draw.
        label: Label of the axis.
        line: Value of a reference line across all bars.
        words: Label of the line.
    """
    from matplotlib import pyplot

    visible = [row for row in rows if row.unit == unit and row.ours is not None]
    values = [row.ours or 0.0 for row in visible]
    errors = [((row.ci_high or 0.0) - (row.ci_low or 0.0)) / 2 for row in visible]
    figure, axes = pyplot.subplots(figsize=(7.6, 0.9 + 0.26 * len(visible)), layout="constrained")
    axes.barh(
        [row.quantity for row in visible],
        values,
        xerr=errors,
        color=OTHER,
        ecolor="#111111",
        capsize=2,
    )
    for at, row in enumerate(visible):
        if row.paper is not None:
            axes.plot([row.paper], [at], "D", color="#111111", markersize=5)
    if any(row.paper is not None for row in visible):
        axes.plot([], [], "D", color="#111111", markersize=5, label="the thesis")
    if line is not None:
        axes.axvline(line, color="#111111", linewidth=0.8, linestyle="--", label=words)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper right", ncols=2, fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel(label)
    axes.invert_yaxis()
    return figure
