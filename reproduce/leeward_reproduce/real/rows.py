"""Rows that have the values of the paper, the simulator and the cluster beside each other.

Both columns are of the same seeds. A factor is a geometric mean, with the interval of its logarithm: the mean
of ratios is too large, and one pair in which HDFS's policy had bad luck decides it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from leeward.sweep import interval
from leeward_reproduce.hdfs.usage import by_hdfs
from leeward_reproduce.rows import Paper, Reason, Row, compare, measured_row, missing_row, with_reason

M = TypeVar("M")
FACTOR = "x"
"""Unit of factors."""
NEAR = 20.0
"""Largest difference between cluster and simulator that counts as agreement, in percent."""
_NOTHING = "nothing of this kind in these runs"


@dataclass(frozen=True)
class Pair(Generic[M]):
    """Runs under a seed, by policy."""

    seed: int
    simulator: Mapping[str, M]
    real: Mapping[str, M]


@dataclass(frozen=True)
class Values:
    """Values of a quantity under the seeds that have it.

    Attributes:
        simulator: Values of the simulator; none if it does not have the quantity.
        real: Values of the cluster.
        pairs: Number of seeds, also of those without a value.
    """

    simulator: list[float]
    real: list[float]
    pairs: int


def values(value: Callable[..., float], *cases: Sequence[Pair[M]]) -> Values:
    """Values of a function of the runs of a seed, in one case or several.

    A seed counts if the function is finite for the cluster and, unless it never is, for the simulator.
    """
    both = [
        (value(*(pair.simulator for pair in pairs)), value(*(pair.real for pair in pairs)))
        for pairs in zip(*cases, strict=True)
    ]
    is_simulated = any(math.isfinite(simulator) for simulator, _ in both)
    counting = [
        (simulator, real)
        for simulator, real in both
        if math.isfinite(real) and (math.isfinite(simulator) or not is_simulated)
    ]
    return Values(
        [simulator for simulator, _ in counting] if is_simulated else [],
        [real for _, real in counting],
        len(both),
    )


def row(
    figure: str,
    quantity: str,
    unit: str,
    of_seeds: Values,
    reported: Paper = None,
    note: str = "",
    reason: Reason | None = None,
    is_change: bool = False,
) -> Row:
    """A row with the means over seeds and their intervals.

    Args:
        figure: Name of the figure.
        quantity: Name of the quantity.
        unit: Its unit.
        of_seeds: Its values.
        reported: Value or range of the paper.
        note: Note of the row. It also gets the number of seeds with a value, if some have none.
        reason: Reason of a difference from the paper, for a row that does not hold and whose interval
            excludes the paper's value.
        is_change: True for a change in percent.
    """
    if not of_seeds.real:
        return missing_row(figure, quantity, unit, reported, _NOTHING)
    mean, low, high = _estimate(of_seeds.real, unit)
    base = replace(measured_row(figure, quantity, unit, [mean]), ci_low=low, ci_high=high)
    result = with_reason(compare(base, reported, is_change=is_change), reason)
    notes = [note]
    if len(of_seeds.real) < of_seeds.pairs:
        notes.append(f"{len(of_seeds.real)} of {of_seeds.pairs} pairs have a value")
    result = replace(result, note="; ".join(filter(None, notes)))
    if not of_seeds.simulator:
        return result
    mean, low, high = _estimate(of_seeds.simulator, unit)
    return replace(result, simulator=mean, simulator_low=low, simulator_high=high)


def agreement(figure: str, quantity: str, of_seeds: Values) -> Row:
    """The difference of the cluster from the simulator under the same seeds, in percent of the simulator.

    It is met if its interval is within `NEAR`. One seed has no interval, and decides nothing.
    """
    both = zip(of_seeds.simulator, of_seeds.real, strict=True) if of_seeds.simulator else ()
    ratios = [real / simulator for simulator, real in both if simulator > 0 and real > 0]
    text = f"{quantity}: real against simulator"
    if not ratios:
        return missing_row(figure, text, "%", None, _NOTHING)
    mean, low, high = _estimate(ratios, FACTOR)
    result = measured_row(figure, text, "%", [100 * (mean - 1)])
    expected = f"interval within {NEAR:g} %"
    if low is None or high is None:
        return replace(result, expected=expected)
    low, high = 100 * (low - 1), 100 * (high - 1)
    return replace(result, ci_low=low, ci_high=high, expected=expected, met=low >= -NEAR and high <= NEAR)


def placed_by_hdfs(decisions: Mapping[str, int]) -> float:
    """Percent of the blocks of a policy that HDFS's default policy placed; NaN without decisions."""
    total = sum(decisions.values())
    return 100 * by_hdfs(decisions) / total if total else math.nan


def busy(share: float | None) -> float:
    """Percent of the processors' time in use; NaN in the simulator, which has none."""
    return math.nan if share is None else 100 * share


def _estimate(numbers: Sequence[float], unit: str) -> tuple[float, float | None, float | None]:
    """The mean, and its interval if there are several numbers."""
    if unit == FACTOR:
        logarithms = [math.log(number) for number in numbers]
        low, high = interval(logarithms) or (None, None)
        mean = math.exp(math.fsum(logarithms) / len(numbers))
        return mean, None if low is None else math.exp(low), None if high is None else math.exp(high)
    return math.fsum(numbers) / len(numbers), *(interval(numbers) or (None, None))
