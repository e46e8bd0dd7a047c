"""Quantities of the runs under a seed."""

import math
from collections.abc import Callable, Sequence

import numpy

from leeward_reproduce.real import rows
from leeward_reproduce.sinbad.real.cases import DEFAULT, SINBAD
from leeward_reproduce.sinbad.real.pairs import Runs


def ratio(statistic: Callable[[list[float]], float], size: int | None = None) -> Callable[[Runs], float]:
    """A statistic of the times of files by HDFS's policy over that by `sinbad`; NaN without common files.

    Files count that are complete under both policies, and have a number of blocks if one is given.
    """

    def of_runs(runs: Runs) -> float:
        default, sinbad = runs[DEFAULT], runs[SINBAD]
        both = [
            (one, other)
            for count, one, other in zip(default.blocks, default.seconds, sinbad.seconds, strict=True)
            if one is not None and other is not None and size in (None, count)
        ]
        if not both:
            return math.nan
        return float(statistic([one for one, _ in both])) / float(statistic([other for _, other in both]))

    return of_runs


def time(policy: str) -> Callable[[Runs], float]:
    """The mean time of the files that are complete under both policies."""

    def of_runs(runs: Runs) -> float:
        times = zip(runs[policy].seconds, runs[DEFAULT].seconds, runs[SINBAD].seconds, strict=True)
        return mean([mine for mine, *both in times if mine is not None and None not in both])

    return of_runs


def median_cv(policy: str, way: str) -> Callable[[Runs], float]:
    """The median Cv of the links of a direction."""
    return lambda runs: runs[policy].cv[way]


def placed_by_hdfs(policy: str) -> Callable[[Runs], float]:
    """Percent of the blocks that HDFS's default policy placed."""
    return lambda runs: rows.placed_by_hdfs(runs[policy].decisions)


def busy(policy: str) -> Callable[[Runs], float]:
    """Percent of the processors' time in use."""
    return lambda runs: rows.busy(runs[policy].busy)


def mean(numbers: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def tail(numbers: Sequence[float]) -> float:
    """The 90th percentile."""
    return float(numpy.quantile(numbers, 0.9))
