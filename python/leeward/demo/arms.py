"""Ways of placing the same jobs: who decides, and where everything runs under each."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy

from leeward._native import Cluster, Scheduler
from leeward.client import Client, RefusedError
from leeward.client.shapes import TaskReport
from leeward.demo.cell import Network, Numbers, Places
from leeward.demo.jobs import Job

Move = tuple[int, int, int]
"""A job and a task of it, by number; and the host that it goes to."""


class Placer(Protocol):
    """Who decides where jobs run."""

    @property
    def policy(self) -> str:
        """By which policy."""

    def place(self, job: Job) -> list[str] | None:
        """Names of hosts, one for each task; None if it is refused."""

    def end(self, job: Job) -> None:
        """A job that was placed has ended."""

    def seen(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """Takes in what links carried since it was last told; says which tasks move.

        Args:
            carried_bps: Of each link.
            jobs: Those that run.
        """


class Blind:
    """A policy that sees no load, as schedulers are today, run by the engine here."""

    def __init__(self, cluster: Cluster, policy: str, seed: int) -> None:
        """Nothing runs."""
        self.policy = policy
        self._scheduler = Scheduler(cluster, policy, seed)

    def place(self, job: Job) -> list[str] | None:
        """See `Placer`."""
        return self._scheduler.place(job.number, job.number, job.text)

    def end(self, job: Job) -> None:
        """See `Placer`."""
        self._scheduler.end(job.number)

    def seen(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """Nothing moves."""
        del carried_bps, jobs
        return []


class Asked:
    """A controller, which is told what links carry and asked over HTTP; moves that it advises are made."""

    def __init__(
        self,
        client: Client,
        network: Network,
        policy: str,
        interval_s: float,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing is asked yet; its first window begins now.

        Args:
            client: Of the controller.
            network: Its links.
            policy: What it places by.
            interval_s: How often it expects reports.
            clock: What time it is.
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
        # A step may take longer than an interval; links carry what they did until it is over.
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

    def seen(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """See `Placer`."""
        self._carried_bps = carried_bps
        self._report(self._rates(jobs))
        moves = []
        for advised in list(self._client.migrations("advised")):
            job = self._jobs.get(advised["decision"])
            if job is None:
                self._client.answer_migration(advised["id"], "refused", "its job has ended")
                continue
            self._client.answer_migration(advised["id"], "done")
            task = int(advised["task"].removeprefix("task"))
            moves.append((job, task, self._network.at[advised["to"]]))
        return moves

    def _report(self, tasks: list[TaskReport]) -> None:
        since, self._until = self._until, self._clock()
        if self._until > since:
            links = dict(zip(self._network.links, self._carried_bps.tolist(), strict=True))
            self._client.report(since, self._until, links=links, tasks=tasks)

    def _rates(self, jobs: Sequence[Job]) -> list[TaskReport]:
        """What tasks carry that may be moved."""
        return [
            {
                "decision": self._decisions[job.number],
                "task": at,
                "egress_bps": int(egress),
                "ingress_bps": int(ingress),
            }
            for job in jobs
            if job.tolerant
            for at, (egress, ingress) in enumerate(
                zip(job.egress_bps * job.now, job.ingress_bps * job.now, strict=True)
            )
        ]


class Arm:
    """Where everything runs under one way of placing, and what links carry for it.

    Attributes:
        name: What it is called.
        placer: Who decides.
        moved: How many moves were made.
    """

    def __init__(self, name: str, placer: Placer, network: Network) -> None:
        """Nothing runs."""
        self.name = name
        self.placer = placer
        self.moved = 0
        self._network = network
        self._hosts: dict[int, Places] = {}

    def put(self, job: Job, hosts: Sequence[str]) -> None:
        """A job runs on hosts from now on."""
        self._hosts[job.number] = numpy.array([self._network.at[host] for host in hosts])

    def remove(self, job: Job) -> None:
        """It does not run any more."""
        del self._hosts[job.number]

    def move(self, moves: Sequence[Move]) -> None:
        """Tasks run elsewhere from now on."""
        for job, task, host in moves:
            self._hosts[job][task] = host
        self.moved += len(moves)

    def demands_bps(self, jobs: Mapping[int, Job]) -> Numbers:
        """What the tasks of all jobs would put on each link if it carried everything."""
        running = [jobs[number] for number in self._hosts]
        if not running:
            return numpy.zeros(len(self._network.links))
        return self._network.demands_bps(
            numpy.concatenate(list(self._hosts.values())),
            numpy.concatenate([job.egress_bps * job.now for job in running]),
            numpy.concatenate([job.ingress_bps * job.now for job in running]),
        )
