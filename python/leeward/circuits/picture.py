"""Schedules as a picture: circuits of each rack over time, and their use."""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from leeward._extras import needed
from leeward._quantities import percent_text
from leeward._svg import Svg
from leeward.circuits.scheduling import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED_RACKS = 16
"""Greatest number of racks whose circuits show their destination."""
_LEAST_WIDTH = 0.02
"""Least width of a bar that shows its destination, as a share of the picture."""


def picture(schedules: Sequence[Schedule]) -> Svg:
    """Draws schedules below each other on one axis of time, as SVG; equal schedules give equal bytes.

    A line is a source rack, and a bar is a circuit. Darker bars use more of their capacity. A bar shows the
    destination if it is wide enough. Gaps are nights.
    """
    with needed():
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

    from leeward.report.style import SETTINGS

    with matplotlib.rc_context(SETTINGS | {"axes.grid": False}):  # type: ignore[arg-type]
        heights = [0.9 + min(0.2 * schedule.racks, 4.0) for schedule in schedules]
        fig = Figure(figsize=(10, sum(heights) + 0.6), layout="constrained")
        FigureCanvasSVG(fig)
        rows = fig.subplots(len(schedules), 1, sharex=True, squeeze=False, height_ratios=heights)
        end_us = max((1e6 * max(schedule.length_s, schedule.week_s) for schedule in schedules), default=1.0)
        for axes, schedule in zip(rows[:, 0], schedules, strict=True):
            _draw(axes, schedule, end_us)
        rows[-1, 0].set_xlabel("time, us")
        out = StringIO()
        fig.savefig(out, format="svg", metadata={"Date": None})
        return Svg(out.getvalue())


def _draw(axes: "Axes", schedule: Schedule, end_us: float) -> None:
    from matplotlib import colormaps

    shade = colormaps["Blues"]
    for day in schedule.days:
        start, length = 1e6 * day.start_s, 1e6 * day.length_s
        for circuit in day.circuits:
            utilization = circuit.bytes / day.circuit_bytes if day.circuit_bytes else 0.0
            axes.broken_barh(
                [(start, length)],
                (circuit.source - 0.45, 0.9),
                facecolor=shade(0.1 + 0.75 * utilization),
                edgecolor="#1c3d5a",
                linewidth=0.4,
            )
            if schedule.racks <= _MOST_NAMED_RACKS and length > _LEAST_WIDTH * end_us:
                colour = "white" if utilization > 0.6 else "black"
                place = (start + length / 2, circuit.source)
                axes.text(
                    *place, str(circuit.destination), ha="center", va="center", fontsize=6, color=colour
                )
    axes.axvline(1e6 * schedule.week_s, color="#6f6f6f", linestyle=":", linewidth=1)
    axes.set_xlim(0, 1.005 * end_us)
    axes.set_ylim(schedule.racks - 0.5, -0.5)
    if schedule.racks <= _MOST_NAMED_RACKS:
        axes.set_yticks(range(schedule.racks))
    axes.set_ylabel("source rack")
    days = f"{len(schedule.days)} days" if len(schedule.days) != 1 else "1 day"
    up, served = f"up {percent_text(schedule.up, 0)} of the time", f"serves {percent_text(schedule.served)}"
    title = f"{schedule.scheduler}: {days}, {up}, {served}"
    axes.set_title(title, loc="left", fontsize=10)
