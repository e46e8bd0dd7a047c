"""Templates of figures 11 to 13 and 21 to 23, and of table 1, for the tables of `leeward impact`.

The paper measured Google's fleet, which is private. Curves show the values of the tables, and marks show the
paper's values for comparison. With synthetic latencies, the curves are those used to generate the latencies.

    leeward impact ... --by operation,compute --out impact
    impact_figures.TEMPLATES["12b"].draw(impact_figures.read("impact"))
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
from pyarrow import parquet

from leeward.impact.pictures import COLOURS
from leeward.report.style import LINES, decades, name_curves, plain
from leeward_reproduce.hotspots import paper
from leeward_reproduce.rows import Row, computed_row, missing_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRIVATE = "the paper's value is of Google's fleet, which is private"
_LEFT = 30.0
"""Utilization up to which the name of a mark is to its right, so that the name stays inside the axes."""
_LOG = 8.0
"""Largest inflation that a linear axis shows; above it, the axis is logarithmic."""
FULL = 100.0
"""Utilization in percent of the mark for a load-tolerance that is never reached in the paper."""


@dataclass(frozen=True)
class Tables:
    """Tables of `leeward impact --out`: see `leeward.impact.tables` for the columns."""

    buckets: pyarrow.Table
    tolerance: pyarrow.Table

    def curves(self, part: str, keys: Sequence[str]) -> dict[tuple[str, ...], list[tuple[float, float]]]:
        """Points of each kind: middle of a bucket in percent, and inflation of p95; judged buckets only."""
        results: dict[tuple[str, ...], list[tuple[float, float]]] = {}
        for row in self.buckets.to_pylist():
            if row["part"] == part and row["enough"]:
                middle = 50 * (row["from_utilization"] + row["to_utilization"])
                results.setdefault(_kind(row, keys), []).append((middle, row["p95_inflation"]))
        return results

    def figures(
        self, figure: str, factor: float | None, keys: Sequence[str], part: str = "total"
    ) -> dict[tuple[str, ...], dict[str, Any]]:
        """Row of each kind for a figure of p95: `load-tolerance` at a factor, or `hotspot-inflation`."""
        return {
            _kind(row, keys): row
            for row in self.tolerance.to_pylist()
            if (row["figure"], row["factor"], row["percentile"], row["part"]) == (figure, factor, "p95", part)
        }


@dataclass(frozen=True)
class Template:
    """A figure drawn from tables.

    Attributes:
        title: Title.
        by: Fields that `leeward impact --by` needs for these tables.
        draw: Draws the figure.
    """

    title: str
    by: tuple[str, ...]
    draw: Callable[[Tables], "Figure"]


def read(folder: str | PathLike[str]) -> Tables:
    """The tables in a folder of `leeward impact --out`."""
    return Tables(
        *(parquet.read_table(Path(folder) / f"{name}.parquet") for name in ("buckets", "tolerance"))
    )


def table_1(tables: Tables) -> list[Row]:
    """Columns of table 1 for each operation: load-tolerance at 1.5x and at 2x, and hotspot-inflation."""
    result = []
    columns = (
        ("load-tolerance", 1.5, "load-tolerance at 1.5x", "%", 100.0),
        ("load-tolerance", 2.0, "load-tolerance at 2x", "%", 100.0),
        ("hotspot-inflation", None, "hotspot-inflation", "x", 1.0),
    )
    for at, (figure, factor, words, unit, scale) in enumerate(columns):
        for (name,), row in tables.figures(figure, factor, ("operation",)).items():
            label, reported = f"{words}, {name}", paper.QUERIES.get(name, (None,) * 3)[at]
            note = PRIVATE if name in paper.QUERIES else "not of the paper's"
            if row["value"] is None:
                never = row["judged_to"] is not None
                why = f"not reached up to {100 * row['judged_to']:g} %" if never else "too few latencies"
                result.append(missing_row("table-1", label, unit, reported, why))
                continue
            result.append(computed_row("table-1", label, unit, scale * row["value"], reported, note))
    return result


def aggregation(tables: Tables) -> "Figure":
    """Figure 11: parts of an aggregation; marks show where each part of the paper's reaches 1.5x."""
    figure, (axes,) = _panels(1)
    _curves(axes, tables.curves("total", ("operation",)))
    marks = {name: (value, 1.5) for name, value in paper.AGGREGATION.items()}
    _marks(axes, marks)
    return _finish(figure, axes)


def queries(tables: Tables) -> "Figure":
    """Figure 12a: queries; marks are the paper's hotspot-inflation of each query."""
    figure, (axes,) = _panels(1)
    _curves(axes, tables.curves("total", ("operation",)))
    _marks(axes, {name: (77.5, values[2]) for name, values in paper.QUERIES.items()})
    return _finish(figure, axes)


def compute_ratios(tables: Tables) -> "Figure":
    """Figure 12b: hotspot-inflation by compute ratio; the paper's shuffle flush at 0.1 is marked."""
    figure, (axes,) = _panels(1)
    points: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for (name, ratio), row in tables.figures("hotspot-inflation", None, ("operation", "compute")).items():
        low, to, high = ratio.partition(" to ")
        if to and row["value"] is not None:
            points.setdefault((name,), []).append(((float(low) + float(high)) / 2, row["value"]))
    _curves(axes, points)
    _marks(axes, {"shuffle-flush": (paper.FLUSH_RATIO, paper.FLUSH_INFLATION)})
    axes.set_xlim(0, 1)
    axes.set_xlabel("compute ratio of a query")
    axes.set_ylabel("hotspot-inflation of p95")
    return _finish(figure, axes)


def file_access(tables: Tables) -> "Figure":
    """Figure 13: file reads and writes, with their total latency and the network's part of it."""
    figure, panels = _panels(2)
    for axes, (operation, (tolerance, hotspot)) in zip(panels, paper.FILES.items(), strict=True):
        results: dict[tuple[str, ...], list[tuple[float, float]]] = {
            (part,): points
            for part in ("total", "network")
            for (name,), points in tables.curves(part, ("operation",)).items()
            if name == operation
        }
        _curves(axes, results)
        marks = {"total": (77.5, hotspot), "2x": (tolerance, 2.0)}
        _marks(axes, marks | ({"network": (77.5, paper.FILES_NETWORK)} if operation == "file-read" else {}))
        axes.set_title(operation, fontsize=9, loc="left")
    return _finish(figure, *panels)


def sizes(tables: Tables) -> "Figure":
    """Figure 21: load-tolerance at 2x by size of operation, with marks of the paper's HDD reads."""
    figure, axes = _by_size(tables, ("operation", "size"), paper.SIZES)
    axes.axhline(FULL, color="#444444", linewidth=0.8, linestyle=":")
    axes.annotate("full", (0.005, FULL + 1), xycoords=("axes fraction", "data"), fontsize=8)
    axes.set_ylabel("load-tolerance at 2x, utilization, %")
    return figure


def classes(tables: Tables) -> "Figure":
    """Figure 22: load-tolerance at 2x by size and class of service; in the paper, PC's is above NC's.

    Utilization is weighted-effective: the value of a full link differs by class and may be above 100 %.
    Therefore the figure has no line at a full link.
    """
    figure, axes = _by_size(tables, ("operation", "class", "size"), {})
    axes.set_ylabel("load-tolerance at 2x, effective utilization, %")
    return figure


def media(tables: Tables) -> "Figure":
    """Figure 23: reads by medium, and the paper's values for SSDs and its RamStore."""
    figure, (axes,) = _panels(1)
    _curves(axes, tables.curves("total", ("medium",)))
    _marks(axes, {name: (77.5, hotspot) for name, (_, hotspot) in paper.MEDIA.items()})
    _marks(axes, {f"{name}, 2x": (tolerance, 2.0) for name, (tolerance, _) in paper.MEDIA.items()})
    return _finish(figure, axes)


TEMPLATES = {
    "11": Template("parts of an aggregation", ("operation",), aggregation),
    "12a": Template("queries", ("operation",), queries),
    "12b": Template("hotspot-inflation by compute ratio", ("operation", "compute"), compute_ratios),
    "13": Template("file reads and writes, and their time on the network", ("operation",), file_access),
    "21": Template("load-tolerance by size", ("operation", "size"), sizes),
    "22": Template("load-tolerance by size and class of service", ("operation", "class", "size"), classes),
    "23": Template("reads by medium", ("medium",), media),
}
"""Templates by the number of the paper's figure."""


def _kind(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple("(not stated)" if row[key] is None else row[key] for key in keys)


def _panels(count: int) -> "tuple[Figure, Sequence[Axes]]":
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, count, figsize=(6.4 if count == 1 else 9.6, 3.9), squeeze=False, layout="constrained"
    )
    return figure, list(panels[0])


def _curves(axes: "Axes", results: Mapping[tuple[str, ...], Sequence[tuple[float, float]]]) -> None:
    for at, (kind, points) in enumerate(results.items()):
        across, up = zip(*sorted(points), strict=True)
        style: dict[str, Any] = {
            "color": COLOURS[at % len(COLOURS)],
            # The lists of colours and lines are equally long, so a repeated colour gets another line.
            "linestyle": LINES[(at + at // len(COLOURS)) % len(LINES)],
            "label": " ".join(kind),
        }
        axes.plot(across, up, marker=".", **style)
    for factor in (1.5, 2.0):
        axes.axhline(factor, color="#444444", linewidth=0.8, linestyle=":")
    most = max((up for points in results.values() for _, up in points), default=1.0)
    if most > _LOG:
        axes.set_yscale("log")
        axes.set_ylim(0.8, 1.5 * most)
        plain(axes.yaxis, decades(-1, 4))
    axes.set_xlim(0, 100)
    axes.set_xlabel("utilization of an operation's busiest link, %")
    axes.set_ylabel("p95 of latency over that of the lowest bucket")


def _marks(axes: "Axes", values: Mapping[str, tuple[float, float]]) -> None:
    """Draws the paper's values as crosses with names."""
    for at, (name, (across, up)) in enumerate(values.items()):
        axes.plot([across], [up], marker="x", color="#111111", linestyle="none", label="_paper")
        # If marks share a coordinate, each name is higher than the previous one, so names do not overlap.
        lift = (
            4 + 9 * at
            if any(len(set(coordinates)) < len(values) for coordinates in zip(*values.values(), strict=True))
            else 4
        )
        axes.annotate(
            f"paper: {name}",
            (across, up),
            (-2, lift),
            textcoords="offset points",
            fontsize=7,
            ha="right" if across > _LEFT else "left",
        )


def _by_size(
    tables: Tables, keys: Sequence[str], reported: Mapping[str, float | None]
) -> "tuple[Figure, Axes]":
    """Bars of load-tolerance at 2x; if it is not reached, the bar is empty and ends at the last bucket."""
    from matplotlib.patches import Patch

    figure, (axes,) = _panels(1)
    results = tables.figures("load-tolerance", 2.0, keys)
    order = list(dict.fromkeys(kind[-1] for kind in results))
    kinds = list(dict.fromkeys(kind[:-1] for kind in results))
    width = 0.8 / max(len(kinds), 1)
    keys_drawn, beyond, most = [], False, FULL
    for at, kind in enumerate(kinds):
        colour = COLOURS[at % len(COLOURS)]
        keys_drawn.append(Patch(color=colour, label=" ".join(kind)))
        for place, size in enumerate(order):
            row = results.get((*kind, size))
            if row is None:
                continue
            reached = row["value"] is not None
            height = 100 * (row["value"] if reached else row["judged_to"])
            middle = place + (at - (len(kinds) - 1) / 2) * width
            look: dict[str, Any] = {"edgecolor": colour, "linewidth": 1.0}
            look |= {"facecolor": colour} if reached else {"fill": False, "hatch": "///"}
            axes.bar(middle, height, 0.9 * width, **look)
            beyond, most = beyond or not reached, max(most, height)
    if beyond:
        label = "not reached where buckets end"
        keys_drawn.append(Patch(facecolor="none", edgecolor="#444444", hatch="///", label=label))
    marks = {
        size if value is not None else f"{size}, never": (order.index(size), FULL if value is None else value)
        for size, value in reported.items()
        if size in order
    }
    _marks(axes, marks)
    axes.set_xticks(range(len(order)), order)
    # Room for names above the bars.
    axes.set_ylim(0, 1.35 * most)
    axes.set_xlabel("size of an operation")
    axes.legend(handles=keys_drawn, loc="upper left", fontsize=8, ncols=3)
    _note(axes)
    return figure, axes


def _note(axes: "Axes") -> None:
    axes.annotate(PRIVATE, (1, 1.01), xycoords="axes fraction", ha="right", fontsize=7, color="#555555")


def _finish(figure: "Figure", *panels: "Axes") -> "Figure":
    for axes in panels:
        if axes.get_lines():
            name_curves(figure, axes)
    _note(panels[-1])
    return figure
