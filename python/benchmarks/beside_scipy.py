"""The schedule of Eclipse beside one by hand with SciPy's matching: time, and share of the demand served.

The hand-written one follows the paper (SIGMETRICS 2016): days one after another, each with the length and
the matching that serve the most bytes per time. It searches the length by thirds over the distinct
remaining times, with a maximum-weight matching by `scipy.optimize.linear_sum_assignment` for each. Leeward
evaluates both schedules. The demand is as in the benchmark of schedules: four large and twelve small
permutations.

    python python/benchmarks/beside_scipy.py [--quick]
"""

import argparse
import time
from typing import Any

import numpy
from peers import package_version
from record import record, record_missing, record_peer

from leeward import circuits

RACKS, QUICK_RACKS = (32, 64), (32,)
CALLS = 5
CIRCUIT_BYTES_PER_US, NIGHT_US, WEEK_US = 10_000, 20, 2_000
"""Of Etalon's network, the default of `circuits.Network`."""


def skewed(racks: int) -> Any:
    """Bytes between racks."""
    random = numpy.random.default_rng(1)
    demand = numpy.zeros((racks, racks), dtype=numpy.int64)
    for number in range(16):
        size = 3.5e6 if number < 4 else 0.33e6
        to = random.permutation(racks)
        demand[numpy.arange(racks), to] += (size * random.uniform(0.9, 1.2, racks)).astype(numpy.int64)
    numpy.fill_diagonal(demand, 0)
    return demand


def day(left: Any) -> tuple[int, Any]:
    """Length in microseconds, and the target of each source, of the day that serves the most per time."""
    from scipy.optimize import linear_sum_assignment

    def served(length: int) -> tuple[float, Any]:
        weights = numpy.minimum(left, length)
        source, target = linear_sum_assignment(weights, maximize=True)
        return weights[source, target].sum() / (length + NIGHT_US), target

    lengths = numpy.unique(left[left > 0])
    low, high = 0, len(lengths) - 1
    while high - low > 2:
        third = (high - low) // 3
        if served(lengths[low + third])[0] < served(lengths[high - third])[0]:
            low += third
        else:
            high -= third
    found = [(*served(length), length) for length in lengths[low : high + 1]]
    _, target, length = max(found, key=lambda one: one[0])
    return int(length), target


def eclipse(demand: Any, network: circuits.Network) -> list[tuple[float, list[tuple[int, int]]]]:
    """Days of a week, each as its length in seconds and its circuits."""
    left = numpy.ceil(numpy.asarray(demand) / CIRCUIT_BYTES_PER_US).astype(numpy.int64)
    days, used = [], 0
    while left.any() and used + NIGHT_US < WEEK_US:
        length, target = day(left)
        length = min(length, WEEK_US - used - NIGHT_US)
        rows = numpy.arange(len(left))
        circuit = left[rows, target] > 0
        pairs = list(zip(rows[circuit].tolist(), target[circuit].tolist(), strict=True))
        days.append((length / 1e6, pairs))
        left[rows, target] = numpy.maximum(left[rows, target] - length, 0)
        used += length + NIGHT_US
    return days


def fastest(scheduler: Any, demand: Any) -> tuple[float, float]:
    """Least processor seconds of some calls, and the share of the demand that the schedule serves."""
    least, served = float("inf"), 0.0
    for _ in range(CALLS):
        start = time.process_time()
        made = circuits.schedule(demand, scheduler)
        least = min(least, time.process_time() - start)
        served = made.served
    return least, served


def main() -> None:
    """Prints a line for each number of racks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer racks")
    options = parser.parse_args()
    version = package_version("scipy")
    if version is None:
        record_missing("SciPy", "the package scipy is not installed")
        return
    record_peer("SciPy", version)
    print(f"{'racks':>5} {'SciPy ms':>10} {'served':>8} {'Leeward ms':>11} {'served':>8} {'ratio':>7}")
    for racks in QUICK_RACKS if options.quick else RACKS:
        demand = skewed(racks)
        theirs, their_share = fastest(eclipse, demand)
        ours, our_share = fastest("eclipse", demand)
        name = f"beside SciPy, eclipse, {racks} racks"
        record(name, "ratio", theirs / ours, peer="SciPy")
        record(f"{name}, served by SciPy", "%", 100 * their_share, peer="SciPy")
        record(f"{name}, served by Leeward", "%", 100 * our_share)
        print(
            f"{racks:>5} {theirs * 1e3:>10.2f} {their_share:>8.1%} {ours * 1e3:>11.2f} {our_share:>8.1%}"
            f" {theirs / ours:>7.1f}"
        )


if __name__ == "__main__":
    main()
