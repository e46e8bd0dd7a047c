"""Sequence plots as a picture: bytes in order, and packets in the queue."""

from io import StringIO
from typing import TYPE_CHECKING

from leeward._extras import needed
from leeward._native import PacketRun, PacketScenario
from leeward._svg import Svg
from leeward.packets.sequence import Sequence, sequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 8
"""Number of pairs in a picture."""
_BYTES, _QUEUE, _LIMIT, _DAY = "#0b62a4", "#c4411d", "#6f6f6f", "#1f5fa8"


def picture(scenario: PacketScenario, run: PacketRun) -> Svg:
    """Draws sequence plots of the pairs that a scenario samples, as SVG; equal runs give equal bytes.

    Shows, for each of the first few pairs, the bytes that have arrived in order since the end of a day of the
    pair, on average over days; and the queue of the pair with its capacity. Times with a circuit are shaded;
    a darker shade means that more days have a circuit at this time. If the run ends too soon after every day
    of a pair, the pair is drawn from the run's start.
    """
    with needed():
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

    from leeward.report.style import SETTINGS

    pairs = list(dict.fromkeys(scenario.sampled))[:MOST]
    sequences = [plot for pair in pairs if (plot := sequence(run, *pair)) is not None]
    with matplotlib.rc_context(SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(10, max(3.2 * len(sequences), 1.0)), layout="constrained")
        FigureCanvasSVG(figure)
        rows = figure.subplots(max(len(sequences), 1), 2, squeeze=False)
        for (arrivals, queue), plot in zip(rows, sequences, strict=False):
            _draw(arrivals, queue, plot)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
        return Svg(out.getvalue())


def _draw(arrivals: "Axes", queue: "Axes", plot: Sequence) -> None:
    at_us = 1e6 * plot.at_s
    arrivals.plot(at_us, plot.arrived_bytes / 1e6, color=_BYTES)
    arrivals.set_ylabel("arrived in order, MB")
    queue.plot(at_us, plot.queued_packets, color=_QUEUE, label="in the queue")
    queue.plot(at_us, plot.capacity_packets, color=_LIMIT, linestyle="--", label="capacity")
    queue.set_ylabel("packets")
    queue.legend(fontsize=8)
    since = "time of the run" if plot.over == 0 else "since a day ended"
    for axes in (arrivals, queue):
        for start, end, share in _circuits(plot):
            axes.axvspan(1e6 * start, 1e6 * end, color=_DAY, alpha=0.15 * share, linewidth=0)
        axes.set_xlabel(f"{since}, us")
        axes.set_xlim(at_us[0], at_us[-1])
        axes.set_ylim(bottom=0)
    over = {0: "the run", 1: "after one day"}.get(plot.over, f"mean over {plot.over:,} days")
    arrivals.set_title(f"r{plot.source} to r{plot.destination}: {over}", loc="left", fontsize=10)


def _circuits(plot: Sequence) -> list[tuple[float, float, float]]:
    """Start and end of each circuit, and the share of days that have it."""
    result: list[tuple[float, float, float]] = []
    for start, end, share in zip(plot.at_s, plot.at_s[1:], plot.up, strict=False):
        if result and result[-1][1:] == (start, share):
            result[-1] = (result[-1][0], float(end), float(share))
        elif share > 0:
            result.append((float(start), float(end), float(share)))
    return result
