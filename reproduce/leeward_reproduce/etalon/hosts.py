"""A test of a reason: table 2 with a constant time that hosts take for each packet.

The simulator's hosts write and read at once; the testbed's are containers. So its small flows may take
longer because of hosts. One constant is fitted, under one seed: with it, the median of small flows under
Packet80 is the paper's. Nothing is lost there, and no circuit comes and goes. Then all systems run with this
constant under all seeds. If hosts are the reason of a difference from the paper, the other quantities are
nearer to the paper with it than without.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy

from leeward_reproduce.etalon import paper
from leeward_reproduce.etalon.experiments import Rings, rings
from leeward_reproduce.rows import Row, computed_row, measured_row, missing_row, reference_row, row_key

SEEDS = 3
"""Maximum number of seeds: each seed has twelve runs, besides ten of the fit."""
FITTED = "Packet80"
FIT_SEED = 1
"""Seed of the fit."""
MOST_US = 100.0
"""Largest time of a host that is tried, in microseconds."""
STEP_US = 0.5
"""Largest error of the fitted time, in microseconds."""
_VARIANT = "a variant, which is not compared: with the fitted time of hosts"
_Get = Callable[[Rings], float | None]


def _percentile(kind: str, share: float) -> _Get:
    def get(run: Rings) -> float | None:
        times = getattr(run, kind)
        return float(numpy.percentile(times, share)) if len(times) else None

    return get


_MEDIAN = _percentile("small", 50)
_QUANTITIES: tuple[tuple[str, _Get, Sequence[float]], ...] = (
    ("completion of small flows, median", _MEDIAN, paper.MEDIAN_SMALL),
    ("completion of small flows, p99", _percentile("small", 99), paper.TAIL_SMALL),
    ("completion of big flows, median", _percentile("big", 50), paper.MEDIAN_BIG),
)


_FITTED_QUANTITY = _QUANTITIES[0][0]
_fits = Lock()


def is_fitted(name: str, system: str) -> bool:
    """True for the value to which the time of hosts is fitted, which tests nothing."""
    return (name, system) == (_FITTED_QUANTITY, FITTED)


def variant(name: str, system: str) -> str:
    """Key of the row of a quantity of a system with the time of hosts."""
    return row_key("hosts", f"{name}: {system}")


@dataclass(frozen=True)
class HostTime:
    """Runs under a seed."""

    host_us: float | None
    """The fitted time of a host in microseconds; None if no time up to `MOST_US` fits."""
    without: Mapping[str, Rings]
    """Runs of all systems without a time of hosts."""
    fitted: Mapping[str, Rings]
    """Runs of all systems with the fitted time; empty without one."""


def host_time(seed: int, horizon: str) -> HostTime:
    """Runs all systems without a time of hosts, and with the fitted one."""
    # Seeds run at once, and need the same constant.
    with _fits:
        host_us = constant(horizon)
    without = {system: rings(seed, horizon, 2, system) for system in paper.SYSTEMS}
    fitted = {
        system: rings(seed, horizon, 2, system, host_us=host_us)
        for system in paper.SYSTEMS
        if host_us is not None
    }
    return HostTime(host_us, without, fitted)


@lru_cache(maxsize=4)
def constant(horizon: str) -> float | None:
    """The fitted time of a host in microseconds, which is that of all seeds."""
    target = paper.MEDIAN_SMALL[paper.SYSTEMS.index(FITTED)]
    return fit(lambda us: _MEDIAN(rings(FIT_SEED, horizon, 2, FITTED, host_us=us)), target)


def fit(value: Callable[[float], float | None], target: float) -> float | None:
    """Time of hosts at which a value that grows with it reaches a target, by bisection.

    Args:
        value: Value by time of hosts in microseconds; None if no flow ended, which is too slow.
        target: The target.

    Returns:
        The time in microseconds; None if the value is above the target without it, or below it at `MOST_US`.
    """

    def reaches(host_us: float) -> bool:
        found = value(host_us)
        return found is None or found >= target

    low, high = 0.0, MOST_US
    if reaches(low) or not reaches(high):
        return None
    while high - low > 2 * STEP_US:
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return (low + high) / 2


def rows(outcomes: Sequence[HostTime]) -> list[Row]:
    """The fitted time, table 2 with it, and its distance from the paper with and without."""
    host_us, label = outcomes[0].host_us, "time that a host takes for a packet"
    note = f"fitted under seed {FIT_SEED}: with it, the median of small flows under {FITTED} is the paper's"
    why = f"no time up to {MOST_US:g} us gives the paper's median"
    result = [
        missing_row("hosts", label, "us", None, why)
        if host_us is None
        else computed_row("hosts", label, "us", host_us, None, note)
    ]
    for name, get, papers in _QUANTITIES:
        for system, reported in zip(paper.SYSTEMS, papers, strict=True):
            values = [
                value for one in outcomes if one.fitted and (value := get(one.fitted[system])) is not None
            ]
            words = f"{_VARIANT}; the fit has this value" if is_fitted(name, system) else _VARIANT
            result.append(reference_row("hosts", f"{name}: {system}", "ms", values, reported, words))
    words = "how far the other systems are from the paper: geometric mean of the ratios, each at least 1"
    for name, get, papers in _QUANTITIES:
        for label, runs in (("without", "without"), ("with", "fitted")):
            values = [
                100 * (found - 1)
                for one in outcomes
                if (found := distance(getattr(one, runs), get, papers)) is not None
            ]
            quantity = f"{name}: distance from the paper, {label} the time of hosts"
            result.append(measured_row("hosts", quantity, "%", values, None, words))
    return result


def distance(runs: Mapping[str, Rings], get: _Get, papers: Sequence[float]) -> float | None:
    """Geometric mean over all systems but `FITTED` of a value and the paper's, the larger over the smaller.

    None without a system that has the value.
    """
    pairs = [
        (get(runs[system]), reported)
        for system, reported in zip(paper.SYSTEMS, papers, strict=True)
        if system != FITTED and system in runs
    ]
    logarithms = [abs(math.log(value / reported)) for value, reported in pairs if value]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None
