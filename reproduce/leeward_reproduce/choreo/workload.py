"""Networks and apps of Choreo's experiments, drawn by a seed.

The paper's matrices are those of HP Cloud and private, and the EC2 of 2013 is gone. Networks have the rates
that section 2.2 reports for EC2, by machine; `topology` draws them by path. Apps have the tasks and
processors of section 6.1 and usual shapes of traffic, in which a few transfers carry most of the bytes.
Nothing is tuned to the paper's results.
"""

from dataclasses import dataclass

import numpy

from leeward import Cluster

MACHINES = 10
CORES = 4
SPREAD = 1.5
"""A wide spread of sizes: the largest transfer of an app often has most of the app's bytes."""
USUAL, LARGE = (3, 6), (7, 12)
"""Least and most tasks of usual apps, and of large ones, which need half of the cores of ten machines on
average. The paper does not give the sizes of its apps; they fit on ten machines of four cores (section 6)."""
Tasks = list[tuple[float, int]]
Transfers = list[tuple[int, int, int]]


@dataclass(frozen=True)
class App:
    """Tasks (processors, memory) and transfers (from, to, bytes)."""

    tasks: Tasks
    transfers: Transfers


def ec2(random: numpy.random.Generator) -> list[float]:
    """Rates in Mb/s of ten machines: four fifths at 900 to 1,100, the others at 296 to 900.

    All paths of a machine have its rate. `topology` draws rates of paths.
    """
    typical = random.normal(1000, 50, MACHINES).clip(900, 1100)
    slow = random.uniform(296, 900, MACHINES)
    rates = numpy.where(random.random(MACHINES) < 0.8, typical, slow)
    return [float(rate) for rate in rates]


def with_error(random: numpy.random.Generator, rates: list[float], error: float) -> list[float]:
    """Rates as measured with an error: each differs from the true rate by at most the share `error`."""
    return [float(rate * random.uniform(1 - error, 1 + error)) for rate in rates]


def hose(rates: list[float]) -> Cluster:
    """Machines that are limited at the source."""
    hosts = [
        {"name": f"vm{at}", "nic": {"up": f"{round(rate * 1e6)}bps", "down": "100Gbps"}}
        for at, rate in enumerate(rates)
    ]
    return Cluster({"shape": "hose", "cpus": CORES, "hosts": hosts})


def app(random: numpy.random.Generator, spread: float = SPREAD, sizes: tuple[int, int] = USUAL) -> App:
    """An app of tasks of 0.5 to 4 cores (section 6.1), and a matrix of one of five shapes.

    Args:
        random: Source of random numbers.
        spread: Standard deviation of the logarithm of the transfers' sizes; 0 for equal sizes.
        sizes: Least and most tasks.
    """
    count = int(random.integers(sizes[0], sizes[1] + 1))
    tasks = [(float(cores), 0) for cores in random.integers(1, 9, count) / 2]
    pairs = _SHAPES[int(random.integers(len(_SHAPES)))](count)
    transferred = random.lognormal(numpy.log(1e9), spread, len(pairs))
    return App(tasks, [(a, b, int(size)) for (a, b), size in zip(pairs, transferred, strict=True)])


def _star(count: int) -> list[tuple[int, int]]:
    return [(task, 0) for task in range(1, count)]


def _scatter(count: int) -> list[tuple[int, int]]:
    return [(0, task) for task in range(1, count)]


def _chain(count: int) -> list[tuple[int, int]]:
    return [(task, task + 1) for task in range(count - 1)]


def _shuffle(count: int) -> list[tuple[int, int]]:
    half = count // 2
    return [(a, b) for a in range(half) for b in range(half, count)]


def _all(count: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(count) for b in range(count) if a != b]


_SHAPES = (_star, _scatter, _chain, _shuffle, _all)


def join(apps: list[App]) -> App:
    """Joins apps into one, which has their matrices on its diagonal (section 6.2)."""
    tasks: Tasks = []
    transfers: Transfers = []
    for one in apps:
        first = len(tasks)
        transfers += [(first + a, first + b, size) for a, b, size in one.transfers]
        tasks += one.tasks
    return App(tasks, transfers)
