"""Runs the experiments for the figures of Choreo, and makes the rows of the figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.choreo import (
    comparison,
    cross_traffic,
    experiments,
    namespace_figures,
    pictures,
    predictor,
    simulated,
    trains,
)
from leeward_reproduce.choreo.namespaces import UnableError
from leeward_reproduce.outcomes import outcomes
from leeward_reproduce.rows import Row
from leeward_reproduce.summary import MainResult

__all__ = ["FIGURES", "MAIN", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, or a section of its text."""

    title: str
    rows: Callable[..., list[Row]]
    """Makes rows from the runs under all seeds, and from the measurements between namespaces, if any."""
    experiment: Callable[[int], Any] | None = None
    """Runs an experiment under a seed."""
    between: Callable[[], Any] | None = None
    """Measures between network namespaces, once. Repetitions differ only by the load of this machine."""
    draw: Callable[..., Any] | None = None
    """Draws the data of `rows`; None if the figure has no picture."""


def _both(
    simulated_rows: Callable[[Any], list[Row]], namespace_rows: Callable[[Any], list[Row]]
) -> Callable[[Any, Any], list[Row]]:
    """Combines two makers of rows: first the rows of measurements, then the rows of runs under seeds."""
    return lambda outcomes, results: [*namespace_rows(results), *simulated_rows(outcomes)]


FIGURES = {
    "2": Figure("rates of paths, by trains", trains.rows_rates, trains.rates, trains.mesh, trains.draw_rates),
    "4": Figure(
        "competing connections over time",
        cross_traffic.rows,
        cross_traffic.count_connections,
        draw=cross_traffic.draw,
    ),
    "6": Figure("errors of trains", trains.rows_errors, trains.errors, trains.calibrate, trains.draw_errors),
    "7": Figure(
        "how long a rate holds",
        _both(simulated.rows_stability, namespace_figures.rows_stability),
        simulated.stability,
        namespace_figures.stability,
        simulated.draw_stability,
    ),
    "8": Figure(
        "hops and rates",
        _both(simulated.rows_lengths, namespace_figures.rows_lengths),
        simulated.lengths,
        namespace_figures.lengths,
        simulated.draw_lengths,
    ),
    "4.3": Figure(
        "test of the hose model",
        _both(simulated.rows_protocol, namespace_figures.rows_protocol),
        simulated.protocol,
        namespace_figures.protocol,
    ),
    "10a": Figure(
        "apps placed at once", comparison.rows_at_once, experiments.at_once, draw=pictures.speed_ups
    ),
    comparison.EVEN: Figure(
        "apps of equal transfers placed at once",
        comparison.rows_of_variant(comparison.EVEN),
        partial(experiments.at_once, apps=experiments.equal),
    ),
    "10a-hose": Figure(
        "apps placed at once, where all paths of a machine are alike",
        comparison.rows_of_variant("10a-hose"),
        partial(experiments.at_once, networks=experiments.machines),
    ),
    "10b": Figure(
        "apps placed in sequence",
        comparison.rows_in_sequence,
        experiments.in_sequence,
        draw=pictures.speed_ups,
    ),
    "10b-hose": Figure(
        "apps placed in sequence, where all paths of a machine are alike",
        comparison.rows_of_variant("10b-hose"),
        partial(experiments.in_sequence, networks=experiments.machines),
    ),
    "exact": Figure(
        "greedy and the best placement",
        comparison.rows_exact("exact", comparison.SMALL, comparison.LARGE),
        experiments.exact,
    ),
    comparison.LARGE: Figure(
        "greedy and the best placement of large apps",
        comparison.rows_exact(comparison.LARGE, comparison.PRIVATE),
        experiments.exact_large,
    ),
    "exact-hose": Figure(
        "greedy and the best placement, where all paths of a machine are alike",
        comparison.rows_exact("exact-hose", None),
        partial(experiments.exact, networks=experiments.machines),
    ),
    "accuracy": Figure("how well rates are measured", comparison.rows_accuracy, experiments.accuracy),
    "predictor": Figure(
        "bytes of the next hour, predicted", predictor.rows, predictor.score_generated, draw=predictor.draw
    ),
}
"""Figures by the names of `--figure`."""
MAIN = (
    MainResult("main", "10a", "speed-up, median: choreo against random"),
    MainResult("less favourable", "10a", "speed-up, median: choreo against minimum-machines"),
)
"""Results that matter most."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs and measurements for the figures."""
    return sum(seeds * bool(figure.experiment) + bool(figure.between) for figure in selection.values())


def check_horizon(horizon: str) -> None:
    """Rejects every horizon: apps run until they end.

    Raises:
        InputError: Always.
    """
    message = f"`{horizon}`: apps run until they end; leave the horizon out"
    raise InputError.about("horizon", message)


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the experiments of figures and makes their rows; see `leeward_reproduce.perform.reproduce`."""
    total = runs(selection, inputs.seeds)
    by_seed = {name: figure.experiment for name, figure in selection.items() if figure.experiment}
    tasks = [(name, seed) for name in by_seed for seed in range(1, inputs.seeds + 1)]

    def report(done: float) -> None:
        if progress:
            progress(done / total)

    result = outcomes(
        tasks, lambda name, seed: by_seed[name](seed), jobs, lambda share: report(share * len(tasks))
    )
    results: dict[str, list[Any]] = {name: [result[name]] if name in result else [] for name in selection}
    # Measurements run one after the other, after all runs, because other load would disturb them.
    measurements = [(name, figure.between) for name, figure in selection.items() if figure.between]
    for number, (name, between_namespaces) in enumerate(measurements, 1):
        results[name].append(_measure(between_namespaces))
        report(len(tasks) + number)
    for name, figure in selection.items():
        if keep and figure.draw:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, *results[name]))
    return [
        row
        for name, figure in selection.items()
        for row in results_folder.mark_rows(figure.rows(*results[name]), inputs)
    ]


def _measure(between_namespaces: Callable[[], Any]) -> Any:
    """Result of a measurement, or the error that prevented it."""
    try:
        return between_namespaces()
    except UnableError as error:
        return error
