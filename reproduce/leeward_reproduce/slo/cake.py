"""Cake's parameters, searched for each set of workloads.

The thesis takes the parameters of Cake's paper, except for a larger upper compliance bound, and states none
(section 3.3.1). So Cake runs with each setting of a grid, and its rows have the setting that was best over
all seeds. This choice in hindsight favours Cake.
"""

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

NAME = "cake"
"""Name of the scheduler."""
UPPERS = (1.2, 1.5, 2.0, 4.0, 8.0)
"""Upper compliance bounds: above this ratio of SLO to tail, a workload loses share."""
STEPS = (0.1, 0.3)
"""Relative steps of a weight."""
INTERVALS = (10.0, 2.0)
"""Control intervals, in seconds."""
LOWER, FLOOR = 1.0, 0.01
"""Lower compliance bound, and least weight as a share of the mean weight."""

Score = Callable[[Any], tuple[float, float]]
"""Rates the results of a seed: the greater the better; the second number decides between equals."""


def _words(upper: float, step: float, interval: float) -> str:
    return f"upper bound {upper:g}, steps of {100 * step:g} %, every {interval:g} s"


SETTINGS: dict[str, dict[str, float]] = {
    _words(upper, step, interval): {
        "interval_s": interval,
        "lower": LOWER,
        "upper": upper,
        "step": step,
        "floor": FLOOR,
    }
    for upper in UPPERS
    for step in STEPS
    for interval in INTERVALS
}
"""Settings by the name of their results."""
GRID = (
    f"{len(SETTINGS)} settings (upper bounds {', '.join(f'{upper:g}' for upper in UPPERS)}; steps"
    f" {' and '.join(f'{100 * step:g}' for step in STEPS)} %; intervals"
    f" {' and '.join(f'{interval:g}' for interval in INTERVALS)} s)"
)
"""The grid in words."""


def best(results: Sequence[Mapping[str, Any]], score: Score, upper: float | None = None) -> str:
    """Name of the setting with the greatest mean score over seeds; of equals, the first one.

    Args:
        results: For each seed, results by the name of a setting.
        score: Rates the results of a seed.
        upper: Upper bound of the settings to choose from; by default any.
    """
    names = [name for name, one in SETTINGS.items() if upper is None or one["upper"] == upper]

    def mean(name: str) -> tuple[float, float]:
        scores = [score(one[name]) for one in results]
        return fsum(first for first, _ in scores), fsum(second for _, second in scores)

    return max(names, key=mean)


def key(scheduler: str, results: Sequence[Mapping[str, Any]], score: Score) -> str:
    """Name of the results of a scheduler: for Cake, those of its best setting."""
    return best(results, score) if scheduler == NAME else scheduler


def note(name: str) -> str:
    """Suffix of a note that states the setting; empty for results of other schedulers."""
    return f"; the best of {GRID}: {name}" if name in SETTINGS else ""
