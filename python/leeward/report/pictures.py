"""Pictures of a comparison, as SVG.

One colour and one line style a policy throughout, so that they also read in grey.
"""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy

from leeward._native import Run

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes

STYLES: dict[str, tuple[str, Any]] = {
    "uniform": ("#7a7a7a", "-"),
    "sinbad": ("#0b62a4", "--"),
}
OTHER_STYLES: list[tuple[str, Any]] = [
    ("#c4511d", "-."),
    ("#2f7d32", ":"),
    ("#7b3fa0", (0, (5, 1))),
    ("#8a6d00", (0, (1, 1))),
]

# What does not depend on when or where the picture was drawn: the same runs, the same bytes.
SETTINGS = {
    "svg.hashsalt": "leeward",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}


def style(policy: str, others: list[str]) -> dict[str, Any]:
    """The colour and line of a policy; settings after its name do not change its colour but its line."""
    if policy in STYLES:
        colour, line = STYLES[policy]
    else:
        if policy not in others:
            others.append(policy)
        colour, line = OTHER_STYLES[others.index(policy) % len(OTHER_STYLES)]
    return {"color": colour, "linestyle": line}


def write_times(runs: Sequence[Run]) -> str:
    """How write times of full blocks are distributed under each policy."""

    def draw(axes: "Axes") -> None:
        others: list[str] = []
        for run in runs:
            times = numpy.sort(block_times(run))
            times = times[numpy.isfinite(times)]
            share = numpy.arange(1, len(times) + 1) / len(times)
            axes.plot(times, 100 * share, label=run.policy, **style(run.policy, others))
        axes.set_xscale("log")
        axes.set_xlabel("time to write a full block, seconds (log scale)")
        axes.set_ylabel("full blocks written within it, %")
        axes.set_ylim(0, 100)
        axes.legend(loc="lower right")

    return figure(draw)


def gains(runs: Sequence[Run]) -> str:
    """How much faster each full block is written than under the first policy."""

    def draw(axes: "Axes") -> None:
        others: list[str] = []
        baseline = paired_times(runs[0])
        for run in runs[1:]:
            ours = paired_times(run)
            pairs = [(baseline[key], time) for key, time in ours.items() if key in baseline]
            factor = numpy.sort(numpy.array([before / after for before, after in pairs if after > 0]))
            share = numpy.arange(1, len(factor) + 1) / len(factor)
            axes.plot(factor, 100 * share, label=run.policy, **style(run.policy, others))
        axes.axvline(1, color="#444444", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xlim(1 / 8, 16)
        axes.set_xticks(
            [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16], ["1/8", "1/4", "1/2", "1", "2", "4", "8", "16"]
        )
        axes.set_xlabel(f"time under {runs[0].policy} / time under this policy (log scale)")
        axes.set_ylabel("full blocks with at most this factor, %")
        axes.set_ylim(0, 100)
        axes.text(0.97, 0.06, "right of 1: faster", ha="right", transform=axes.transAxes)
        axes.legend(loc="upper left")

    return figure(draw)


def imbalance(runs: Sequence[Run]) -> str:
    """How unevenly rack downlinks are loaded, interval by interval."""

    def draw(axes: "Axes") -> None:
        others: list[str] = []
        for run in runs:
            balance = run.balance().to_pydict()
            cv = [
                value
                for kind, value in zip(balance["kind"], balance["cv"], strict=True)
                if kind == "rack_downlink" and value is not None
            ]
            share = numpy.arange(1, len(cv) + 1) / max(len(cv), 1)
            axes.plot(numpy.sort(cv), 100 * share, label=run.policy, **style(run.policy, others))
        axes.set_xlabel(
            f"coefficient of variation of rack downlink loads, each {runs[0].sample_s:g} s interval"
        )
        axes.set_ylabel("intervals with at most this, %")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 100)
        axes.text(0.03, 0.92, "left: more even", transform=axes.transAxes)
        axes.legend(loc="lower right")

    return figure(draw)


def hot_links(runs: Sequence[Run]) -> str:
    """How busy rack downlinks are, over all intervals."""

    def draw(axes: "Axes") -> None:
        others: list[str] = []
        for run in runs:
            links = run.links()
            kind = links["kind"].to_numpy(zero_copy_only=False)
            utilization = numpy.sort(links["utilization"].to_numpy()[kind == "rack_downlink"])
            above = 1 - numpy.arange(len(utilization)) / max(len(utilization), 1)
            axes.plot(100 * utilization, 100 * above, label=run.policy, **style(run.policy, others))
        hot = 100 * runs[0].hot
        axes.axvline(hot, color="#444444", linewidth=0.8)
        axes.text(hot + 0.5, 0.75, "hot", transform=axes.get_xaxis_transform())
        axes.set_yscale("log")
        axes.set_ylim(0.05, 100)
        axes.set_xlim(0, 101)
        axes.set_xlabel("utilization of a rack downlink over an interval, %")
        axes.set_ylabel("intervals that are busier, % (log scale)")
        axes.legend(loc="lower left")

    return figure(draw)


def block_times(run: Run) -> "numpy.ndarray[Any, numpy.dtype[numpy.float64]]":
    """Seconds from asking for each full block to its last copy on disk; NaN for those not written."""
    blocks = full_blocks(run)
    return numpy.asarray(blocks["finished_s"].to_numpy() - blocks["asked_s"].to_numpy())


def full_blocks(run: Run) -> "pyarrow.Table":
    """The blocks that policies look at load for."""
    blocks = run.blocks()
    return blocks.filter(blocks["full"])


def paired_times(run: Run) -> dict[tuple[int, int], float]:
    """Write times of the full blocks that were written, by file and position in it."""
    blocks = full_blocks(run)
    keys = zip(blocks["file"].to_pylist(), blocks["block"].to_pylist(), strict=True)
    times = block_times(run)
    return {key: float(time) for key, time in zip(keys, times, strict=True) if numpy.isfinite(time)}


def figure(draw: Any) -> str:
    """Draws one set of axes and returns it as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context(SETTINGS):  # type: ignore[arg-type]
        fig, axes = pyplot.subplots(figsize=(6.4, 3.9), layout="constrained")
        draw(axes)
        out = StringIO()
        fig.savefig(out, format="svg", metadata={"Date": None})
        pyplot.close(fig)
    svg = out.getvalue()
    return svg[svg.index("<svg") :]
