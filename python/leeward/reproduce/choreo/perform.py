"""Runs the experiments that figures of Choreo need, and makes their rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.reproduce import drawing, kept
from leeward.reproduce.choreo import between, comparison, crossing, experiments, pictures, predictor, trains
from leeward.reproduce.outcomes import outcomes
from leeward.reproduce.rows import Row

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or a section of its text."""

    title: str
    experiment: Callable[[int], Any]
    """What is run under a seed."""
    rows: Callable[[Sequence[Any]], list[Row]]
    """Of what was run under all seeds."""
    draw: Callable[[Sequence[Any]], Any] | None = None


FIGURES = {
    "2": Figure("rates of paths, by trains", trains.rates, trains.rows_rates, trains.draw_rates),
    "4": Figure("competing connections over time", crossing.counted, crossing.rows, crossing.draw),
    "6": Figure("which trains are exact", trains.calibrated, trains.rows_calibrated, trains.draw_calibrated),
    "7": Figure("how long a rate holds", between.stability, between.rows_stability),
    "8": Figure("hops and rates", between.lengths, between.rows_lengths),
    "4.3": Figure("is it a hose?", between.protocol, between.rows_protocol),
    "10a": Figure("apps placed at once", experiments.at_once, comparison.rows_at_once, pictures.speed_ups),
    "10b": Figure(
        "apps placed in sequence", experiments.in_sequence, comparison.rows_in_sequence, pictures.speed_ups
    ),
    "exact": Figure("greedy and the best placement", experiments.exact, comparison.rows_exact),
    "accuracy": Figure("how well rates are measured", experiments.accuracy, comparison.rows_accuracy),
    "predictor": Figure(
        "bytes of the next hour, predicted", predictor.generated, predictor.rows, predictor.draw
    ),
}
"""By the names that `--figure` takes."""


def runs(chosen: Mapping[str, Figure], seeds: int) -> int:
    """How many runs the figures take."""
    return len(chosen) * seeds


def check_horizon(horizon: str) -> None:
    """Apps run until they end.

    Raises:
        InputError: Always.
    """
    raise InputError("horizon", None, None, None, f"`{horizon}`: apps run until they end; leave it out")


def make(
    chosen: Mapping[str, Figure],
    by: kept.Made,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs what figures need and makes their rows; see `leeward.reproduce.perform.reproduce`."""
    tasks = [(name, seed) for name in chosen for seed in range(1, by.seeds + 1)]
    made = outcomes(tasks, lambda name, seed: chosen[name].experiment(seed), jobs, progress)
    for name, figure in chosen.items():
        if keep and figure.draw:
            drawing.write(out / kept.PICTURES, name, partial(figure.draw, made[name]))
    return [row for name in chosen for row in kept.marked(chosen[name].rows(made[name]), by)]
