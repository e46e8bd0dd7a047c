"""Rows that have the values of the paper, the simulator and the cluster beside each other."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy

from leeward_reproduce.etalon.kernels.expected import agreement
from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.sinbad.real.cases import DEFAULT, SINBAD
from leeward_reproduce.sinbad.real.pairs import Pair, Runs


@dataclass(frozen=True)
class Values:
    """Values of a quantity, one for each seed."""

    simulator: list[float]
    real: list[float]


def values(value: Callable[..., float], *cases: Sequence[Pair]) -> Values:
    """Values of a function of the runs of a seed, in one case or several. Only finite ones count."""
    of_seeds = list(zip(*cases, strict=True))
    return Values(
        _finite(value(*(pair.simulator for pair in pairs)) for pairs in of_seeds),
        _finite(value(*(pair.real for pair in pairs)) for pairs in of_seeds),
    )


def _finite(numbers: Iterable[float]) -> list[float]:
    return [number for number in numbers if math.isfinite(number)]


def row(
    figure: str,
    quantity: str,
    unit: str,
    of_seeds: Values,
    reported: float | None = None,
    note: str = "",
) -> Row:
    """A row with the mean over seeds, and an interval for the cluster."""
    simulator = of_seeds.simulator
    result = measured_row(figure, quantity, unit, of_seeds.real, reported, note)
    return replace(result, simulator=mean(simulator) if simulator else None)


def difference(figure: str, quantity: str, rows: Sequence[Row]) -> Row:
    """A row with the largest difference of the cluster from the simulator in some rows."""
    pairs = [(one.simulator, one.ours) for one in rows]
    text = f"{quantity}: largest difference of cluster and simulator"
    return agreement(figure, text, "%", pairs, points=False)


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


def mean(numbers: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def tail(numbers: Sequence[float]) -> float:
    """The 90th percentile."""
    return float(numpy.quantile(numbers, 0.9))
