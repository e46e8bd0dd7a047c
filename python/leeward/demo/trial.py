"""A trial: the same days of a simulated cluster behind the service, in the modes shadow, canary and on.

The service is the real one, over HTTP, on a simulated clock. The clock moves ten seconds at a time, because
the history of the service has steps of ten seconds and counts those with a snapshot. The simulation knows the
loads that the links really had, so each estimate of `GET /v1/summary` has a true value beside it.
"""

import json
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy

from leeward._native import Cluster, SimulatedClock
from leeward.client import Client, UnreachableError
from leeward.client.summary_types import Summary
from leeward.demo.arms import BlindPlacer, ControllerPlacer, Move, Placer
from leeward.demo.cell import Cell, Network, Numbers
from leeward.demo.driver import Driver
from leeward.demo.jobs import Job
from leeward.demo.live import BASELINE

CELL = replace(Cell(), uplinks=((4, 0.7), (4, 1.0), (4, 1.4)), hosts_per_rack=10, pods=2, most_tasks=20)
"""Cluster of the trial: an eighth of the demo's, with smaller jobs, so that a week takes minutes."""
START = datetime(2026, 3, 2, tzinfo=UTC)
"""Simulated time at the start of the service."""
STEP_S = 60
"""Time between reports, in which jobs and loads do not change."""
PIECE_S = 10
"""Length of a step of the service's history."""
WARM_UP_S = 3_600
"""Time in which the cell fills. It does not count."""
POLICY = "leeward"
"""Policy of the service for tasks and their moves."""
OFF_TASK = {"name": "task", "count": 1, "cpus": 1}
"""Task that is placed after the service was turned off."""
OFF_LIMIT_S = 10.0
"""Longest wait for a decision by default."""
SNAPSHOTS = 1_000
"""Most snapshots until one has the time of the clock."""
_HEAD = re.compile(rb"(?si)(.*\r\ncontent-length: *(\d+)\r\n.*?)\r\n\r\n")
"""Head of a response with its length."""


@dataclass(frozen=True)
class Plan:
    """Settings of a trial.

    Attributes:
        hours: Counted hours of each phase.
        canary: Mode of the phase `canary`, such as `canary:25%`.
        seed: Seed of the jobs, their rates, and ties.
        cell: The simulated cluster.
    """

    hours: int = 7 * 24
    canary: str = "canary:25%"
    seed: int = 1
    cell: Cell = CELL

    @property
    def modes(self) -> dict[str, str]:
        """Mode of each phase, by name."""
        return {"shadow": "shadow", "canary": self.canary, "on": "on"}

    @property
    def steps(self) -> int:
        """Number of steps of a phase, with those in which the cell fills."""
        return (WARM_UP_S + self.hours * 3_600) // STEP_S

    def settings(self, cluster: str) -> dict[str, Any]:
        """Settings file of the service.

        Args:
            cluster: Path of the cluster file.
        """
        return {
            "cluster": cluster,
            "listen": "127.0.0.1:0",
            "policies": {"tasks": POLICY, "moves": POLICY, "defaults": {"tasks": BASELINE}},
            "modes": dict.fromkeys(("replicas", "tasks", "moves", "workload", "volumes"), "shadow"),
            "interval": f"{STEP_S}s",
            "seed": self.seed,
            "store": "memory",
            # A report is the mean of a minute, as smooth as the estimate from reports of ten seconds.
            "ledger": {"alpha": 1.0},
            # Jobs state their peaks as a history would show them.
            "history": None,
            "moves": {"load": "estimate"},
            "log": {"level": "error"},
        }


@dataclass(frozen=True)
class Phase:
    """Result of a phase.

    Attributes:
        name: Name of the phase: `shadow`, `canary` or `on`.
        mode: Mode of the service.
        since: Start of the counted time.
        until: End of the counted time.
        simulated_h: For each hour, hot link-hours that the simulation had with the service's choices.
        baseline_h: The same for the jobs placed by the baseline alone.
        summary: The service's summary of the counted time.
        jobs: Number of jobs that ran, with those of the start.
        refused: Number of jobs that ran under no placer, because one refused them.
        moved: Number of moves of tasks.
        wall_s: Time that the phase took.
    """

    name: str
    mode: str
    since: datetime
    until: datetime
    simulated_h: list[float]
    baseline_h: list[float]
    summary: Summary
    jobs: int
    refused: int
    moved: int
    wall_s: float

    def record(self) -> dict[str, Any]:
        """The result for `-o json`."""
        hot = self.summary["hot_link_hours"]
        return {
            "phase": self.name,
            "mode": self.mode,
            "since": _text(self.since),
            "until": _text(self.until),
            "hot_link_hours": {
                "simulated": sum(self.simulated_h),
                "seen": hot["seen"],
                "with_leeward": hot["with_leeward"],
                "without_leeward": hot["without_leeward"],
                "baseline": sum(self.baseline_h),
            },
            "hours": {"simulated": self.simulated_h, "baseline": self.baseline_h},
            "jobs": self.jobs,
            "refused": self.refused,
            "moved": self.moved,
            "wall_s": self.wall_s,
            "summary": self.summary,
        }


@dataclass(frozen=True)
class Estimate:
    """An estimate of a summary beside its true value.

    Attributes:
        phase: Phase of the estimate.
        estimate: `with_leeward` or `without_leeward`.
        estimated_h: Hot link-hours by the estimate.
        simulated_phase: Phase that had this value in the simulation.
        simulated_h: Its hot link-hours.
    """

    phase: str
    estimate: str
    estimated_h: float
    simulated_phase: str
    simulated_h: float

    @property
    def error(self) -> float | None:
        """Error as a share of the true value; None if that is 0."""
        return self.estimated_h / self.simulated_h - 1 if self.simulated_h > 0 else None

    def record(self) -> dict[str, Any]:
        """The estimate for `-o json`."""
        return {
            "phase": self.phase,
            "estimate": self.estimate,
            "estimated": self.estimated_h,
            "simulated_phase": self.simulated_phase,
            "simulated": self.simulated_h,
            "error": self.error,
        }


@dataclass(frozen=True)
class Off:
    """End of the trial: every mode is off.

    Attributes:
        accepted_s: Time until the service confirmed the change.
        decided_s: Time from the request to change until a decision by the default policy.
        policy: Policy of that decision.
        attempts: Number of decisions until then.
    """

    accepted_s: float
    decided_s: float
    policy: str
    attempts: int


@dataclass(frozen=True)
class Trial:
    """Result of a trial."""

    plan: Plan
    phases: list[Phase]
    off: Off

    @property
    def estimates(self) -> list[Estimate]:
        """Estimates of all phases that another phase can check.

        The jobs and their rates are the same in all phases. So the phase `on` shows the time with Leeward for
        all decisions, and the phase `shadow` the time without.
        """
        simulated = {phase.name: sum(phase.simulated_h) for phase in self.phases}
        pairs = (
            ("shadow", "with_leeward", "on"),
            ("canary", "with_leeward", "on"),
            ("canary", "without_leeward", "shadow"),
            ("on", "without_leeward", "shadow"),
        )
        estimated: dict[str, Any] = {phase.name: phase.summary["hot_link_hours"] for phase in self.phases}
        return [
            Estimate(phase, estimate, estimated[phase][estimate], other, simulated[other])
            for phase, estimate, other in pairs
        ]

    def record(self) -> dict[str, Any]:
        """The result for `-o json`."""
        return {
            "racks": self.plan.cell.racks,
            "hosts": self.plan.cell.racks * self.plan.cell.hosts_per_rack,
            "hours": self.plan.hours,
            "seed": self.plan.seed,
            "phases": [phase.record() for phase in self.phases],
            "estimates": [estimate.record() for estimate in self.estimates],
            "off": {
                "accepted_s": self.off.accepted_s,
                "decided_s": self.off.decided_s,
                "policy": self.off.policy,
                "attempts": self.off.attempts,
            },
        }


class ServiceTime:
    """Simulated time of a service. Each step of its history gets a snapshot.

    Attributes:
        now: Current time.
    """

    def __init__(self, url: str, clock: SimulatedClock) -> None:
        """Starts at the time of the clock, which is a full minute.

        Args:
            url: Address of the service that runs on the clock.
            clock: The clock, which nobody else advances.
        """
        self.now = datetime.fromisoformat(clock.now())
        self._clock = clock
        self._url = url
        # These are most of the requests of a trial. A client of HTTP would take ten times as long for each.
        host, _, port = url.removeprefix("http://").partition(":")
        self._request = f"GET /v1/status HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n".encode()
        self._socket = socket.create_connection((host, int(port)), timeout=60)

    def __enter__(self) -> "ServiceTime":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def pass_some(self) -> None:
        """Advances by a step of the history, unless only the last one before the next report is left.

        Between two snapshots, the service waits for ten times as long as a snapshot takes. The simulation
        computes meanwhile.
        """
        if self.now.second < STEP_S - PIECE_S:
            self._advance()
            self.see()

    def pass_rest(self) -> None:
        """Advances to the time of the next report. The service has not yet seen this time."""
        while self.now.second < STEP_S - PIECE_S:
            self.pass_some()
        self._advance()

    def see(self) -> None:
        """Makes the service take a snapshot of this time.

        Raises:
            UnreachableError: The service does not answer, or its time does not advance.
        """
        # A snapshot that was due before the request may have the time of the request before.
        for _ in range(SNAPSHOTS):
            if self._snapshot_time() >= self.now:
                return
        raise UnreachableError(self._url, "the time of the service does not advance", True)

    def _advance(self) -> None:
        self._clock.advance(PIECE_S)
        self.now += timedelta(seconds=PIECE_S)

    def _snapshot_time(self) -> datetime:
        try:
            self._socket.sendall(self._request)
            response = b""
            while (head := _HEAD.match(response)) is None or len(response) < head.end() + int(head[2]):
                response += self._receive()
            return datetime.fromisoformat(json.loads(response[head.end() :])["time"])
        except (OSError, ValueError, KeyError) as error:
            raise UnreachableError(self._url, str(error), True) from error

    def _receive(self) -> bytes:
        part = self._socket.recv(65_536)
        if not part:
            raise ConnectionResetError("the connection was closed")
        return part


class TimedPlacer:
    """A controller whose time passes before each report."""

    def __init__(self, client: Client, network: Network, service_time: ServiceTime) -> None:
        """Starts without requests."""
        self._time = service_time
        self._placer = ControllerPlacer(client, network, POLICY, STEP_S, lambda: service_time.now)
        self.policy = POLICY
        self.jobs = 0

    def place(self, job: Job) -> list[str] | None:
        """See `Placer`."""
        hosts = self._placer.place(job)
        self.jobs += hosts is not None
        return hosts

    def end(self, job: Job) -> None:
        """See `Placer`."""
        self._placer.end(job)

    def report(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        """Lets the time of a report pass, then reports. See `Placer`."""
        self._time.pass_rest()
        moves = self._placer.report(carried_bps, jobs)
        self._time.see()
        return moves


def run_phase(
    client: Client, service_time: ServiceTime, plan: Plan, name: str, advance: Callable[[int], None]
) -> Phase:
    """Runs a phase, from an empty cluster to an empty cluster.

    Args:
        client: Client of the service, with the role admin.
        service_time: Its time, at a full hour.
        plan: Settings of the trial.
        name: Name of the phase.
        advance: Called with a number of completed steps.
    """
    began = time.monotonic()
    cluster = Cluster(plan.cell.cluster)
    network = Network.of(cluster)
    client.set_modes(plan.modes[name], reason=f"phase {name} of the trial")
    hot_above = client.status()["hot_above"]
    since = service_time.now + timedelta(seconds=WARM_UP_S)
    placer = TimedPlacer(client, network, service_time)
    placers: dict[str, Placer] = {"default": BlindPlacer(cluster, BASELINE, plan.seed), "leeward": placer}
    driver = Driver(plan.cell, network, placers, plan.seed, STEP_S)
    # The first report says that the empty cell carries no load.
    placer.report(driver.utilization("leeward"), [])
    advance(1)
    hot_links: dict[str, list[int]] = {name: [] for name in placers}
    for _ in range(plan.steps - 1):
        driver.step(service_time.pass_some)
        if service_time.now > since:
            for arm, counts in hot_links.items():
                counts.append(int((driver.utilization(arm) > hot_above).sum()))
        advance(1)
    until = service_time.now
    # Each release is acknowledged after the last hour is stored.
    driver.stop()
    return Phase(
        name=name,
        mode=plan.modes[name],
        since=since,
        until=until,
        simulated_h=_hours(hot_links["leeward"]),
        baseline_h=_hours(hot_links["default"]),
        summary=client.summary(since=since, until=until),
        jobs=placer.jobs,
        refused=driver.refused,
        moved=sum(arm.moved for arm in driver.arms),
        wall_s=time.monotonic() - began,
    )


def turn_off(client: Client, clock: Callable[[], float] = time.perf_counter) -> Off:
    """Turns every mode off, and places tasks until the default policy decides.

    Args:
        client: Client of the service, with the role admin.
        clock: Wall clock in seconds, with any origin.

    Raises:
        TimeoutError: The service does not decide by default.
    """
    began = clock()
    client.set_modes("off", reason="end of the trial")
    accepted_s, attempts = clock() - began, 0
    while True:
        attempts += 1
        decision = client.place_tasks({"name": "after-off", "tasks": [OFF_TASK]})
        decided_s = clock() - began
        client.release(decision["id"])
        if decision["by_default"] and decision["policy"] == BASELINE:
            return Off(accepted_s, decided_s, decision["policy"], attempts)
        if decided_s > OFF_LIMIT_S:
            raise TimeoutError(f"no decision by the default policy within {OFF_LIMIT_S:g} s after `off`")


def _hours(hot_links: Sequence[int]) -> list[float]:
    """Hot link-hours of each hour, from the number of hot links in each step."""
    steps = numpy.array(hot_links, dtype=numpy.float64).reshape(-1, 3_600 // STEP_S)
    return [float(hours) for hours in steps.sum(axis=1) * STEP_S / 3_600]


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
