"""Pictures of our values with confidence intervals, and of the paper's values."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from leeward.report.style import COLOURS
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad import analysis, imbalance, paper, storage, tasks
from leeward_reproduce.sinbad.sweeps import DAY_TABLES, HOUR, MACHINES, OPT, TASKS, policy, short
from leeward_reproduce.sweeps import Cells, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = "#111111"
"""Colour of the paper's values."""
_REMOTE = re.compile(r", [12] remote$")
_LINES = {"uniform": "-", "sinbad": "--", "sinbad-file": "--", "leeward": "-."}


def intervals(_: Mapping[Sweep, Cells], rows: Sequence[Row]) -> "Figure":
    """A panel for each unit, with our value, its interval and the paper's value of each measured row.

    Rows that differ only in the number of remote racks share a line of the panel.
    """
    lines: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.ours is not None:
            label = _REMOTE.sub("", row.quantity)
            lines.setdefault(row.unit, {}).setdefault(label, []).append(row)
    counts = [len(labels) for labels in lines.values()]
    fig, panels = _panels(len(lines), (8.6, 0.8 * len(lines) + 0.24 * sum(counts)), counts)
    for axes, (unit, labels) in zip(panels, lines.items(), strict=True):
        for at, (label, several) in enumerate(reversed(labels.items())):
            for row in several:
                _point(axes, row, at, _colour(label))
        if unit == "x":
            axes.axvline(1, color=PAPER, linewidth=0.8)
        axes.set_yticks(range(len(labels)), list(reversed(labels)), fontsize=8)
        axes.set_ylim(-0.7, len(labels) - 0.3)
        axes.set_xlabel({"x": "factor; right of 1 is better", "": "Cv"}.get(unit, unit))
    both = any(_REMOTE.search(row.quantity) for row in rows)
    words = "; points: 1 remote rack, squares: 2" if both else ""
    paper_words = "; diamonds: the paper" if any(row.paper is not None for row in rows) else ""
    fig.suptitle(f"ours, with 95 % intervals{words}{paper_words}", fontsize=9)
    return fig


def _point(axes: "Axes", row: Row, at: int, colour: str) -> None:
    two = row.quantity.endswith("2 remote")
    height = at - 0.2 if two else at + 0.1
    if row.ci_low is not None and row.ci_high is not None:
        axes.plot([row.ci_low, row.ci_high], [height, height], color=colour, linewidth=2.5, alpha=0.5)
    fill = "white" if two else colour
    axes.plot(
        row.ours or 0.0,
        height,
        "s" if two else "o",
        markerfacecolor=fill,
        markeredgecolor=colour,
        markersize=4.5,
    )
    if row.paper is not None and not two:
        axes.plot(row.paper, at, "D", markerfacecolor="white", markeredgecolor=PAPER, markersize=6)


def task_shares(results: Mapping[Sweep, Cells], _: Sequence[Row]) -> "Figure":
    """Figure 4."""
    fig, (axes,) = _panels(1, (6.4, 3.9))
    cells, uniform = results[TASKS], policy("uniform", 1)
    for reducers, line, word in ((True, "-", "reducers"), (False, "--", "other writers")):
        shares = [tasks.write_shares(cells, uniform, seed, reducers) for seed in cells.seeds]
        _cumulative(axes, 100 * numpy.concatenate(shares), COLOURS["uniform"], line, word)
    for reported, word in ((paper.REDUCERS_HALF, "reducers"), (paper.OTHERS_HALF, "other writers")):
        axes.plot(50, 100 - reported, "D", markerfacecolor="white", markeredgecolor=PAPER, markersize=8)
        axes.annotate(f"the paper: {word}", (50, 100 - reported), xytext=(8, -3), textcoords="offset points")
    axes.set_xlim(0, 103)
    axes.set_xlabel("share of a task's time in writing, %")
    axes.set_ylabel("tasks with at most this, %")
    axes.legend(loc="upper left")
    return fig


def input_imbalance(results: Mapping[Sweep, Cells], _: Sequence[Row]) -> "Figure":
    """Figure 5."""
    fig, (axes,) = _panels(1, (6.4, 3.9))
    hour = results[HOUR]
    for kind, line, word in (("rack_downlink", "-", "downlinks"), ("rack_uplink", "--", "uplinks")):
        _cumulative(axes, _pooled(hour, policy("uniform", 1), kind), COLOURS["uniform"], line, word)
    axes.plot(
        1,
        50,
        "D",
        markerfacecolor="white",
        markeredgecolor=PAPER,
        markersize=8,
        label="the paper: about half above 1",
    )
    axes.set_xlabel("Cv of loads of racks' links in 10 s")
    axes.set_ylabel("intervals with at most this, %")
    axes.legend(loc="lower right")
    return fig


def rack_imbalance(results: Mapping[Sweep, Cells], _: Sequence[Row]) -> "Figure":
    """Figure 8."""
    names = [("uniform", policy("uniform", 1)), (OPT, policy(OPT, 1)), ("leeward", policy("leeward", 1))]
    kinds = (("rack_uplink", "racks' uplinks"), ("rack_downlink", "racks' downlinks"))
    reported = [paper.CV_DECREASE[f"{kind}_cv"] for kind, _ in kinds]
    return _imbalance(results[HOUR], names, kinds, reported)


def machine_imbalance(results: Mapping[Sweep, Cells], _: Sequence[Row]) -> "Figure":
    """Figure 9."""
    names = [(name, name) for name in ("uniform", "sinbad", "leeward")]
    kinds = (("host_egress", "links out of machines"), ("host_ingress", "links into machines"))
    reported = [paper.MACHINES_CV_DECREASE[f"{kind}_cv"] for kind, _ in kinds]
    return _imbalance(results[MACHINES], names, kinds, reported)


def stored(results: Mapping[Sweep, Cells], _: Sequence[Row]) -> "Figure":
    """Figure 10: distribution of blocks and bytes over racks."""
    fig, panels = _panels(2, (9.0, 3.6), columns=True)
    names = ("uniform", OPT, "leeward")
    for axes, column in zip(panels, ("blocks", "bytes"), strict=True):
        tables = results[DAY_TABLES]
        amounts = [storage.by_rack(tables, policy(name, 1), 1, column) for name in names]
        shares = [100 * one / max(float(one.sum()), 1) for one in amounts]
        edges = numpy.histogram_bin_edges(numpy.concatenate(shares), 20)
        for name, share in zip(names, shares, strict=True):
            density, edges = numpy.histogram(share, edges)
            colour, word = _colour(name), short(name)
            axes.stairs(100 * density / len(share), edges, color=colour, linestyle=_LINES[word], label=word)
        axes.axvline(100 / analysis.RACKS, color=PAPER, linewidth=0.8)
        axes.set_xlabel(f"share of all {column} that a rack holds, %")
        axes.set_ylabel("racks, %")
    panels[0].legend(loc="upper left")
    panels[1].text(0.98, 0.95, "line: even", ha="right", va="top", transform=panels[1].transAxes, fontsize=9)
    return fig


def slowdown(_: Mapping[Sweep, Cells], __: Sequence[Row]) -> "Figure":
    """Figure 12."""
    fig, (axes,) = _panels(1, (6.4, 3.9))
    for at, share in enumerate(analysis.CONTENDED):
        count = round(share * analysis.RACKS)
        exact = [100 * analysis.slowdown(count, copies) for copies in analysis.COPIES]
        near = [100 * analysis.approximation(count / analysis.RACKS, copies) for copies in analysis.COPIES]
        grey = str(0.75 - 0.15 * at)
        axes.plot(analysis.COPIES, exact, "o-", color=grey, markersize=3)
        axes.plot(analysis.COPIES, near, ":", color=COLOURS["leeward"], linewidth=1.2)
        axes.annotate(f"{100 * share:.0f} %", (10, exact[-1]), xytext=(5, -3), textcoords="offset points")
    axes.set_xlabel("off-rack copies, f")
    axes.set_ylabel("blocks with a slow copy, %")
    axes.set_title("share of 150 links contended; dotted: 1 - (1 - c/n)^f", fontsize=9)
    return fig


def _imbalance(
    cells: Cells,
    names: Sequence[tuple[str, str]],
    kinds: Sequence[tuple[str, str]],
    reported: Sequence[float],
) -> "Figure":
    fig, panels = _panels(2, (9.0, 3.6), columns=True)
    for axes, (kind, words), fall in zip(panels, kinds, reported, strict=True):
        medians = {}
        for name, selection in names:
            pooled = _pooled(cells, selection, kind)
            if len(pooled):
                medians[name] = float(numpy.median(pooled))
            word = short(name)
            _cumulative(axes, pooled, _colour(name), _LINES[word], word)
        if names[0][0] in medians:
            reached = medians[names[0][0]] - fall
            axes.plot(reached, 50, "D", markerfacecolor="white", markeredgecolor=PAPER, markersize=8)
            axes.annotate(
                f"the paper: -{fall}",
                (reached, 50),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        axes.set_xlabel(f"Cv of loads of {words} in 10 s")
        axes.set_ylabel("intervals with at most this, %")
        axes.legend(loc="lower right")
    return fig


def _pooled(cells: Cells, selection: str, kind: str) -> Any:
    return numpy.sort(numpy.concatenate([imbalance.cv(cells, selection, seed, kind) for seed in cells.seeds]))


def _cumulative(axes: "Axes", values: Any, colour: str, line: str, label: str) -> None:
    if not len(values):
        return
    # A hundred points are enough, and keep the file small.
    shares = numpy.linspace(0, 100, 101)
    axes.plot(numpy.percentile(values, shares), shares, color=colour, linestyle=line, label=label)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)


def _colour(text: str) -> str:
    """Colour of the last policy that a text names, other than the default if possible."""
    named = re.findall("|".join(sorted(COLOURS, key=len, reverse=True)), text)
    others = [name for name in named if name != "uniform"]
    return COLOURS[(others or named)[-1]] if named else PAPER


def _panels(
    count: int, size: tuple[float, float], heights: Sequence[int] | None = None, columns: bool = False
) -> "tuple[Figure, list[Axes]]":
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shape = (1, count) if columns else (count, 1)
    ratios = None if columns else heights
    fig, axes = pyplot.subplots(
        *shape, figsize=size, layout="constrained", squeeze=False, height_ratios=ratios
    )
    return fig, list(axes.flat)
