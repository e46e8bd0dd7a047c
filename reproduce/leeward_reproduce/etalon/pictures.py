"""Etalon's figures, with our values as lines and the paper's values as marks."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from leeward_reproduce.etalon import experiments, paper
from leeward_reproduce.etalon.experiments import AT, EARLY, Improvement, LongFlowRun, Rings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#1f5fa8", "#c25a00", "#2f7d32", "#7a3f9d")
Line = tuple[str, Sequence[float], Sequence[float], Sequence[float] | None]
"""Name, x, our y, the paper's y."""


def _plot(lines: Sequence[Line], x: str, y: str, log: bool = False) -> "Figure":
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.0, 3.8), layout="constrained")
    for colour, (name, at, ours, papers) in zip(_COLOURS, lines, strict=False):
        axes.plot(at, ours, "-", color=colour, label=name)
        if papers is not None:
            axes.plot(at, papers, "o", color=colour, markerfacecolor="none", label=f"{name}, paper")
    if log:
        axes.set_xscale("log", base=2)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
    return figure


def _mean(
    outcomes: Sequence[Sequence[LongFlowRun]], get: Callable[[LongFlowRun], float | None]
) -> list[float]:
    points = range(len(outcomes[0]))
    return [
        float(numpy.mean([numpy.nan if (value := get(one[at])) is None else value for one in outcomes]))
        for at in points
    ]


def sequences(points: Sequence[int], what: str) -> Callable[[Any], "Figure"]:
    """Figures 5a and 5b: arrivals of a flow since a day ended, and the capacity of the links."""

    def draw(outcomes: Any) -> "Figure":
        from matplotlib import colormaps, pyplot

        figure, axes = pyplot.subplots(figsize=(6.0, 3.8), layout="constrained")
        for week in range(3):
            began = 1400 * (week + 1) - 180
            axes.axvspan(began, began + 180, color="#1f5fa8", alpha=0.1, linewidth=0)
        for at, point in enumerate(points):
            sequences_seen = [one[at].sequence for one in outcomes if one[at].sequence]
            if sequences_seen:
                colour = colormaps["viridis"](0.9 * at / (len(points) - 1))
                line = numpy.mean(sequences_seen, axis=0)
                axes.plot(experiments.SINCE_US, line, color=colour, label=what.format(point))
        axes.plot(experiments.SINCE_US, experiments.optimum(), "--", color="#111111", label="optimum")
        axes.set_xlabel("time, us; circuits are up where it is shaded")
        axes.set_ylabel("next expected byte, thousands")
        axes.set_xlim(0, experiments.WEEKS_US)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
        return figure

    return draw


def utilization(points: Sequence[int], x: str, papers: Sequence[float]) -> Callable[[Any], "Figure"]:
    """Figures 6a and 6b."""

    def draw(outcomes: Any) -> "Figure":
        ours = _mean(outcomes, lambda one: one.used)
        return _plot([("circuit utilization", points, ours, papers)], x, "circuit utilization, %")

    return draw


def medians(
    points: Sequence[int], x: str, papers: Mapping[str, Sequence[float]]
) -> Callable[[Any], "Figure"]:
    """Figures 7a and 7b."""

    def draw(outcomes: Any) -> "Figure":
        lines: list[Line] = [
            (path, points, _mean(outcomes, lambda one, path=path: one.medians[path]), papers[path])  # type: ignore[misc]
            for path in papers
        ]
        return _plot(lines, x, "median latency, us")

    return draw


def retcp(outcomes: Sequence[dict[str, Sequence[LongFlowRun]]]) -> "Figure":
    """Figure 8: utilization by lead time, for both times of notification."""
    points = list(paper.TAU)
    papers = [paper.RETCP_STATIC[0], *paper.RETCP_USED]
    lines: list[Line] = [
        (f"reTCP {ece}", points, _mean([one[ece] for one in outcomes], lambda one: one.used), at)
        for ece, at in ((EARLY, papers), (AT, None))
    ]
    return _plot(lines, "queues grow this early, us", "circuit utilization, %")


def tails(outcomes: Sequence[dict[str, Sequence[LongFlowRun]]]) -> "Figure":
    """Figure 9: 99th percentiles against utilization."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.0, 3.8), layout="constrained")
    kinds = (
        ("static", paper.STATIC_USED, paper.STATIC_TAILS),
        ("resized", paper.RESIZED_USED[1:], paper.RESIZED_TAILS),
        ("told", (paper.RETCP_STATIC[0], *paper.RETCP_USED), (paper.RETCP_STATIC[2], *paper.RETCP_TAILS)),
    )
    for colour, (kind, x, y) in zip(_COLOURS, kinds, strict=False):
        ours = [one[kind] for one in outcomes]
        at, tail = _mean(ours, lambda one: one.used), _mean(ours, lambda one: one.tail)
        axes.plot(at, tail, "-", color=colour, label=kind)
        axes.plot(x, y, "o", color=colour, markerfacecolor="none", label=f"{kind}, paper")
    axes.set_xlabel("circuit utilization, %")
    axes.set_ylabel("p99 latency, us")
    axes.legend(fontsize=8)
    return figure


def improvement(outcomes: Sequence[Sequence[Improvement]]) -> "Figure":
    """Figure 10."""
    ours = []
    for at in range(len(paper.TRIPS)):
        values = [value for one in outcomes if (value := one[at].percent) is not None]
        ours.append(float(numpy.mean(values)) if values else float("nan"))
    return _plot(
        [("improvement", paper.TRIPS, ours, paper.IMPROVED)],
        "round trips on the circuit in a day",
        "lower median latency, %",
        log=True,
    )


def completion(outcomes: Sequence[dict[str, Rings]]) -> "Figure":
    """Figures 12 to 15: completion times and throughputs of small and big flows."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 4, figsize=(11.0, 3.4), sharey=True, layout="constrained")
    kinds = (
        ("small", "small flows, ms"),
        ("big", "big flows, ms"),
        ("small_gbps", "small flows, Gb/s"),
        ("big_gbps", "big flows, Gb/s"),
    )
    for axes, (kind, label) in zip(panels, kinds, strict=True):
        for at, system in enumerate(outcomes[0]):
            values = numpy.sort(numpy.concatenate([getattr(one[system], kind) for one in outcomes]))
            share = 100 * numpy.arange(1, len(values) + 1) / len(values)
            axes.plot(values, share, color=_COLOURS[at % len(_COLOURS)], label=system)
        axes.set_xscale("log")
        axes.set_xlabel(label)
    panels[0].set_ylabel("flows with at most this, %")
    panels[0].legend(fontsize=8)
    return figure


def by_switch(outcomes: Sequence[dict[str, Rings]]) -> "Figure":
    """Figure 16: bytes by switch."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.6, 3.8), layout="constrained")
    at = numpy.arange(len(paper.SYSTEMS))
    runs = [[one[system] for one in outcomes] for system in paper.SYSTEMS]
    packet = numpy.array([numpy.mean([one.packet_gib for one in seeds]) for seeds in runs])
    circuit = numpy.array([numpy.mean([one.circuit_gib for one in seeds]) for seeds in runs])
    axes.bar(at, packet, 0.6, color=_COLOURS[0], label="packets")
    axes.bar(at, circuit, 0.6, bottom=packet, color=_COLOURS[1], label="circuits")
    axes.plot(at, paper.BY_PACKETS, "o", color="#111111", markerfacecolor="none", label="packets, paper")
    both = numpy.add(paper.BY_PACKETS, paper.BY_CIRCUITS)
    axes.plot(at, both, "s", color="#111111", markerfacecolor="none", label="both, paper")
    axes.set_xticks(at, paper.SYSTEMS, rotation=45, ha="right")
    axes.set_ylabel("sent, GiB")
    axes.set_ylim(top=1.25 * max(float((packet + circuit).max()), float(both.max())))
    axes.legend(fontsize=8, ncol=4, loc="upper center")
    return figure


def lines(
    panels: Mapping[str, Sequence[tuple[str, Sequence[float], Sequence[float]]]], x: str, log: set[str]
) -> "Figure":
    """A panel for each label of a y axis, with named lines over an x axis in powers of two.

    The y axes whose labels are in `log` are logarithmic.
    """
    from matplotlib import pyplot

    figure, axes_of_panels = pyplot.subplots(1, len(panels), figsize=(8.6, 3.6), layout="constrained")
    for axes, (y, named) in zip(axes_of_panels, panels.items(), strict=True):
        for colour, (name, at, values) in zip(_COLOURS, named, strict=False):
            axes.plot(at, values, "o-", color=colour, label=name)
        axes.set_xscale("log", base=2)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if y in log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
    axes_of_panels[0].legend(fontsize=8)
    return figure


def grouped_bars(names: Sequence[str], values: Mapping[str, Sequence[float]], y: str) -> "Figure":
    """Groups of bars by name, a bar for each kind."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.6, 3.8), layout="constrained")
    at, width = numpy.arange(len(names)), 0.8 / len(values)
    for number, (colour, (kind, heights)) in enumerate(zip(_COLOURS, values.items(), strict=False)):
        axes.bar(at + (number - (len(values) - 1) / 2) * width, heights, width, color=colour, label=kind)
    axes.set_xticks(at, names, rotation=30, ha="right")
    axes.set_ylabel(y)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    axes.legend(fontsize=8, ncols=len(values), loc="upper center")
    return figure
