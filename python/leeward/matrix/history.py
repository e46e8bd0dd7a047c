"""Knowledge about each pair before each interval: bytes of the last interval, and at the same time of day.

Row t depends only on the intervals before t. A pair is known from its first interval with traffic on; it has
no days before that interval.
"""

from dataclasses import dataclass

import numpy

from leeward._arrays import Floats


@dataclass(frozen=True)
class History:
    """Knowledge before each interval; shape (intervals + 1, pairs). The last row is for the next interval."""

    last: Floats
    """Bytes of the interval before; 0 before the first."""
    day_before: Floats
    """Bytes at the same time of the day before; NaN for an unknown day."""
    earlier_days: Floats
    """Mean over the same time of all earlier days; NaN without a known day."""
    mean: Floats
    """Mean of all intervals from the first with traffic on; 0 before it."""


def look_back(values: Floats, day: int) -> History:
    """Knowledge before each interval, and before the next.

    Args:
        values: Bytes, shape (intervals, pairs).
        day: Number of intervals of a day.
    """
    intervals, pairs = values.shape
    known = numpy.logical_or.accumulate(values > 0, axis=0)
    last = numpy.vstack([numpy.zeros((1, pairs)), values])
    since = numpy.vstack([numpy.zeros((1, pairs)), numpy.cumsum(known, axis=0)])
    mean = numpy.vstack([numpy.zeros((1, pairs)), numpy.cumsum(values, axis=0)])
    numpy.divide(mean, since, out=mean, where=since > 0)
    before = numpy.full((intervals + 1, pairs), numpy.nan)
    before[day:] = numpy.where(known, values, numpy.nan)[: max(intervals + 1 - day, 0)]
    earlier = before.copy()
    days = (~numpy.isnan(before)).astype(numpy.float64)
    for start in range(2 * day, intervals + 1, day):
        end = min(start + day, intervals + 1)
        mean_before = earlier[start - day : end - day]
        days[start:end] += days[start - day : end - day]
        # A day moves the mean of earlier days towards itself: equal days leave it unchanged.
        moved = mean_before + (before[start:end] - mean_before) / numpy.maximum(days[start:end], 1)
        earlier[start:end] = numpy.where(numpy.isnan(mean_before), before[start:end], moved)
    return History(last, before, earlier, mean)
