"""Pictures of hotspots, as SVG."""

from typing import TYPE_CHECKING, Any

import numpy

from leeward._extras import needed
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.hot import TOR
from leeward.hotspots.report.section import stamp
from leeward.report.pictures import figure, svg
from leeward.report.style import SETTINGS, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECTIONS = {
    "host-ToR": "#6f6f6f",
    "ToR-pod": "#c4411d",
    "pod-core": "#0b62a4",
    "pair": "#2f7d32",
    "shared": "#8e44ad",
}
"""One colour for each cross-section, and a line for each direction."""
LINES = {"up": "-", "down": "--", "one-way": "-"}
RACKS = 60
"""Rows of the heat map, the hottest racks first."""
_HOURS = (1 / 12, 1 / 2, 1, 2, 6, 12, 24, 48, 168, 336, 672)
_LEAST_SHARE = 0.001


def heat(analysis: Analysis) -> str:
    """Heat map of racks: maximum utilization of the busier direction in each cell of time."""
    with needed():
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

    cells = analysis.heat.to_pydict()
    starts = sorted(set(cells["start_ms"]))
    length = cells["length_ms"][0] if starts else 1
    racks = _hottest(analysis)[:RACKS]
    columns = (starts[-1] - starts[0]) // length + 1 if starts else 1
    grid = numpy.full((max(len(racks), 1), columns), numpy.nan)
    row_of = {rack: row for row, rack in enumerate(racks)}
    for rack, start, ppm in zip(cells["rack"], cells["start_ms"], cells["ppm"], strict=True):
        if rack in row_of:
            grid[row_of[rack], (start - starts[0]) // length] = ppm / 10_000
    with matplotlib.rc_context(SETTINGS):  # type: ignore[arg-type]
        fig, axes = pyplot.subplots(figsize=(6.4, min(1.6 + 0.14 * len(racks), 9)), layout="constrained")
        first, end = (starts[0], starts[-1] + length) if starts else (0, 1)
        axes.grid(visible=False)
        axes.set_facecolor("#d9d9d9")
        # A mesh of rectangles would make the page megabytes long; this is one small image.
        image = axes.imshow(
            grid,
            cmap="inferno_r",
            vmin=0,
            vmax=100,
            aspect="auto",
            interpolation="nearest",
            extent=(0, columns, len(grid), 0),
        )
        bar = fig.colorbar(image, ax=axes, label="utilization, %", pad=0.01)
        bar.ax.axhline(analysis.settings.hot_ppm / 10_000, color="white", linewidth=1.5)
        axes.set_yticks(numpy.arange(len(racks)) + 0.5, racks, fontsize=6)
        ticks = numpy.linspace(0, columns, 4)
        axes.set_xticks(
            ticks, [stamp(int(first + (end - first) * tick / columns)) for tick in ticks], fontsize=8
        )
        axes.set_xlabel("time, UTC")
        return svg(fig)


def durations(analysis: Analysis) -> str:
    """Distribution of the durations of hot runs, and of the hot time in them."""

    def draw(axes: "Axes") -> None:
        for section, colour in SECTIONS.items():
            rows = [row for row in analysis.durations.to_pylist() if row["cross_section"] == section]
            hours = [row["duration_ms"] / 3_600_000 for row in rows]
            if rows:
                style: dict[str, Any] = {"where": "post", "color": colour}
                axes.step([*hours], [100 * row["up_to"] for row in rows], label=section, **style)
                if section == TOR:
                    time = [100 * row["time_up_to"] for row in rows]
                    axes.step([*hours], time, label="of their hot time", linestyle=":", **style)
        _log_hours(axes)
        for edge in (analysis.settings.hours_ms, analysis.settings.days_ms):
            axes.axvline(edge / 3_600_000, color="#444444", linewidth=0.8)
        axes.set_xlabel("duration of a run of hot intervals, hours")
        axes.set_ylabel("runs that last no longer, %")
        axes.set_ylim(0, 102)

    return figure(draw)


def utilization(analysis: Analysis) -> str:
    """Distribution of utilization by cross-section: share of link intervals above each value."""

    def draw(axes: "Axes") -> None:
        sets: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
        for row in analysis.utilization.to_pylist():
            percents, counts = sets.setdefault((row["cross_section"], row["direction"]), ([], []))
            percents.append(row["percent"])
            counts.append(row["intervals"])
        most = 100
        for (section, direction), (percents, counts) in sets.items():
            above = 100 * (1 - numpy.cumsum(counts) / sum(counts))
            shares = numpy.maximum(above, _LEAST_SHARE / 2)
            axes.step(
                numpy.array(percents) + 1,
                shares,
                where="post",
                label=f"{section} {direction}",
                color=SECTIONS[section],
                linestyle=LINES[direction],
            )
            most = max(most, min(percents[-1] + 1, 200))
        hot = analysis.settings.hot_ppm / 10_000
        axes.axvline(hot, color="#444444", linewidth=0.8)
        axes.text(hot + 0.8, 0.94, "hot", transform=axes.get_xaxis_transform())
        axes.set_yscale("log")
        axes.set_ylim(_LEAST_SHARE, 110)
        axes.set_xlim(0, most + 1)
        plain(axes.yaxis, (0.001, 0.01, 0.1, 1, 10, 100))
        axes.set_xlabel("utilization of a link in an interval, %")
        axes.set_ylabel("link intervals that are busier, %")

    return figure(draw)


def unevenness(analysis: Analysis) -> str:
    """Distribution of Cv over intervals."""

    def draw(axes: "Axes") -> None:
        sets: dict[tuple[str, str], tuple[list[float], list[int]]] = {}
        for row in analysis.imbalance.cv.to_pylist():
            values, counts = sets.setdefault((row["cross_section"], row["direction"]), ([], []))
            values.append(row["permille"] / 1000)
            counts.append(row["intervals"])
        for (section, direction), (values, counts) in sets.items():
            up_to = 100 * numpy.cumsum(counts) / sum(counts)
            style: dict[str, Any] = {"color": SECTIONS[section], "linestyle": LINES[direction]}
            axes.step(values, up_to, where="post", label=f"{section} {direction}", **style)
        axes.set_xlim(left=0)
        axes.set_ylim(0, 102)
        axes.set_xlabel("Cv of the utilizations of links in an interval")
        axes.set_ylabel("intervals with at most this, %")

    return figure(draw)


def jobs(analysis: Analysis) -> str:
    """Bandwidth per compute unit of jobs, over the median job's."""

    def draw(axes: "Axes") -> None:
        tasks = analysis.causes.tasks
        ratios = [] if tasks is None else tasks.jobs["normalized"].drop_null().to_pylist()
        values = numpy.sort(numpy.array([value for value in ratios if value > 0]))
        up_to = 100 * numpy.arange(1, len(values) + 1) / max(len(values), 1)
        axes.step(values, up_to, where="post", color=SECTIONS[TOR])
        axes.axvline(analysis.settings.intensive, color="#444444", linewidth=0.8)
        axes.text(0.98, 0.03, "right of the line: network-intensive", ha="right", transform=axes.transAxes)
        axes.set_xscale("log")
        plain(axes.xaxis, (0.001, 0.01, 0.1, 1, 10, 100, 1000))
        axes.set_ylim(0, 102)
        axes.set_xlabel("bandwidth per processor, over the median job's")
        axes.set_ylabel("jobs with at most this, %")

    return figure(draw)


def crowding(analysis: Analysis) -> str:
    """Network-intensive tasks per unit of bandwidth of each rack, against its utilization."""

    def draw(axes: "Axes") -> None:
        tasks = analysis.causes.tasks
        rows = (
            [] if tasks is None else [row for row in tasks.racks.to_pylist() if row["mean_ppm"] is not None]
        )
        axes.scatter(
            [row["per_gbps"] for row in rows],
            [row["mean_ppm"] / 10_000 for row in rows],
            s=14,
            color=SECTIONS[TOR],
        )
        axes.set_xlim(left=0)
        axes.set_ylim(0, 102)
        axes.set_xlabel("network-intensive tasks per Gb/s of uplink")
        axes.set_ylabel("mean utilization of the rack's busier direction, %")

    return figure(draw)


def _hottest(outcome: Analysis) -> list[str]:
    """Racks by their rate of hot intervals, and then by utilization."""
    result: dict[str, tuple[int, int]] = {}
    for row in outcome.links.to_pylist():
        if row["cross_section"] == TOR:
            hot, busy = result.get(row["rack"], (0, 0))
            result[row["rack"]] = (hot + row["hot"], max(busy, row["p98_ppm"]))
    return sorted(result, key=lambda rack: (-result[rack][0], -result[rack][1], rack))


def _log_hours(axes: "Axes") -> None:
    axes.set_xscale("log")
    plain(axes.xaxis, _HOURS)
    ticks = list(axes.get_xticks())
    axes.set_xticks(ticks, [_hours(hour) for hour in ticks])


def _hours(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.0f} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"
