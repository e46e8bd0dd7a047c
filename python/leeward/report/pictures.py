"""Pictures of a comparison, as SVG. They exclude the warm-up, as the table does."""

from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy

from leeward._arrays import Floats
from leeward._extras import needed
from leeward._native import Run
from leeward.report.style import SETTINGS, decades, name_curves, plain, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PERCENT = (0.001, 0.01, 0.1, 1, 10, 100)


def write_times(runs: Sequence[Run]) -> str:
    """Tail of write times: for each time, the share of full blocks that take longer under each policy."""

    def draw(axes: "Axes") -> None:
        sorted_times = [numpy.sort(list(times_of(run).values())) for run in runs]
        for run, times, style in zip(runs, sorted_times, run_styles(runs), strict=True):
            longer = 100 * (1 - numpy.arange(len(times)) / max(len(times), 1))
            axes.step(times, longer, where="post", label=run.policy, **style)
        most = max((len(times) for times in sorted_times), default=0)
        longest = max((times[-1] for times in sorted_times if len(times)), default=1.0)
        shortest = min((times[times > 0].min() for times in sorted_times if times.any()), default=0.1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        # Least share that ten blocks make; below it a curve is of single blocks.
        axes.set_ylim(max(1000 / max(most, 10), _PERCENT[0]), 130)
        axes.set_xlim(shortest / 1.15, longest * 1.15)
        plain(axes.xaxis, decades(-3, 6))
        plain(axes.yaxis, _PERCENT)
        axes.set_xlabel("time to write a full block, s")
        axes.set_ylabel("full blocks that take longer, %")

    return figure(draw)


def app_times(runs: Sequence[Run]) -> str:
    """Tail of apps' times from their arrival on."""

    def draw(axes: "Axes") -> None:
        for run, style in zip(runs, run_styles(runs), strict=True):
            apps = run.apps()
            arrivals = apps["arrived_s"].to_numpy()
            durations = apps["finished_s"].to_numpy(zero_copy_only=False) - arrivals
            durations = numpy.sort(durations[(arrivals >= run.warmup_s) & numpy.isfinite(durations)])
            longer = 100 * (1 - numpy.arange(len(durations)) / max(len(durations), 1))
            axes.step(durations, longer, where="post", label=run.policy, **style)
        axes.set_xlim(left=0)
        axes.set_ylim(0, 100)
        axes.set_xlabel("time from arrival to last transfer, s")
        axes.set_ylabel("apps that take longer, %")

    return figure(draw)


def coflow_times(runs: Sequence[Run]) -> str:
    """Tail of the completion times of coflows."""

    def draw(axes: "Axes") -> None:
        for run, style in zip(runs, run_styles(runs), strict=True):
            coflows = run.coflows()
            durations = coflows["completion_s"].to_numpy(zero_copy_only=False)
            is_counted = (coflows["arrived_s"].to_numpy() >= run.warmup_s) & (coflows["flows"].to_numpy() > 0)
            durations = numpy.sort(durations[is_counted & numpy.isfinite(durations)])
            longer = 100 * (1 - numpy.arange(len(durations)) / max(len(durations), 1))
            axes.step(durations, longer, where="post", label=run.policy, **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.1, 130)
        plain(axes.xaxis, decades(-3, 6))
        plain(axes.yaxis, _PERCENT[2:])
        axes.set_xlabel("coflow completion time, s")
        axes.set_ylabel("coflows that take longer, %")

    return figure(draw)


def gains(runs: Sequence[Run]) -> str:
    """Speed-up of each full block against the first policy."""

    def draw(axes: "Axes") -> None:
        baseline = times_of(runs[0])
        for run, style in zip(runs[1:], run_styles(runs)[1:], strict=True):
            pairs = [(baseline[key], time) for key, time in times_of(run).items() if key in baseline]
            factor = numpy.sort(numpy.array([before / after for before, after in pairs if after > 0]))
            share = 100 * numpy.arange(1, len(factor) + 1) / max(len(factor), 1)
            axes.plot(factor, share, label=run.policy, **style)
        axes.axvline(1, color="#444444", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xlim(1 / 8, 16)
        axes.set_xticks(
            [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16], ["1/8", "1/4", "1/2", "1", "2", "4", "8", "16"]
        )
        axes.set_xlabel(f"time under {runs[0].policy} / time under this policy")
        axes.set_ylabel("full blocks with at most this factor, %")
        axes.set_ylim(0, 100)
        axes.text(0.98, 0.03, "right of 1: faster", ha="right", transform=axes.transAxes)
        axes.text(0.02, 0.03, "left of 1: slower", transform=axes.transAxes)

    return figure(draw)


def imbalance(runs: Sequence[Run]) -> str:
    """Imbalance of rack downlinks, interval by interval."""

    def draw(axes: "Axes") -> None:
        for run, style in zip(runs, run_styles(runs), strict=True):
            balance = run.balance().to_pydict()
            cv = [
                value
                for kind, value in zip(balance["kind"], balance["cv"], strict=True)
                if kind == "rack_downlink" and value is not None
            ]
            share = numpy.arange(1, len(cv) + 1) / max(len(cv), 1)
            axes.plot(numpy.sort(cv), 100 * share, label=run.policy, **style)
        axes.set_xlabel(f"Cv of the loads of rack downlinks, each {runs[0].sample_s:g} s interval")
        axes.set_ylabel("intervals with at most this, %")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 100)
        axes.text(0.02, 0.93, "left: more even", transform=axes.transAxes)

    return figure(draw)


def hot_links(runs: Sequence[Run]) -> str:
    """Utilization of rack downlinks, over all intervals."""

    def draw(axes: "Axes") -> None:
        for run, style in zip(runs, run_styles(runs), strict=True):
            links = run.links()
            kind = links["kind"].to_numpy(zero_copy_only=False)
            utilization = numpy.sort(links["utilization"].to_numpy()[kind == "rack_downlink"])
            above = 1 - numpy.arange(len(utilization)) / max(len(utilization), 1)
            axes.plot(100 * utilization, 100 * above, label=run.policy, **style)
        hot = 100 * runs[0].hot
        axes.axvline(hot, color="#444444", linewidth=0.8)
        axes.text(hot + 0.8, 0.94, "hot", transform=axes.get_xaxis_transform())
        axes.set_yscale("log")
        axes.set_ylim(0.05, 110)
        axes.set_xlim(0, 101)
        plain(axes.yaxis, _PERCENT)
        axes.set_xlabel("utilization of a rack downlink over an interval, %")
        axes.set_ylabel("intervals that are busier, %")

    return figure(draw)


def run_styles(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Colour and line of each run."""
    return styles([run.policy for run in runs])


def times_of(run: Run) -> dict[tuple[int, int], float]:
    """Seconds from the request of a full block to its last copy on disk, by file and position in it.

    Blocks that were not written, and blocks of files that began in the warm-up, are left out.
    """
    blocks = run.blocks()
    files = run.files()["start_s"].to_numpy() >= run.warmup_s
    is_counted = files[blocks["file"].to_numpy()] & blocks["full"].to_numpy(zero_copy_only=False)
    blocks = blocks.filter(is_counted)
    times: Floats = blocks["finished_s"].to_numpy(zero_copy_only=False) - blocks["asked_s"].to_numpy()
    keys = zip(blocks["file"].to_pylist(), blocks["block"].to_pylist(), strict=True)
    return {key: float(time) for key, time in zip(keys, times, strict=True) if numpy.isfinite(time)}


def figure(draw: "Callable[[Axes], None]") -> str:
    """Draws one set of axes, names its curves and returns it as SVG; a notebook keeps its own backend."""
    with needed():
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):  # type: ignore[arg-type]
        fig = Figure(figsize=(6.4, 3.9), layout="constrained")
        FigureCanvasAgg(fig)
        axes = fig.subplots()
        draw(axes)
        name_curves(fig, axes)
        return svg(fig)


def svg(fig: "Figure") -> str:
    """A drawn figure as SVG, without the prologue of a file; the figure is closed."""
    from matplotlib import pyplot

    out = StringIO()
    fig.savefig(out, format="svg", metadata={"Date": None}, dpi=150)
    pyplot.close(fig)
    text = out.getvalue()
    return text[text.index("<svg") :]
