"""Comparison of placers on the same jobs, step by step."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy

from leeward.demo.arms import Arm, Placer
from leeward.demo.cell import Cell, Network, Numbers
from leeward.demo.jobs import Arrivals, Job

HOT = 0.75
"""Utilization in a step above which a link is hot (Hotspots section 3)."""
FILL_STEPS = 20
"""Number of steps that fill the cell and do not count."""
HISTORY_STEPS = 2_000
"""Number of steps of the history."""
START = datetime(2026, 1, 31, 8, tzinfo=UTC)
"""Time of the cell at the start."""


class Driver:
    """A cell under several placers.

    Rates are demands of tasks; a link carries at most its capacity, and the excess is lost. A job that one of
    the placers refuses runs under no placer, so that all arms carry the same jobs.

    Attributes:
        network: Links of the cell.
        arms: Arms, one for each placer.
        now_s: Simulated time.
        steps: Number of steps.
        refused: Number of jobs that ran nowhere, since a placer refused them.
    """

    def __init__(
        self, cell: Cell, network: Network, placers: Mapping[str, Placer], seed: int, step_s: float
    ) -> None:
        """Starts without jobs.

        Args:
            cell: The simulated cell.
            network: Links of the cell.
            placers: Placers of the arms, by name.
            seed: Seed of jobs and their rates.
            step_s: Length of a step.
        """
        self.network = network
        self.arms = [Arm(name, placer, network) for name, placer in placers.items()]
        self.step_s = step_s
        self.now_s = 0.0
        self.steps = 0
        self.refused = 0
        self._arrivals = Arrivals(cell, seed, FILL_STEPS * step_s)
        self._running: dict[int, Job] = {}
        self._utilizations = {arm.name: numpy.zeros(len(network.links)) for arm in self.arms}
        self._hot: dict[str, deque[float | None]] = {
            arm.name: deque(maxlen=HISTORY_STEPS) for arm in self.arms
        }

    @property
    def full(self) -> bool:
        """True once the average number of jobs has arrived."""
        return self.steps >= FILL_STEPS

    def step(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Advances by a step: jobs end and arrive, rates change, links carry load, placers get reports.

        Args:
            meanwhile: Called several times after all jobs are placed and before the placers get reports.
        """
        self.steps += 1
        self.now_s = self.steps * self.step_s
        for job in [job for job in self._running.values() if job.ends_s <= self.now_s]:
            self._end(job)
        for job in self._arrivals.until(self.now_s):
            self._place(job)
        jobs = self._running
        meanwhile()
        for job in jobs.values():
            job.advance(self.step_s)
        meanwhile()
        carried = [numpy.minimum(arm.demands_bps(jobs), self.network.capacity_bps) for arm in self.arms]
        for arm, loads in zip(self.arms, carried, strict=True):
            self._utilizations[arm.name] = loads / self.network.capacity_bps
            self._hot[arm.name].append(self.hot_share(arm.name) if self.full else None)
        meanwhile()
        for arm, loads in zip(self.arms, carried, strict=True):
            # A move of this step takes effect by the next step.
            arm.move(arm.placer.report(loads, list(jobs.values())))

    def stop(self) -> None:
        """Ends all running jobs under all placers."""
        for job in list(self._running.values()):
            self._end(job)

    def _place(self, job: Job) -> None:
        placements = []
        for arm in self.arms:
            hosts = arm.placer.place(job)
            if hosts is None:
                break
            placements.append((arm, hosts))
        if len(placements) < len(self.arms):
            self.refused += 1
            for arm, _ in placements:
                arm.placer.end(job)
            return
        for arm, hosts in placements:
            arm.put(job, hosts)
        self._running[job.number] = job

    def _end(self, job: Job) -> None:
        del self._running[job.number]
        for arm in self.arms:
            arm.remove(job)
            arm.placer.end(job)

    @property
    def jobs(self) -> dict[int, Job]:
        """Running jobs, by number."""
        return dict(self._running)

    def utilization(self, arm: str) -> Numbers:
        """Load of each link in the last step."""
        return self._utilizations[arm]

    def hot_racks(self, arm: str) -> int:
        """Number of racks with a hot link."""
        up, down = self.network.of_racks(self._utilizations[arm])
        return int(((up > HOT) | (down > HOT)).sum())

    def hot_share(self, arm: str) -> float:
        """Racks with a hot link, as a share of all racks."""
        return self.hot_racks(arm) / len(self.network.racks)

    def comparison(self, speed: float) -> dict[str, Any]:
        """State as in `/v1/demo`; `speed` is simulated seconds in a second."""
        return {
            "time": (START + timedelta(seconds=self.now_s)).isoformat().replace("+00:00", "Z"),
            "speed": speed,
            "arms": [
                {
                    "name": arm.name,
                    "policy": arm.placer.policy,
                    "hot_racks": self.hot_racks(arm.name),
                    "hot_share": self.hot_share(arm.name),
                    "racks": self._racks(arm.name),
                }
                for arm in self.arms
            ],
            "history": {
                "step_s": self.step_s,
                "arms": [{"name": name, "hot_share": list(hot)} for name, hot in self._hot.items()],
            },
        }

    def _racks(self, arm: str) -> Iterable[dict[str, Any]]:
        up, down = self.network.of_racks(self._utilizations[arm])
        rows = zip(self.network.racks, up.tolist(), down.tolist(), strict=True)
        return [{"rack": rack, "up": sent, "down": received} for rack, sent, received in rows]
