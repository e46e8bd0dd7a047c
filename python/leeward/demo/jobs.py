"""Jobs that arrive, send and end: the same for every way of placing them.

All that is random about a job comes of the seed and its number, and not of what was placed where.
"""

import heapq
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from leeward.demo.cell import Cell, Numbers

PEAK = 1.645
"""Deviations above the mean of a normal variable that it exceeds in 5 % of all cases."""
SIZES = (1, 2, 4, 8)
"""Processors that a task needs; one size is as frequent as another."""


_Arrival = tuple[float, bool, float]
"""When a job arrives, whether it is tolerant, how long it lasts."""


@dataclass(eq=False)
class Job:
    """Tasks that arrive and end together.

    Attributes:
        number: Of the job, from 0 in the order of arrival.
        tolerant: Whether its tasks may be moved.
        cpus: Processors of each task.
        egress_bps: What each task sends out of its rack in the mean.
        ingress_bps: What it receives.
        arrives_s: When it arrives.
        ends_s: When it ends.
        now: What each task sends and receives now, over its mean.
    """

    number: int
    tolerant: bool
    cpus: int
    egress_bps: Numbers
    ingress_bps: Numbers
    arrives_s: float
    ends_s: float
    now: Numbers
    cell: Cell
    random: numpy.random.Generator
    common: float = 0.0
    """Logarithm of what all its tasks send at a time over the mean."""
    own: Numbers | None = None
    """The same of each by itself."""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{'batch' if self.tolerant else 'service'}-{self.number}"

    def go_on(self, seconds: float) -> None:
        """Lets the rates of its tasks be what they are so much later."""
        each = self.cell.restless / math.sqrt(2)
        kept = math.exp(-seconds / self.cell.calm_s) if self.own is not None else 0.0
        fresh = each * math.sqrt(1 - kept * kept)
        drawn = self.random.standard_normal(1 + len(self.now))
        before = numpy.zeros(len(self.now)) if self.own is None else self.own
        self.common = kept * self.common + fresh * float(drawn[0])
        self.own = kept * before + fresh * drawn[1:]
        self.now = numpy.exp(self.common + self.own - self.cell.restless**2 / 2)

    def app(self) -> dict[str, Any]:
        """It as an app file, with what its history would show: peaks are exceeded 5 % of the time."""
        most = math.exp(PEAK * self.cell.restless - self.cell.restless**2 / 2)

        def rates(mean: float) -> dict[str, str]:
            return {"mean": f"{round(mean)}bps", "peak": f"{round(mean * most)}bps"}

        task = {
            "name": "task",
            "count": len(self.now),
            "cpus": self.cpus,
            "tolerant": self.tolerant,
            "egress": rates(float(self.egress_bps.mean())),
            "ingress": rates(float(self.ingress_bps.mean())),
        }
        return {"name": self.name, "tasks": [task]}

    @property
    def text(self) -> str:
        """The same as JSON."""
        return json.dumps(self.app())


class Arrivals:
    """The jobs of a cell: those that would run at the start, which arrive while it fills, and those after."""

    def __init__(self, cell: Cell, seed: int, fills_s: float) -> None:
        """Nothing has arrived.

        Args:
            cell: What runs.
            seed: Of everything random.
            fills_s: In which time what would run at the start arrives.
        """
        self._cell = cell
        self._seed = seed
        self._number = 0
        processors = cell.processors * cell.racks * cell.hosts_per_rack * cell.cpus / _mean_cpus(cell)
        classes = ((True, cell.batch_s, cell.tolerant), (False, cell.service_s, 1 - cell.tolerant))
        streams = [
            stream
            for tolerant, mean_s, share in classes
            for stream in (
                self._first(tolerant, mean_s, round(share * processors), fills_s),
                self._later(tolerant, mean_s, share * processors, fills_s),
            )
        ]
        self._coming = heapq.merge(*streams)
        self._next = next(self._coming, None)

    def until(self, now_s: float) -> Iterator[Job]:
        """The jobs that have arrived since it was last asked, in order."""
        while self._next is not None and self._next[0] <= now_s:
            arrives_s, tolerant, lasts_s = self._next
            self._next = next(self._coming, None)
            yield self._job(tolerant, arrives_s, lasts_s)

    def _first(self, tolerant: bool, mean_s: float, running: int, fills_s: float) -> list[_Arrival]:
        """Those that run when the cell is full."""
        random = numpy.random.default_rng((self._seed, 2, tolerant))
        # Who looks at a moment meets long lives, and each at any point of it.
        mu = math.log(mean_s) + self._cell.lasting**2 / 2
        left_s = random.random(running) * random.lognormal(mu, self._cell.lasting, running)
        arrive_s = random.random(running) * fills_s
        rows = zip(arrive_s, left_s, strict=True)
        return sorted((float(at), tolerant, float(fills_s - at + left)) for at, left in rows)

    def _later(self, tolerant: bool, mean_s: float, running: float, fills_s: float) -> Iterator[_Arrival]:
        """Those that keep it full, so many running at once in the mean."""
        random = numpy.random.default_rng((self._seed, 3, tolerant))
        mu, at = math.log(mean_s) - self._cell.lasting**2 / 2, fills_s
        while running > 0:
            at += float(random.exponential(mean_s / running))
            yield at, tolerant, float(random.lognormal(mu, self._cell.lasting))

    def _job(self, tolerant: bool, arrives_s: float, lasts_s: float) -> Job:
        cell, number = self._cell, self._number
        self._number += 1
        random = numpy.random.default_rng((self._seed, 1, number))
        tasks = max(1, round(cell.most_tasks ** random.random()))
        cpus = int(random.choice(SIZES))
        most_bps = cell.nic_bps / 4
        sends = cell.per_processor_bps * cpus * random.lognormal(-(cell.spread**2) / 2, cell.spread)
        receives = sends * random.lognormal(-(cell.uneven**2) / 2, cell.uneven)
        job = Job(
            number=number,
            tolerant=tolerant,
            cpus=cpus,
            egress_bps=numpy.full(tasks, min(sends, most_bps)),
            ingress_bps=numpy.full(tasks, min(receives, most_bps)),
            arrives_s=arrives_s,
            ends_s=arrives_s + lasts_s,
            now=numpy.ones(tasks),
            cell=cell,
            random=random,
        )
        job.go_on(0.0)
        return job


def _mean_cpus(cell: Cell) -> float:
    """Processors of a job in the mean: of a log-uniform number of tasks."""
    tasks = (cell.most_tasks - 1) / math.log(cell.most_tasks) if cell.most_tasks > 1 else 1.0
    return tasks * sum(SIZES) / len(SIZES)
