"""Jobs that arrive, send and end: the same for every placer.

All random values of a job depend only on the seed and on the number of the job, not on placements.
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
"""Standard deviations above its mean that a normal variable exceeds in 5 % of all cases."""
SIZES = (1, 2, 4, 8)
"""Processors of a task; all sizes are equally frequent."""


_Arrival = tuple[float, bool, float]
"""Arrival of a job, its kind and its duration."""


@dataclass(eq=False)
class Job:
    """Tasks that arrive and end together.

    Attributes:
        number: Number of the job, from 0 in the order of arrival.
        tolerant: True if the tasks may move.
        cpus: Processors of each task.
        egress_bps: Average rate of each task out of its rack.
        ingress_bps: Average rate of each task from outside of its rack.
        arrives_s: Arrival.
        ends_s: End.
        now: Current rates of each task over their averages.
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
    """Logarithm of the common factor of the rates of all its tasks."""
    own: Numbers | None = None
    """Logarithm of the own factor of each task."""

    @property
    def name(self) -> str:
        """Name of the job."""
        return f"{'batch' if self.tolerant else 'service'}-{self.number}"

    def advance(self, seconds: float) -> None:
        """Advances the rates of its tasks by a time."""
        each = self.cell.restless / math.sqrt(2)
        memory = math.exp(-seconds / self.cell.calm_s) if self.own is not None else 0.0
        noise = each * math.sqrt(1 - memory * memory)
        draws = self.random.standard_normal(1 + len(self.now))
        before = numpy.zeros(len(self.now)) if self.own is None else self.own
        self.common = memory * self.common + noise * float(draws[0])
        self.own = memory * before + noise * draws[1:]
        self.now = numpy.exp(self.common + self.own - self.cell.restless**2 / 2)

    def app(self) -> dict[str, Any]:
        """The job as an app file, with peak rates that are exceeded 5 % of the time, as from a history."""
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
        """The app file as JSON."""
        return json.dumps(self.app())


class Arrivals:
    """Jobs of a cell: the first jobs, which arrive while the cell fills, and later jobs."""

    def __init__(self, cell: Cell, seed: int, fills_s: float) -> None:
        """Starts before the first arrival.

        Args:
            cell: The cell.
            seed: Seed of all draws.
            fills_s: Time in which the first jobs arrive.
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
        """Jobs that have arrived since the last call, in order."""
        while self._next is not None and self._next[0] <= now_s:
            arrives_s, tolerant, lasts_s = self._next
            self._next = next(self._coming, None)
            yield self._job(tolerant, arrives_s, lasts_s)

    def _first(self, tolerant: bool, mean_s: float, running: int, fills_s: float) -> list[_Arrival]:
        """Jobs that run in a full cell."""
        random = numpy.random.default_rng((self._seed, 2, tolerant))
        # Jobs that run at a given time are longer than average, and at a random point of their duration.
        mu = math.log(mean_s) + self._cell.lasting**2 / 2
        remaining_s = random.random(running) * random.lognormal(mu, self._cell.lasting, running)
        arrive_s = random.random(running) * fills_s
        rows = zip(arrive_s, remaining_s, strict=True)
        return sorted((float(at), tolerant, float(fills_s - at + remaining)) for at, remaining in rows)

    def _later(self, tolerant: bool, mean_s: float, running: float, fills_s: float) -> Iterator[_Arrival]:
        """Later jobs, which keep an average number of jobs running."""
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
        job.advance(0.0)
        return job


def _mean_cpus(cell: Cell) -> float:
    """Average processors of a job with a log-uniform number of tasks."""
    tasks = (cell.most_tasks - 1) / math.log(cell.most_tasks) if cell.most_tasks > 1 else 1.0
    return tasks * sum(SIZES) / len(SIZES)
