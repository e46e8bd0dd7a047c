"""Figure 10: the distribution of relative speed-ups over apps of all seeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from leeward.report.style import COLOURS, OTHER
from leeward_reproduce.choreo.comparison import gains
from leeward_reproduce.choreo.experiments import BASELINES, OURS, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = dict(zip(BASELINES, ("-", "--", ":"), strict=True))


def speed_ups(outcomes: Sequence[Outcome]) -> "Figure":
    """A panel for each policy: share of apps up to each speed-up."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(OURS), figsize=(8.6, 3.6), sharey=True, layout="constrained")
    for axes, ours in zip(panels, OURS, strict=True):
        for baseline in BASELINES:
            values = numpy.sort(numpy.concatenate([gains(one, ours, baseline) for one in outcomes]))
            share = 100 * numpy.arange(1, len(values) + 1) / len(values)
            colour = COLOURS.get(ours, OTHER)
            axes.plot(100 * values, share, _LINES[baseline], color=colour, label=f"against {baseline}")
        axes.axvline(0, color="#111111", linewidth=0.8)
        axes.set_xlim(-100, 100)
        axes.set_xlabel(f"speed-up under {ours}, %")
        axes.legend(loc="upper left", fontsize=8)
    panels[0].set_ylabel("apps with at most this, %")
    return figure
