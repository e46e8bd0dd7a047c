"""Arms of a comparison: placers of the same jobs, and the hosts of all tasks under each placer."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy

from leeward._native import Cluster, Scheduler
from leeward.client import Client, RefusedError
from leeward.client.types import TaskReport
from leeward.demo.cell import Network, Numbers, Places
from leeward.demo.jobs import Job

Move = tuple[int, int, int]
"""A job and a task of it, by number, and the new host of the task."""


class Placer(Protocol):
    """A placer of jobs."""

    @property
    def policy(self) -> str:
        """Name of its policy."""

    def place(self, job: Job) -> list[str] | None:
        """Names of hosts, one for each task; None for a refused job."""

    def end(self, job: Job) -> None:
        """Ends a placed job."""

    def report(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """Reports the loads of links since the last report; returns the moves of tasks.

        Args:
            carried_bps: Load of each link.
            jobs: Running jobs.
        """


class BlindPlacer:
    """A policy without load information, as in most schedulers today; runs in this process."""

    def __init__(self, cluster: Cluster, policy: str, seed: int) -> None:
        """Starts without running jobs."""
        self.policy = policy
        self._scheduler = Scheduler(cluster, policy, seed)

    def place(self, job: Job) -> list[str] | None:
        """See `Placer`."""
        return self._scheduler.place(job.number, job.number, job.text)

    def end(self, job: Job) -> None:
        """See `Placer`."""
        self._scheduler.end(job.number)

    def report(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """No task moves."""
        del carried_bps, jobs
        return []


class ControllerPlacer:
    """A controller over HTTP, which gets requests and loads of links. The demo carries out its moves."""

    def __init__(
        self,
        client: Client,
        network: Network,
        policy: str,
        interval_s: float,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Starts without requests; its first window begins now.

        Args:
            client: Client of the controller.
            network: Links of the controller's cluster.
            policy: Policy of the controller.
            interval_s: Interval at which the controller expects reports.
            clock: Current time.
        """
        self.policy = policy
        self._client = client
        self._network = network
        self._interval = timedelta(seconds=interval_s)
        self._clock = clock
        self._carried_bps = numpy.zeros(len(network.links))
        self._until = clock()
        self._decisions: dict[int, str] = {}
        self._jobs: dict[str, int] = {}

    def place(self, job: Job) -> list[str] | None:
        """See `Placer`."""
        # A step may take longer than an interval; links keep their loads until the step ends.
        if self._clock() - self._until > self._interval:
            self._report([])
        try:
            decision = self._client.place_tasks(job.app(), job=job.name)
        except RefusedError:
            return None
        self._decisions[job.number] = decision["id"]
        self._jobs[decision["id"]] = job.number
        return decision["hosts"]

    def end(self, job: Job) -> None:
        """See `Placer`."""
        decision = self._decisions.pop(job.number)
        del self._jobs[decision]
        self._client.release(decision)

    def report(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """See `Placer`."""
        self._carried_bps = carried_bps
        self._report(self._rates(jobs))
        moves = []
        for migration in list(self._client.migrations("advised")):
            job = self._jobs.get(migration["decision"])
            if job is None:
                self._client.answer_migration(migration["id"], "refused", "its job has ended")
                continue
            self._client.answer_migration(migration["id"], "done")
            task = int(migration["task"].removeprefix("task"))
            moves.append((job, task, self._network.at[migration["to"]]))
        return moves

    def _report(self, tasks: list[TaskReport]) -> None:
        since, self._until = self._until, self._clock()
        if self._until > since:
            loads = numpy.rint(self._carried_bps).astype(numpy.int64).tolist()
            links = dict(zip(self._network.links, loads, strict=True))
            self._client.report(since, self._until, links=links, tasks=tasks)

    def _rates(self, jobs: Sequence[Job]) -> list[TaskReport]:
        """Load of tasks that may move."""

        def whole(rates_bps: Numbers) -> list[int]:
            # Whole numbers are much faster to write as text.
            return list(rates_bps.astype(numpy.int64).tolist())

        return [
            {
                "decision": self._decisions[job.number],
                "task": number,
                "egress_bps": egress,
                "ingress_bps": ingress,
            }
            for job in jobs
            if job.tolerant
            for number, (egress, ingress) in enumerate(
                zip(whole(job.egress_bps * job.now), whole(job.ingress_bps * job.now), strict=True)
            )
        ]


class Arm:
    """Hosts of all tasks under one placer, and the loads of links.

    Attributes:
        name: Name of the arm.
        placer: Its placer.
        moved: Number of moves.
    """

    def __init__(self, name: str, placer: Placer, network: Network) -> None:
        """Starts without running jobs."""
        self.name = name
        self.placer = placer
        self.moved = 0
        self._network = network
        self._hosts: dict[int, Places] = {}

    def put(self, job: Job, hosts: Sequence[str]) -> None:
        """Runs a job on hosts from now on."""
        self._hosts[job.number] = numpy.array([self._network.at[host] for host in hosts])

    def remove(self, job: Job) -> None:
        """Removes a job."""
        del self._hosts[job.number]

    def move(self, moves: Sequence[Move]) -> None:
        """Moves tasks to other hosts from now on."""
        for job, task, host in moves:
            self._hosts[job][task] = host
        self.moved += len(moves)

    def demands_bps(self, jobs: Mapping[int, Job]) -> Numbers:
        """Load on each link from the tasks of all jobs, as if capacities were unlimited."""
        running = [jobs[number] for number in self._hosts]
        if not running:
            return numpy.zeros(len(self._network.links))
        return self._network.demands_bps(
            numpy.concatenate(list(self._hosts.values())),
            numpy.concatenate([job.egress_bps * job.now for job in running]),
            numpy.concatenate([job.ingress_bps * job.now for job in running]),
        )
