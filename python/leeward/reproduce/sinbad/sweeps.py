"""The sweeps that the figures are made of, and what is read from their cells.

Several figures look at the same runs, so sweeps are named here once and run once. Each goes into a folder of
its own as `leeward.sweep` keeps it: what is there is not run again.

Policies are compared at equal numbers of remote racks, so each is tried with both. All sweeps take the same
seeds, so that runs of two sweeps may be paired where the same files arrive in both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import compute, parquet

from leeward import data, sweep
from leeward.errors import InputError
from leeward.simulation import duration, runs_at_once
from leeward.sweep import plan
from leeward.sweep.settings import axes
from leeward.sweep.store import Store

REMOTE_RACKS = (1, 2)
WARMUP_S = 60.0
"""Of both scenarios."""
SAMPLE_S = 10.0
"""Over which loads of links are recorded in both."""
LEAST_S = WARMUP_S + 6 * SAMPLE_S
"""The shortest runs that can show anything: by then even a policy that waits for 100 s has placed blocks."""
_WHY = f"and {(LEAST_S - WARMUP_S) / SAMPLE_S:.0f} intervals of {SAMPLE_S:.0f} s"
DISK_BPS = 50e6 * 8
"""A disk of the simulation (section 7.1)."""
RACK_LINK_BPS = 2e9
"""A rack's link of the simulation: 20 interfaces of 1 Gb/s, 10:1."""
OPT = "sinbad-file:interval=10s"
"""OPT' as the paper simulates it."""


def policy(name: str, remote_racks: int) -> str:
    """A policy of the racks' simulations, named with its settings."""
    name, colon, settings = name.partition(":")
    return f"{name}:remote_racks={remote_racks}{colon}{settings}"


def short(name: str) -> str:
    """A policy's name without settings; OPT' is simulated with one interval mostly."""
    return name.partition(":")[0]


def both(*names: str) -> tuple[str, ...]:
    """Policies with one and with two remote racks."""
    return tuple(policy(name, racks) for racks in REMOTE_RACKS for name in names)


@dataclass(frozen=True)
class Sweep:
    """Policies by seeds by the values of one setting, of a scenario."""

    name: str
    scenario: str
    policies: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    """Settings that differ from the scenario's file."""
    axis: str | None = None
    """The path of the setting that is varied."""
    values: tuple[str, ...] = ()
    """Its values."""
    tables: bool = False
    """Whether the runs' tables are needed."""
    most_seeds: int | None = None
    """For runs that take long: how many seeds at most."""
    traces: bool = False
    """Whether it needs public traces."""

    def settings(self, horizon: str | None) -> dict[str, Sequence[str]]:
        """What `leeward.sweep` is told to set."""
        made: dict[str, Sequence[str]] = {path: [value] for path, value in self.fixed}
        if horizon:
            made["horizon"] = [horizon]
            # Intervals of a day may be longer than what is left of it.
            made.pop("sample", None)
        if self.axis:
            made[self.axis] = self.values
        return made

    def seeds(self, count: int) -> range:
        """The seeds it is run with, of `count`."""
        return range(1, 1 + min(count, self.most_seeds or count))

    def cells(self, count: int) -> int:
        """How many runs it is."""
        return len(self.policies) * len(self.seeds(count)) * max(len(self.values), 1)


WAITS_LONG = "sinbad-file:interval=100s"
"""The same with the longest interval that the paper tried."""
CLUSTER = "cluster"
HALF = (("horizon", "30min"),)
"""Half an hour, for sweeps of many runs."""
PHASES = "workloads[0].facebook.phases"

HOUR = Sweep("hour", "hour.yaml", both("uniform", "sinbad", OPT, WAITS_LONG, "leeward"), tables=True)
"""The simulation of section 7."""
MEMORY = Sweep(
    "memory",
    "hour.yaml",
    both("uniform", OPT, "sinbad", "leeward"),
    fixed=((CLUSTER, "clusters/memory.yaml"),),
    tables=True,
)
"""The same without disks (section 7.6)."""
SOURCES = Sweep(
    "free-sources",
    "hour.yaml",
    both(OPT, "sinbad", "leeward"),
    fixed=(("workloads[0].facebook.flexible", "true"),),
    tables=True,
)
"""The same with writers that no link holds up (section 7.2)."""
JOBS = Sweep("jobs", "hour.yaml", both("uniform", OPT, "sinbad", "leeward"), fixed=((PHASES, "{}"),))
"""The same with shuffles that belong to the jobs, and yield to what is placed."""
TASKS = Sweep("jobs", "hour.yaml", (policy("uniform", 1),), fixed=JOBS.fixed, tables=True)
"""Those of its runs whose tasks are looked at (figure 4)."""
DAY = Sweep(
    "day",
    "hour.yaml",
    (policy("uniform", 1), policy(OPT, 1)),
    fixed=(("horizon", "24h"), ("sample", "10min")),
)
"""A day (figure 10)."""
DAY_FEW = Sweep(
    "day",
    "hour.yaml",
    (policy("uniform", 2), policy(OPT, 2), policy("leeward", 1)),
    fixed=DAY.fixed,
    most_seeds=3,
)
"""What of it is tried on fewer days, since they take long."""
DAY_TABLES = Sweep(
    "day",
    "hour.yaml",
    (policy("uniform", 1), policy(OPT, 1), policy("leeward", 1)),
    fixed=DAY.fixed,
    tables=True,
    most_seeds=1,
)
"""One day, whose distribution over racks is drawn; its runs are among those of the two before."""
LOAD = Sweep(
    "load",
    "hour.yaml",
    both("uniform", "sinbad", "leeward"),
    fixed=HALF,
    axis="workloads[0].facebook.load",
    values=("0.5", "1", "2"),
)
"""Half, once and twice the arrivals, on the racks of the simulation."""

MACHINE_POLICIES = ("uniform", "sinbad", "leeward")
MACHINES = Sweep("machines", "machines.yaml", MACHINE_POLICIES, fixed=((PHASES, "{}"),), tables=True)
"""The experiments on EC2, with jobs that shuffle before they write."""
MACHINES_APART = Sweep("machines-apart", "machines.yaml", MACHINE_POLICIES)
"""The same with shuffles apart from the jobs, as uneven as the generator is fitted to."""
MACHINES_MEMORY = Sweep(
    "machines-memory",
    "machines.yaml",
    MACHINE_POLICIES,
    fixed=((CLUSTER, "clusters/machines-memory.yaml"), (PHASES, "{}")),
    tables=True,
)
"""The same in memory (section 7.6)."""
MACHINES_LOAD = Sweep(
    "machines-load",
    "machines.yaml",
    MACHINE_POLICIES,
    fixed=(*HALF, (PHASES, "{}")),
    axis="workloads[0].facebook.load",
    values=("9.68", "19.36", "38.72"),
)
"""Half, once and twice the arrivals (figure 11)."""

DELAYS = Sweep(
    "delay",
    "hour.yaml",
    both("sinbad", "leeward"),
    fixed=HALF,
    axis="telemetry.delay",
    values=("2s", "10s"),
)
LOSSES = Sweep(
    "loss",
    "hour.yaml",
    both("sinbad", "leeward"),
    fixed=HALF,
    axis="telemetry.loss",
    values=("0.1", "0.5"),
)
LOSSES_SINBAD = Sweep(
    "loss-sinbad",
    "hour.yaml",
    both("sinbad"),
    fixed=(("ledger.missing", "sinbad"), *HALF),
    axis="telemetry.loss",
    values=("0.1", "0.5"),
)
NOISE = Sweep(
    "noise",
    "hour.yaml",
    both("sinbad", "leeward"),
    fixed=HALF,
    axis="telemetry.noise",
    values=("0.3", "1"),
)
LARGE = Sweep(
    "large",
    "hour.yaml",
    both("uniform", "sinbad", "leeward"),
    fixed=((CLUSTER, "clusters/large.yaml"), ("horizon", "3min")),
)
"""Ten times the racks."""
UNEVEN = Sweep(
    "uneven",
    "hour.yaml",
    both("uniform", "sinbad", "ccp", "leeward"),
    fixed=((CLUSTER, "clusters/uneven.yaml"),),
)
"""Uplinks that differ threefold."""
TRACES = Sweep(
    "traces",
    "../../demo/traces.yaml",
    both("uniform", "sinbad", OPT, "leeward"),
    fixed=(("horizon", "10min"), ("telemetry.counters", "[racks]"), ("ledger.initial", "zero")),
    traces=True,
)
"""Public traces of the same cluster instead of the generator."""


@dataclass(eq=False)
class Cells:
    """The finished cells of a sweep."""

    sweep: Sweep
    rows: list[dict[str, Any]]
    """As `leeward.sweep.run` returns them."""
    store: Store
    planned: list[plan.Cell] = field(repr=False)

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted({row["seed"] for row in self.rows})

    def by_seed(self, quantity: str, policy: str, value: str | None = None) -> dict[int, float]:
        """A figure of the summaries under each seed; seeds without one are left out.

        Args:
            quantity: A column, such as `full_block_write_s.mean`.
            policy: With its settings.
            value: Of the setting that is varied.
        """
        found = {seed: self._row(policy, seed, value).get(quantity) for seed in self.seeds}
        return {seed: figure for seed, figure in found.items() if figure is not None}

    def figures(self, quantity: str, policy: str) -> list[float]:
        """The same in the order of the seeds."""
        return list(self.by_seed(quantity, policy).values())

    def writes(self, policy: str, seed: int, since: str, value: str | None = None) -> pyarrow.Table:
        """The write times of a run as `leeward.sweep` compares them.

        Args:
            policy: With its settings.
            seed: One of the sweep's.
            since: `asked`, when waiting for others counts; `placed`, when it does not. Then only blocks are
                there.
            value: Of the setting that is varied.
        """
        cell = self._cell(policy, seed, value)
        writes = self.store.read(cell)[1]
        if since == "asked":
            return writes
        blocks = self.table("blocks", policy, seed, value)
        of_blocks = writes.filter(compute.equal(writes["kind"].cast("string"), "block"))
        times = compute.subtract(blocks["finished_s"], blocks["placed_s"])
        return of_blocks.set_column(of_blocks.column_names.index("time_s"), "time_s", times)

    def table(self, name: str, policy: str, seed: int, value: str | None = None) -> pyarrow.Table:
        """A table of a run."""
        kept = self.store.read(self._cell(policy, seed, value))[0]["files"]
        (path,) = (path for path in kept if path.endswith(f"/{name}.parquet"))
        return parquet.read_table(self.store.cells / path)

    @cached_property
    def _by_place(self) -> dict[tuple[str, int, str | None], dict[str, Any]]:
        column = f"set.{self.sweep.axis}"
        return {(row["policy"], row["seed"], row.get(column)): row for row in self.rows}

    def _row(self, policy: str, seed: int, value: str | None) -> dict[str, Any]:
        return self._by_place[policy, seed, value]

    def _cell(self, policy: str, seed: int, value: str | None) -> plan.Cell:
        wanted = {self.sweep.axis: value} if self.sweep.axis and value is not None else {}
        for cell in self.planned:
            here = dict(cell.variant.setting)
            if (cell.policy, cell.seed) == (policy, seed) and all(here[k] == v for k, v in wanted.items()):
                return cell
        raise KeyError((policy, seed, value))


def perform(
    wanted: Sweep,
    seeds: int,
    jobs: int | None,
    out: Path,
    horizon: str | None,
    progress: Callable[[int, float], object] | None,
) -> Cells:
    """Runs a sweep, or finds it done.

    Args:
        wanted: The sweep.
        seeds: How many, from 1 on.
        jobs: Runs at once.
        out: The folder of all sweeps.
        horizon: How long the runs are, if not as long as they should be.
        progress: Called with the number of a cell and the share of it that is done, from several threads.
    """
    path = Path(str(files(__package__))) / wanted.scenario
    store = Store(out / wanted.name)
    variants = plan.variants(path, data.found(), axes(wanted.settings(horizon)))
    planned = plan.cells(variants, wanted.policies, wanted.seeds(seeds))
    left = sweep.unfinished(store, planned, wanted.tables)
    # Sweeps may share a folder, so that a table of all that is there belongs to none of them.
    with store.locked():
        made = sweep.finish(store, planned, left, runs_at_once(jobs), "threading", wanted.tables, progress)
    return Cells(wanted, made.to_pylist(), store, planned)


def check_horizon(horizon: str) -> None:
    """Checks that runs can be that long.

    Raises:
        InputError: It is no time, or shorter than `LEAST_S`.
    """
    path = Path(str(files(__package__))) / "hour.yaml"
    try:
        (variant,) = plan.variants(path, None, axes({"horizon": [horizon], "warmup": ["0s"]}))
        long = variant.read().horizon_s >= LEAST_S
    except InputError as error:
        raise InputError("horizon", None, None, None, error.message) from None
    if not long:
        why = f"expected at least {duration(LEAST_S)}: a warm-up of {duration(WARMUP_S)}, {_WHY}"
        raise InputError("horizon", None, None, None, f"`{horizon}`: {why}")
