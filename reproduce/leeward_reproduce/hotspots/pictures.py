"""Pictures of figures 14 to 18; of figures 15 to 18 two windows hour by hour, as means over seeds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

from leeward._arrays import Floats
from leeward.report.style import COLOURS, OTHER
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.chunks import BUCKET, BUCKETS, KINDS
from leeward_reproduce.hotspots.chunks import shares as shares_of
from leeward_reproduce.hotspots.requests import CLASSES
from leeward_reproduce.hotspots.sweeps import CHUNKS, FLEET, FLEET_LOADS, PILOT
from leeward_reproduce.hotspots.tasks import Pairs, windows
from leeward_reproduce.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DAY_HOURS = 24
_CLASS = ("#2a9d5c", "#b9b9b9", "#c8553d")
"""Colours of High, Medium and Low."""
_LINES = (("p98", "-", "98th percentile of ToRs"), ("utilization", "--", "all uplinks"))


def fleet(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 15, normalized by the average before."""
    cells = results[FLEET]
    pairs = [pair for load in FLEET_LOADS for pair in windows(cells, "borg", "utp", value=load)]
    return _normalized(pairs, ("hot",), ("hot compute ToRs, outbound",), ("borg", "utp"))


def pilot(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 16: the 98th percentile of ToRs' utilization, and the utilization of all uplinks together."""
    from matplotlib import pyplot

    pairs = windows(results[PILOT], "borg", "utp")
    fig, axes = pyplot.subplots(figsize=(7.4, 3.6), layout="constrained")
    for metric, line, words in _LINES:
        _two(axes, pairs, metric, line, words, ("borg", "utp"), 1.0)
    axes.axhline(paper.THRESHOLD, color="#111111", linewidth=0.8)
    axes.annotate("hot", (0.005, paper.THRESHOLD + 1.5), xycoords=("axes fraction", "data"), fontsize=8)
    axes.set_ylabel("outbound utilization, %")
    axes.set_ylim(0, 100)
    axes.legend(loc="lower left", fontsize=8)
    return fig


def moves(results: Results, _: Sequence[Row]) -> "Figure":
    """Figures 17 and 18, normalized by the average before."""
    pairs = windows(results[PILOT], "utp-reactive", "utp")
    words = ("tasks moved (figure 17)", "network-intensive tasks put on hot ToRs (figure 18)")
    return _normalized(pairs, ("moves", "violations"), words, ("utp-reactive", "utp"))


def chunk_shares(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 14: a bar for each bucket of 5 %, before CCP and with it."""
    cells = results[CHUNKS]
    return class_panels(
        {policy: {kind: shares_of(cells, policy, kind) for kind in KINDS} for policy in ("uniform", "ccp")}
    )


def class_panels(shares: Mapping[str, Mapping[str, Floats]]) -> "Figure":
    """Panels of two policies and two kinds of requests, with results of `chunks.bucket_shares`."""
    from matplotlib import pyplot

    fig, panels = pyplot.subplots(2, 2, figsize=(8.6, 5.0), sharex=True, sharey=True, layout="constrained")
    middles = 100 * BUCKET * (numpy.arange(BUCKETS) + 0.5)
    for row, (policy, of_policy) in zip(panels, shares.items(), strict=True):
        for axes, (kind, values) in zip(row, of_policy.items(), strict=True):
            drawn = numpy.nan_to_num(values)
            bottom = numpy.zeros(BUCKETS)
            for at, name in enumerate(CLASSES):
                axes.bar(middles, drawn[:, at], 4.4, bottom, color=_CLASS[at], label=f"{name}-Uplink")
                bottom += drawn[:, at]
            axes.set_title(f"{kind}, {policy}", fontsize=9)
    for axes in panels[1]:
        axes.set_xlabel("utilization of the ToR, %")
    for axes in panels[:, 0]:
        axes.set_ylabel("requests, %")
    keys = panels[0, 0].get_legend_handles_labels()
    fig.legend(*keys, loc="outside upper center", fontsize=8, ncols=len(CLASSES))
    return fig


def _normalized(
    pairs: Pairs,
    metrics: Sequence[str],
    titles: Sequence[str],
    policies: tuple[str, str],
) -> "Figure":
    from matplotlib import pyplot

    fig, panels = pyplot.subplots(
        len(metrics), 1, figsize=(7.4, 1.0 + 2.5 * len(metrics)), squeeze=False, layout="constrained"
    )
    for axes, metric, title in zip(panels[:, 0], metrics, titles, strict=True):
        before = float(numpy.nanmean(_mean(pairs, metric, 0)))
        _two(axes, pairs, metric, "-", "", policies, before if before > 0 else 1.0)
        axes.axhline(1, color="#111111", linewidth=0.8)
        axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
        axes.set_ylabel("over the mean before")
        axes.set_title(title, fontsize=9)
        axes.legend(loc="upper right", fontsize=8, ncols=2)
    return fig


def _two(
    axes: "Axes",
    pairs: Pairs,
    metric: str,
    line: str,
    words: str,
    policies: tuple[str, str],
    unit: float,
) -> None:
    """Draws the window before the change left of zero, and the window after it right of zero."""
    for at, policy in enumerate(policies):
        values = _mean(pairs, metric, at) / unit
        first = -len(values) if at == 0 else 0
        days = (first + numpy.arange(len(values)) + 0.5) / _DAY_HOURS
        label = f"{words}, {policy}" if words else policy
        axes.plot(days, values, line, color=COLOURS.get(policy, OTHER), linewidth=1.1, label=label)
    axes.axvline(0, color="#111111", linewidth=0.8, linestyle=":")
    axes.set_xlabel("days from the change")


def _mean(pairs: Pairs, metric: str, at: int) -> Floats:
    """Mean of each hour over the seeds that have a value; NaN if none has."""
    values = numpy.array([pair[at].hourly(metric) for pair in pairs])
    there = numpy.isfinite(values)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = numpy.where(there, values, 0.0).sum(axis=0) / there.sum(axis=0)
    return mean
