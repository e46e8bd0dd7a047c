"""Errors of predictors on hours outside of the fit, one hour ahead.

The model is fitted to the first part of a series. Every later interval is then predicted from the intervals
before it, with fixed weights, and compared with its true bytes. A pair without traffic in an interval has no
relative error there. An interval without any traffic has no relative error either. Predictions for both count
as wrong bytes.

Confidence intervals are 95 % by bootstrap over time: blocks of a quarter of a day are drawn from the scored
hours, since errors of neighbouring hours correlate. All predictors share the draws, so that they can be
compared.
"""

from dataclasses import dataclass

import numpy

from leeward._arrays import Floats
from leeward.errors import InputError
from leeward.matrix.history import look_back
from leeward.matrix.predictor import Model, combine, fit, time_of_day
from leeward.matrix.series import Series

COMBINATION = "combination"
PREDICTORS = (COMBINATION, "last hour", "time of day", "mean of the past")
"""The combination, and its baselines."""
TRAIN = 0.7
_RESAMPLES = 2_000
Interval = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """An error, as a share."""

    value: float
    within: Interval | None
    """95 % confidence interval; None if less than half a day is scored."""


@dataclass(frozen=True)
class Scored:
    """Errors of a predictor."""

    predictor: str
    """One of `PREDICTORS`."""
    wrong_bytes: Figure
    """Sum of absolute errors over the sum of bytes, of all pairs and intervals."""
    total: Figure
    """Relative error of the bytes of all pairs together, mean over intervals."""
    median: Figure
    """Median relative error over pairs with traffic, mean over intervals."""
    p90: Figure
    """90th percentile of the relative error over pairs with traffic, mean over intervals."""
    above_combination: Figure
    """`wrong_bytes` minus that of the combination; above 0 is worse than the combination."""


@dataclass(frozen=True)
class Score:
    """All predictors on the same intervals."""

    intervals: int
    """Number of intervals of the series."""
    learnt: int
    """Number of intervals in the fit, which are the first of the series."""
    pairs: int
    """Number of pairs with traffic."""
    model: Model
    scored: tuple[Scored, ...]
    """Scores by `PREDICTORS`."""


def score(series: Series, train: float = TRAIN, seed: int = 1) -> Score:
    """Scores predictors on the later part of a series.

    Args:
        series: True bytes.
        train: Share of its intervals in the fit, above 0 and below 1; rounded down, at least 1.
        seed: Seed of the bootstrap.

    Raises:
        InputError: The share is invalid, or later intervals have no traffic.
    """
    learnt = learnt_of(series, train)
    model, predictions = held_out(series, learnt)
    sent = series.bytes[learnt:]
    if not sent.any():
        message = f"nothing was sent in the {len(sent)} intervals after the first {learnt}: no relative error"
        raise InputError.about("series", message)
    has = sent.any(axis=1)
    columns = [
        sent.sum(axis=1),
        has,
        *(row for name in PREDICTORS for row in _errors(predictions[name], sent)),
    ]
    by_interval = numpy.column_stack(columns).astype(numpy.float64)
    figures_of_all = _figures(by_interval.sum(axis=0))
    resamples = _resample(by_interval, max(series.day // 4, 1), seed)
    scored = []
    for index, name in enumerate(PREDICTORS):
        above = float(figures_of_all[index, 0] - figures_of_all[0, 0])
        figures = [Figure(float(value), None) for value in (*figures_of_all[index], above)]
        if resamples is not None:
            spread = [*resamples[:, index].T, resamples[:, index, 0] - resamples[:, 0, 0]]
            figures = [
                Figure(figure.value, _interval(resampled))
                for figure, resampled in zip(figures, spread, strict=True)
            ]
        scored.append(Scored(name, *figures))
    return Score(series.intervals, learnt, len(series.pairs), model, tuple(scored))


def learnt_of(series: Series, train: float) -> int:
    """Number of intervals of the fit.

    Raises:
        InputError: The share is not between 0 and 1, or the series has fewer than two intervals.
    """
    if not 0 < train < 1:
        raise InputError.about("train", f"`{train}`: expected a share above 0 and below 1")
    if series.intervals < 2:
        message = f"{series.intervals} interval; expected at least two, one to learn from and one to score"
        raise InputError.about("series", message)
    # 0.7 of 10 is 7, despite the rounding of doubles.
    return min(max(int(series.intervals * train + 1e-9), 1), series.intervals - 1)


def held_out(series: Series, learnt: int) -> tuple[Model, dict[str, Floats]]:
    """Predictions of each predictor for the intervals after the first `learnt`, shape (intervals, pairs)."""
    past = look_back(series.bytes, series.day)
    model = fit(series.bytes, past, learnt, series.day)
    predictions = {
        COMBINATION: combine(model, past),
        "last hour": past.last,
        "time of day": time_of_day(past, model.days),
        "mean of the past": past.mean,
    }
    return model, {name: predicted[learnt:-1] for name, predicted in predictions.items()}


def _errors(predicted: Floats, sent: Floats) -> Floats:
    """Errors in each interval: bytes, and relative errors of total and pairs; shape (4, intervals).

    Relative errors are 0 where nothing was sent.
    """
    errors = numpy.abs(predicted - sent)
    sums = sent.sum(axis=1)
    result = numpy.zeros((4, len(sent)))
    result[0] = errors.sum(axis=1)
    numpy.divide(numpy.abs(predicted.sum(axis=1) - sums), sums, out=result[1], where=sums > 0)
    for row in numpy.flatnonzero(sums > 0):
        active = sent[row] > 0
        result[2:, row] = numpy.quantile(errors[row, active] / sent[row, active], (0.5, 0.9))
    return result


def _figures(sums: Floats) -> Floats:
    """Four figures of each predictor, from sums over intervals; NaN without traffic.

    Args:
        sums: Bytes, number of intervals with traffic, and the errors of each predictor, in the last axis.
    """
    sent, count, errors = sums[..., 0], sums[..., 1], sums[..., 2:].reshape(*sums.shape[:-1], -1, 4)
    below = numpy.stack([sent, count, count, count], axis=-1)[..., None, :]
    result: Floats = numpy.full(errors.shape, numpy.nan)
    numpy.divide(errors, below, out=result, where=below > 0)
    return result


def _resample(by_interval: Floats, run: int, seed: int) -> Floats | None:
    """Figures of each resample; None without two runs to draw from.

    Args:
        by_interval: Summands of `_figures`, shape (intervals, ...).
        run: Number of neighbouring intervals drawn together.
        seed: Seed of the draws.
    """
    count = len(by_interval)
    if count < 2 * run:
        return None
    # Runs wrap around, so that all intervals are drawn equally often.
    around = numpy.cumsum(numpy.vstack([0 * by_interval[:1], by_interval, by_interval[:run]]), axis=0)
    runs = (around[run:] - around[:-run])[:count]
    random = numpy.random.default_rng(seed)
    draws = [runs[random.integers(0, count, -(-count // run))].sum(axis=0) for _ in range(_RESAMPLES)]
    return _figures(numpy.array(draws))


def _interval(resampled: Floats) -> Interval:
    low, high = numpy.nanquantile(resampled, (0.025, 0.975))
    return float(low), float(high)
