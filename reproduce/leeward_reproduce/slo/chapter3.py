"""Figures of chapter 3, each with independent gaps, with correlated gaps and on released traces (`gaps`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from leeward_reproduce.rows import Row
from leeward_reproduce.slo import bottleneck, bursty, gaps, misbehaving, pictures, schedulers
from leeward_reproduce.slo.figure import Figure
from leeward_reproduce.slo.gaps import CORRELATED, INDEPENDENT, RELEASED, Gaps

ALL = (INDEPENDENT, CORRELATED, RELEASED)
Draw = Callable[[Sequence[Row]], Any]


@dataclass(frozen=True)
class Contention:
    """A figure of chapter 3, whose workloads share machines."""

    title: str
    experiment: Callable[[int, Gaps], Any]
    """Runs the experiment with a seed and an input."""
    rows: Callable[[Sequence[Any], Gaps], list[Row]]
    """Makes rows from the results of all seeds with an input."""
    constants: Callable[[], object]
    draw: Draw | None = None
    inputs: tuple[Gaps, ...] = ALL

    def figure(self, source: Gaps) -> Figure:
        """The figure with an input."""
        return Figure(
            self.title + source.words,
            lambda seed: self.experiment(seed, source),
            lambda outcomes: self.rows(outcomes, source),
            self.draw,
            self.constants,
            released=source == RELEASED,
        )


def _bars(unit: str, label: str) -> Draw:
    return partial(pictures.bars, unit=unit, label=label)


_CONTENTIONS = {
    "3.1": Contention("violations over time", bursty.over_time, bursty.rows_over_time, bursty.constants),
    "3.2": Contention(
        "one limit or three for a workload that misbehaves",
        misbehaving.limited,
        misbehaving.rows_limited,
        misbehaving.constants,
        _bars("%", "seeds with both within their SLO, %"),
    ),
    "3.3": Contention(
        "SLOs on a shared disk by scheduler (figure 3.4 too)",
        schedulers.shared,
        schedulers.rows_shared,
        schedulers.constants,
        _bars("workloads", "workloads within their SLO, of three"),
    ),
    "3.5": Contention(
        "burstiness", bursty.bursts, bursty.rows_bursts, bursty.constants, _bars("ms", "latency, ms")
    ),
    "3.6": Contention(
        "a workload beside one that misbehaves",
        misbehaving.isolated,
        misbehaving.rows_isolated,
        misbehaving.constants,
    ),
    "3.7": Contention(
        "links as the bottleneck",
        bottleneck.bottleneck,
        bottleneck.rows,
        bottleneck.constants,
        _bars("workloads", "workloads within their SLO, of four"),
        (INDEPENDENT, CORRELATED),
    ),
    "3.8": Contention(
        "a poor model of the disk", schedulers.poor_model, schedulers.rows_poor_model, schedulers.constants
    ),
    "3.9": Contention(
        "all orders of three SLOs",
        schedulers.orders,
        schedulers.rows_orders,
        schedulers.constants,
        _bars("orders", "orders of six with all within"),
    ),
}

_BY_NAME = {
    f"{name}{source.suffix}": contention.figure(source)
    for name, contention in _CONTENTIONS.items()
    for source in contention.inputs
}
_SLO_LINE = partial(pictures.bars, unit="ms", label="latency, ms", line=1000 * bursty.SLO, words="SLO")

FIGURES = {
    **_BY_NAME,
    # Only with independent gaps the SLO is the same under all seeds.
    "3.5": replace(_BY_NAME["3.5"], draw=_SLO_LINE),
    "gaps": Figure("correlation of gaps", gaps.released, gaps.rows, None, gaps.constants, 1),
}
"""Figures by the names of `--figure`."""
