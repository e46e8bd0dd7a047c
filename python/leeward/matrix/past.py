"""What is known of each pair before each interval: what it sent last, and what at the same time of day.

Everything here is of the past alone: row t is made of the intervals before t. A pair is known from the first
interval in which it sent anything; days before that are none of its days.
"""

from dataclasses import dataclass

import numpy

from leeward._arrays import Floats


@dataclass(frozen=True)
class Past:
    """What is known before each interval; shape (intervals + 1, pairs), the last row before the next one."""

    last: Floats
    """Bytes of the interval before; 0 before the first."""
    day_before: Floats
    """Bytes of the same time of the day before; NaN where that day is not known."""
    earlier_days: Floats
    """Mean of the same time of all earlier days; NaN where none is known."""
    mean: Floats
    """Mean of all intervals from the first with traffic on; 0 before it."""


def look_back(values: Floats, day: int) -> Past:
    """Looks back from each interval, and from the next.

    Args:
        values: Bytes, shape (intervals, pairs).
        day: How many intervals a day has.
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
        # A day moves the mean of those before it towards itself: days that are alike leave it as it is.
        moved = mean_before + (before[start:end] - mean_before) / numpy.maximum(days[start:end], 1)
        earlier[start:end] = numpy.where(numpy.isnan(mean_before), before[start:end], moved)
    return Past(last, before, earlier, mean)
