"""The cell of `leeward serve --demo`: the same jobs under two ways of placing."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward import Client, Cluster
from leeward.demo.arms import BlindPlacer, Move, Placer
from leeward.demo.cell import Cell, Network, Numbers
from leeward.demo.driver import FILL_STEPS, Driver
from leeward.demo.jobs import Arrivals, Job

Run = Callable[..., subprocess.CompletedProcess[str]]

UPLINKS = ((2, 0.7), (2, 1.0), (2, 1.4))
SMALL = replace(
    Cell(), uplinks=UPLINKS, hosts_per_rack=4, pods=2, batch_s=600.0, service_s=3_600.0, most_tasks=8
)
CLUSTER = Cluster(SMALL.cluster)
NETWORK = Network.of(CLUSTER)


class RoundRobinPlacer:
    """Places tasks on hosts in turn, and moves the first task of a job with every report."""

    policy = "in turn"

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self.requests = 0

    def place(self, job: Job) -> list[str] | None:
        self.requests += 1
        if self.requests % self.every == self.every - 1 and self.every > 1:
            return None
        return [NETWORK.hosts[(job.number + at) % len(NETWORK.hosts)] for at in range(len(job.now))]

    def end(self, job: Job) -> None:
        pass

    def report(self, carried_bps: Numbers, jobs: Sequence[Job]) -> list[Move]:
        assert (carried_bps <= NETWORK.capacity_bps).all()
        return [(jobs[0].number, 0, len(jobs) % len(NETWORK.hosts))] if jobs else []


def driver(seed: int, placers: dict[str, Placer] | None = None) -> Driver:
    placers = placers or {"default": BlindPlacer(CLUSTER, "borg", seed), "other": RoundRobinPlacer()}
    return Driver(SMALL, NETWORK, placers, seed, 30.0)


# ---- loads of links ---------------------------------------------------------------------------------

TASKS = st.tuples(st.integers(0, len(NETWORK.hosts) - 1), st.integers(0, 10**10), st.integers(0, 10**10))


@given(st.lists(TASKS, max_size=60))
def test_link_loads_add_up_to_the_traffic_of_the_tasks(tasks: list[tuple[int, int, int]]) -> None:
    hosts = numpy.array([task[0] for task in tasks], dtype=numpy.int64)
    egress = numpy.array([task[1] for task in tasks], dtype=numpy.float64)
    ingress = numpy.array([task[2] for task in tasks], dtype=numpy.float64)
    loads = dict(zip(NETWORK.links, NETWORK.demands_bps(hosts, egress, ingress), strict=True))
    for way, rates, ends in (("uplink", egress, "egress"), ("downlink", ingress, "ingress")):
        total = pytest.approx(rates.sum())
        assert sum(loads[f"{host}:{ends}"] for host in NETWORK.hosts) == total
        assert sum(loads[f"{rack}:{way}"] for rack in NETWORK.racks) == total
        # A receiver is in one of the five other racks, of which three are in the other pod.
        assert sum(loads[f"p{pod}:{way}"] for pod in range(2)) == pytest.approx(0.6 * rates.sum())
        for at, host in enumerate(NETWORK.hosts):
            assert loads[f"{host}:{ends}"] == pytest.approx(rates[hosts == at].sum())


def test_links_have_the_names_and_capacities_of_the_cluster() -> None:
    capacities = {row["name"]: row["capacity_bps"] for row in CLUSTER.links().to_pylist()}
    assert dict(zip(NETWORK.links, NETWORK.capacity_bps, strict=True)) == capacities


# ---- jobs -------------------------------------------------------------------------------------------


def test_jobs_depend_on_the_seed_and_not_on_the_polling_times() -> None:
    def drawn_jobs(times: Sequence[float], seed: int) -> list[dict[str, Any]]:
        arrivals = Arrivals(SMALL, seed, 600.0)
        return [job.app() | {"at": job.arrives_s} for now in times for job in arrivals.until(now)]

    once = drawn_jobs([7_200.0], 3)
    assert once == drawn_jobs(numpy.arange(0, 7_201, 7.5).tolist(), 3)
    assert once != drawn_jobs([7_200.0], 4)
    arrive = [job["at"] for job in once]
    assert arrive == sorted(arrive)


def test_running_processors_and_traffic_match_the_settings_of_the_cell() -> None:
    cell = replace(Cell(), most_tasks=10)
    running = list(Arrivals(cell, 1, 600.0).until(600.0))
    processors = sum(job.cpus * len(job.now) for job in running if job.ends_s > 600.0)
    assert processors == pytest.approx(0.7 * cell.racks * cell.hosts_per_rack * cell.cpus, rel=0.1)
    assert all(job.ends_s >= 600.0 for job in running), (
        "the jobs of the start still run when the cell is full"
    )
    # A task sends at most a quarter of its interface's rate, so the mean is slightly lower than the setting.
    sent = sum(job.egress_bps.sum() for job in running) / processors / cell.per_processor_bps
    assert 0.7 < sent < 1.2
    job = max(running, key=lambda one: len(one.now))
    rates = []
    for _ in range(4_000):
        job.advance(cell.calm_s)
        rates.append(job.now.copy())
    assert numpy.mean(rates) == pytest.approx(1.0, rel=0.1)
    assert numpy.std(numpy.log(rates)) == pytest.approx(cell.restless, rel=0.1)


# ---- steps ------------------------------------------------------------------------------------------


@settings(max_examples=5)
@given(st.integers(0, 2**32))
def test_both_placements_carry_the_same_load_and_repeat_with_the_seed(seed: int) -> None:
    one, same = driver(seed), driver(seed)
    for _ in range(FILL_STEPS + 10):
        one.step()
        same.step()
        carried = [arm.demands_bps(one.jobs) for arm in one.arms]
        for values in zip(*(NETWORK.of_racks(demands) for demands in carried), strict=True):
            assert values[0].sum() == pytest.approx(values[1].sum())
    assert one.comparison(30.0) == same.comparison(30.0)
    assert one.comparison(30.0) != driver(seed + 1).comparison(30.0)
    shares = one.comparison(30.0)["history"]["arms"][0]["hot_share"]
    assert shares[: FILL_STEPS - 1] == [None] * (FILL_STEPS - 1), "steps that fill the cell do not count"
    assert None not in shares[FILL_STEPS - 1 :]


def test_a_job_refused_by_one_placer_runs_under_none() -> None:
    picky = RoundRobinPlacer(every=3)
    blind = BlindPlacer(CLUSTER, "borg", 1)
    one = driver(1, {"default": blind, "picky": picky})
    for _ in range(FILL_STEPS):
        one.step()
    assert one.refused >= picky.requests // 3 > 0
    for demands in zip(*(NETWORK.of_racks(arm.demands_bps(one.jobs)) for arm in one.arms), strict=True):
        assert demands[0].sum() == pytest.approx(demands[1].sum())


def test_the_baseline_never_overcommits_the_processors_of_a_host() -> None:
    blind = BlindPlacer(CLUSTER, "borg", 1)
    jobs = list(Arrivals(SMALL, 1, 600.0).until(600.0))
    placed = [(job, hosts) for job in jobs if (hosts := blind.place(job)) is not None]
    taken: dict[str, int] = {}
    for job, hosts in placed:
        for host in hosts:
            taken[host] = taken.get(host, 0) + job.cpus
    assert max(taken.values()) <= SMALL.cpus
    for job, _ in placed:
        blind.end(job)
    assert [blind.place(job) is not None for job, _ in placed] == [True] * len(placed)


# ---- the service ------------------------------------------------------------------------------------


def test_the_demo_compares_both_placements_and_stops_on_sigint() -> None:
    command = [str(Path(sys.executable).with_name("leeward")), "serve", "--demo", "--listen", "127.0.0.1:0"]
    command += ["--speed", "600", "--interval", "100ms"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]
            client, end = Client(url), time.monotonic() + 180
            while len(_hot_shares(client)) < 20:
                assert process.poll() is None
                assert time.monotonic() < end, "the demo makes no progress"
                time.sleep(0.2)
            status, demo = client.status(), client.demo()
            assert status["demo"] == {"speed": 600.0, "arms": ["default", "leeward"]}
            assert status["decided"] > 100
            default, leeward = demo["history"]["arms"]
            means = [_mean(arm["hot_share"]) for arm in (default, leeward)]
            assert means[1] < means[0], means
            assert demo["arms"][0]["policy"] == "borg"
            # A link is unknown after three intervals without a report. A busy machine may be as late as that.
            while any(rack["up"]["utilization"] is None for rack in client.racks() if rack["up"]):
                assert time.monotonic() < end, "the service does not use the reports"
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
            output = process.stderr.read()
        finally:
            process.kill()
    assert "600 times real time" in output
    assert "Traceback" not in output


def _hot_shares(client: Client) -> list[float]:
    try:
        return [hot for hot in client.demo()["history"]["arms"][0]["hot_share"] if hot is not None]
    except Exception as error:
        if getattr(error, "word", None) != "not-found":
            raise
        return []


def _mean(shares: list[float | None]) -> float:
    seen = [share for share in shares if share is not None]
    return sum(seen) / len(seen)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--demo", "--cluster", "c.yaml"], "error: --cluster: not valid with --demo, which sets its own\n"),
        (["--demo", "--store", "a.db"], "error: --store: not valid with --demo, which sets its own\n"),
        (["--demo", "--speed", "0"], "error: --speed: 0: expected a number above 0, to 100,000\n"),
        (["--demo", "--speed", "nan"], "error: --speed: nan: expected a number above 0, to 100,000\n"),
        (["--demo", "--interval", "1"], "error: --interval: `1`: the unit is missing"),
        (["--demo", "--moves", "borg"], "error: --moves: unknown policy `borg` for moves"),
        (
            ["--demo", "--check-config"],
            "error: --check-config: not valid with --demo, which has no settings to check\n",
        ),
        (["--cluster", "c.yaml", "--speed", "3"], "error: --speed: only valid with --demo\n"),
    ],
)
def test_options_that_conflict_with_the_demo_are_rejected(run: Run, arguments: list[str], error: str) -> None:
    result = run("serve", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error)
