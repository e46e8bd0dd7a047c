"""Pictures of inflation, as SVG; readable in grey, with the intervals behind the curves."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from leeward.impact.curves import Curve
from leeward.impact.settings import MILLION, Settings
from leeward.report.pictures import figure
from leeward.report.style import LINES, decades, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0b62a4", "#c4411d", "#1b7f79", "#7b3fa0", "#b07d00", "#4f4f4f")
TOGETHER = len(COLOURS)
"""Greatest number of curves in a picture."""
_LOG = 8.0
"""Inflation above which the axis is logarithmic."""


def inflation(curves: Sequence[Curve], settings: Settings, percentile: str = "p95") -> str:
    """Inflation by utilization, of up to `TOGETHER` curves.

    Args:
        curves: Curves to draw; a bucket that is not judged leaves a gap.
        settings: Settings of the analysis.
        percentile: `p95` or `median`.
    """

    def fill(axes: "Axes") -> None:
        draw(axes, curves, settings, percentile)

    return figure(fill)


def draw(axes: "Axes", curves: Sequence[Curve], settings: Settings, percentile: str = "p95") -> None:
    """Draws the curves, and lines at the factors and at the hot utilization."""
    most = max(settings.factors) * 1.1
    last = 0.0
    for index, curve in enumerate(curves):
        middles, values, lows, highs = _points(curve, percentile)
        colour, line = COLOURS[index % TOGETHER], LINES[index % len(LINES)]
        axes.plot(middles, values, color=colour, linestyle=line, marker=".", label=curve.name)
        axes.fill_between(middles, lows, highs, color=colour, alpha=0.15, linewidth=0)
        top = max((value for value in values if isfinite(value)), default=1.0)
        # A wide interval must not compress all curves.
        most = max(most, min(max((high for high in highs if isfinite(high)), default=top), 1.5 * top))
        last = max([last, *middles])
    for factor in settings.factors:
        axes.axhline(factor, color="#444444", linewidth=0.8, linestyle=":")
        axes.annotate(f"{factor:g}x", (1.005, factor), xycoords=("axes fraction", "data"), fontsize=8)
    hot = settings.hot_ppm / 10_000
    axes.axvline(hot, color="#444444", linewidth=0.8)
    axes.text(hot + 0.8, 0.94, "hot", transform=axes.get_xaxis_transform())
    axes.set_xlim(0, max(100.0, last + settings.bucket_ppm / 20_000))
    if most > _LOG:
        axes.set_yscale("log")
        axes.set_ylim(0.8, most * 1.3)
        plain(axes.yaxis, decades(-1, 4))
    else:
        axes.set_ylim(min(0.8, *axes.get_ylim()), most * 1.08)
    axes.set_xlabel("utilization of an operation's busiest link, %")
    axes.set_ylabel(f"{percentile} of latency over that of the lowest bucket")


def _points(curve: Curve, percentile: str) -> tuple[list[float], list[float], list[float], list[float]]:
    """Middles of buckets in percent, inflation at them, and the ends of confidence intervals; NaN in gaps."""
    points: tuple[list[float], list[float], list[float], list[float]] = ([], [], [], [])
    before = None
    for bucket in curve.judged:
        middle = (bucket.low_ppm + bucket.high_ppm) / 2 * 100 / MILLION
        result = bucket.inflation[percentile]
        if result.value is None:
            continue
        if before is not None and bucket.low_ppm != before:
            for part in points:
                part.append(float("nan"))
        low = result.value if result.low is None else result.low
        high = result.value if result.high is None else result.high
        for part, value in zip(points, (middle, result.value, low, high), strict=True):
            part.append(value)
        before = bucket.high_ppm
    return points
