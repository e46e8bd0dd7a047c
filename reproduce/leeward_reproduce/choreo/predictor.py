"""Section 2.1: prediction of the next hour's bytes from the previous hour and the time of day.

The paper's matrices are private, and it says only that both are "good predictors". Here the errors of the
predictors are measured on two kinds of matrices. Generated matrices have a known cycle of a day, and
deviations from it that last for some hours: one predictor misses the cycle, and the other the deviations.
Public matrices are those of Abilene, a network between universities: hourly, but not of a cloud's tenant.

The predictor learns from the first 70 % of the hours and is scored on the others (`leeward.matrix.scoring`).
"""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy

from leeward import data
from leeward._arrays import Floats
from leeward.errors import InputError
from leeward.matrix import PREDICTORS, Figure, Score, Series, score
from leeward.report.style import COLOURS
from leeward_reproduce.rows import Row, computed_row, measured_row, missing_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

FIGURE = "predictor"
ABILENE = "abilene-tm/abilene_hourly.txt.gz"
_NODES = 12
TASKS, DAYS = 8, 14
SWING = 0.8
"""Amplitude of the cycle, as a share of the mean."""
STAYS = 0.9
"""Share of a deviation that remains after an hour."""
DEVIATION, NOISE = 0.3, 0.1
"""Standard deviations of logarithms: of the lasting deviations, and of the independent noise of each hour."""
_ERRORS = {
    "wrong_bytes": "wrong bytes",
    "total": "error of the total",
    "median": "error of pairs, median",
    "p90": "error of pairs, 90th percentile",
}
_ABOVE = "wrong bytes above the combination's"
_GENERATED, _PUBLIC = "generated", "Abilene"


def score_generated(seed: int) -> Score:
    """Scores the predictors on matrices drawn by a seed."""
    return score(Series.of(matrices(numpy.random.default_rng([seed, 5]))))


def matrices(random: numpy.random.Generator) -> Floats:
    """Hourly matrices, in which each pair has a daily cycle and lasting deviations."""
    hours = numpy.arange(24 * DAYS)[:, None, None]
    pairs = (TASKS, TASKS)
    size, peak = random.lognormal(numpy.log(1e9), 1.5, pairs), random.uniform(0, 24, pairs)
    cycle = 1 + SWING * numpy.cos(2 * numpy.pi * (hours - peak) / 24)
    fresh = random.normal(0, 1, (len(hours), *pairs))
    lasting = numpy.empty_like(fresh)
    lasting[0] = fresh[0]
    for hour in range(1, len(hours)):
        lasting[hour] = STAYS * lasting[hour - 1] + numpy.sqrt(1 - STAYS**2) * fresh[hour]
    result: Floats = size * cycle * numpy.exp(DEVIATION * lasting + random.normal(0, NOISE, fresh.shape))
    result[:, numpy.arange(TASKS), numpy.arange(TASKS)] = 0
    return result


def abilene() -> Score | None:
    """Scores the predictors on the public matrices; None if they are not in the folder of traces.

    Raises:
        InputError: The file has another format.
    """
    folder = data.data_folder()
    if folder is None or not (folder / ABILENE).is_file():
        return None
    try:
        hours = numpy.loadtxt(folder / ABILENE, ndmin=2)
        return score(Series.of(hours.reshape(-1, _NODES, _NODES), name=f"data:{ABILENE}"))
    except InputError:
        raise
    except (ValueError, OSError, EOFError, zlib.error) as error:
        message = f"expected lines of {_NODES * _NODES} numbers: {error}"
        raise InputError.about(f"data:{ABILENE}", message) from None


def rows(scores: Sequence[Score]) -> list[Row]:
    """Section 2.1, on both kinds of matrices."""
    hours = scores[0].intervals - scores[0].learnt
    note = f"{hours} hours scored; matrices with a cycle of a day and deviations that last, drawn by a seed"
    result: list[Row] = []
    for field, words in _ERRORS.items():
        for at, name in enumerate(PREDICTORS):
            values = [100 * float(getattr(one.scored[at], field).value) for one in scores]
            label = f"{_GENERATED}: {words}: {name}"
            result.append(measured_row(FIGURE, label, "%", values, None, note if not result else ""))
    for at, name in enumerate(PREDICTORS[1:], 1):
        values = [100 * one.scored[at].above_combination.value for one in scores]
        result.append(measured_row(FIGURE, f"{_GENERATED}: {_ABOVE}: {name}", "points", values))
    return result + _public_rows()


def _public_rows() -> list[Row]:
    results = abilene()
    if results is None:
        why = f"there is no {ABILENE} in the folder of traces"
        return [missing_row(FIGURE, f"{_PUBLIC}: wrong bytes", "%", None, why)]
    held = results.intervals - results.learnt
    note = (
        f"{held} hours scored, once and not by seed; a network between universities and no cloud's tenant;"
        " intervals by bootstrap over runs of six hours"
    )
    result: list[Row] = []
    for field, words in _ERRORS.items():
        for one in results.scored:
            label = f"{_PUBLIC}: {words}: {one.predictor}"
            result.append(_row(label, getattr(one, field), note if not result else ""))
    for one in results.scored[1:]:
        label = f"{_PUBLIC}: {_ABOVE}: {one.predictor}"
        result.append(_row(label, one.above_combination, unit="points"))
    return result


def _row(quantity: str, figure: Figure, note: str = "", unit: str = "%") -> Row:
    row = computed_row(FIGURE, quantity, unit, 100 * figure.value, None, note)
    low, high = figure.within or (None, None)
    if low is None or high is None:
        return row
    return replace(row, ci_low=100 * low, ci_high=100 * high)


def draw(scores: Sequence[Score]) -> "Picture":
    """A panel for each kind of matrices: wrong bytes of each predictor."""
    from matplotlib import pyplot

    result = {row.quantity: row for row in rows(scores)}
    kinds = [kind for kind in (_GENERATED, _PUBLIC) if f"{kind}: wrong bytes: {PREDICTORS[0]}" in result]
    figure, panels = pyplot.subplots(
        1, len(kinds), figsize=(4.3 * len(kinds), 2.6), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, kind in zip(panels[0], kinds, strict=True):
        visible = [result[f"{kind}: wrong bytes: {name}"] for name in PREDICTORS]
        values = [row.ours or 0.0 for row in visible]
        # A bootstrap interval is not symmetric about its value.
        low = [value - (row.ci_low or value) for value, row in zip(values, visible, strict=True)]
        high = [(row.ci_high or value) - value for value, row in zip(values, visible, strict=True)]
        colours = [COLOURS["choreo"], *[COLOURS["uniform"]] * (len(visible) - 1)]
        axes.barh(PREDICTORS, values, xerr=[low, high], color=colours, ecolor="#111111", capsize=3)
        axes.set_xlim(0)
        axes.set_xlabel(f"{kind}: wrong bytes, %")
    panels[0][0].invert_yaxis()
    return figure
