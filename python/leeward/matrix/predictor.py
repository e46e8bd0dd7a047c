"""The predictor: a weighted mean of the bytes of the last hour and at the same time of day.

For a pair with l bytes in the last hour and d at the same time of day, the prediction is w l + (1 - w) d,
with w from 0 to 1 by least squares over the hours of the fit. Weights that are not negative and add up to 1
keep a prediction between l and d: it is finite, not negative, and exact if l and d are. Free weights did
worse than the last hour alone, on hours outside of the fit.

Four models are fitted: with one weight for all pairs (the errors of a pair count in proportion to its size)
or one weight for each pair; and with the mean of all earlier days, or the day before alone, as the time of
day. The model with the least error in a rolling validation within the hours of the fit is used: each of these
hours is predicted with the fit to the hours before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy

from leeward._arrays import Floats
from leeward.matrix.history import History, look_back
from leeward.matrix.series import Series

Days = Literal["earlier days", "day before"]
Scope = Literal["all pairs", "each pair"]
CANDIDATES: tuple[tuple[Days, Scope], ...] = (
    ("earlier days", "all pairs"),
    ("earlier days", "each pair"),
    ("day before", "all pairs"),
    ("day before", "each pair"),
)
"""Models in the order of preference among equally good ones."""


@dataclass(frozen=True)
class Model:
    """Combination of the last hour and the time of day."""

    days: Days
    """Days from which the time of day is used."""
    scope: Scope
    """Scope: one weight for all pairs, or one for each."""
    last_hour: Floats
    """Weight w of the last hour for each pair, 0 to 1; that of the time of day is 1 - w."""
    learnt_hours: int
    """Number of intervals of the fit with a known time of day. Without one, w is 1."""
    validation: float | None
    """Sum of errors over sum of bytes in the rolling validation; None without validation."""


@dataclass(frozen=True)
class Prediction:
    """Prediction of the interval after a series."""

    tasks: tuple[str, ...]
    """Names in the order of rows and columns."""
    matrix: Floats
    """Bytes from each task to each other, shape (tasks, tasks); finite and not negative."""
    model: Model


def predict(series: Series) -> Prediction:
    """Predicts the matrix of the interval after the last, by a model fitted to all intervals.

    The prediction for a pair that never sent is 0. For a pair without an earlier day at this time of day, it
    is its bytes in the last interval.
    """
    past = look_back(series.bytes, series.day)
    model = fit(series.bytes, past, series.intervals, series.day)
    return Prediction(series.tasks, series.square(combine(model, past)[-1]), model)


def time_of_day(past: History, days: Days) -> Floats:
    """Bytes at the same time of day; those of the last interval if no such day is known."""
    at_time = past.earlier_days if days == "earlier days" else past.day_before
    return numpy.where(numpy.isnan(at_time), past.last, at_time)


def combine(model: Model, past: History) -> Floats:
    """Predictions of a model for each interval, shape (intervals + 1, pairs)."""
    daily = time_of_day(past, model.days)
    return _between(model.last_hour, past.last, daily)


def fit(values: Floats, past: History, until: int, day: int) -> Model:
    """Chooses and fits a model.

    Args:
        values: Bytes, shape (intervals, pairs).
        past: Knowledge before each interval.
        until: Number of intervals of the fit; later ones are not read.
        day: Number of intervals of a day.
    """
    # Pairs without traffic so far do not count in the fit, so that sums do not depend on later senders.
    active = values[:until].any(axis=0)
    learnt = values[:until, active]
    seen = History(
        *(values[:until, active] for values in (past.last, past.day_before, past.earlier_days, past.mean))
    )
    models = [_fit(learnt, seen, days, scope, day) for days, scope in CANDIDATES]
    best = min(models, key=lambda model: numpy.inf if model.validation is None else model.validation)
    weights = numpy.ones(values.shape[1])
    if best.learnt_hours and best.scope == "all pairs":
        # Pairs that send later get the same weight.
        weights[:] = best.last_hour[:1]
    elif best.learnt_hours:
        weights[:] = _shared(learnt, seen, best.days)[-1]
        weights[active] = best.last_hour
    return replace(best, last_hour=weights)


def _fit(learnt: Floats, past: History, days: Days, scope: Scope, day: int) -> Model:
    """A model of pairs with traffic, with its validation."""
    daily = time_of_day(past, days)
    rows = max(len(learnt) - day, 0) if learnt.size else 0
    rolling = numpy.broadcast_to(_shared(learnt, past, days)[:, None], (len(learnt) + 1, learnt.shape[1]))
    if scope == "each pair":
        above, below = _sums(learnt, past.last, daily)
        rolling = _quotients(above, below, rolling)
    # Validation begins after a quarter of a day, at least.
    first = day + max(day // 4, 1)
    validation = None
    if first < len(learnt):
        result = _between(rolling[first:-1], past.last[first:], daily[first:])
        total = float(learnt[first:].sum())
        validation = float(numpy.abs(result - learnt[first:]).sum()) / total if total > 0 else None
    return Model(days, scope, rolling[-1].copy(), rows, validation)


def _shared(learnt: Floats, past: History, days: Days) -> Floats:
    """Weight of all pairs, fitted to the intervals before each interval, and to all intervals."""
    above, below = _sums(learnt, past.last, time_of_day(past, days))
    # Each pair counts in proportion to its own mean, or the largest pair would decide for all.
    size = (
        numpy.vstack([past.mean, learnt.mean(axis=0)]) if len(learnt) else numpy.zeros((1, learnt.shape[1]))
    )
    size = numpy.where(size > 0, size, numpy.inf)
    above, below = ((sums / size / size).sum(axis=1) for sums in (above, below))
    return _quotients(above, below, numpy.ones(len(above)))


def _sums(learnt: Floats, last: Floats, daily: Floats) -> Iterator[Floats]:
    """Sums whose quotient is the best weight, over the intervals before each interval, and over all."""
    apart = last - daily
    for terms in (apart * (learnt - daily), apart * apart):
        yield numpy.vstack([numpy.zeros((1, learnt.shape[1])), numpy.cumsum(terms, axis=0)])


def _quotients(above: Floats, below: Floats, otherwise: Floats) -> Floats:
    """Weights from 0 to 1; undefined where both predictors were always equal."""
    result = numpy.array(otherwise)
    numpy.divide(above, below, out=result, where=below > 0)
    return numpy.clip(result, 0, 1, out=result)


def _between(weight: Floats, last: Floats, daily: Floats) -> Floats:
    # Rounding could move a mean of two values outside of their range.
    result = weight * last + (1 - weight) * daily
    return numpy.clip(result, numpy.minimum(last, daily), numpy.maximum(last, daily))
