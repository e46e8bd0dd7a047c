"""The sweeps that figures are made of, and what is read from their cells.

Several figures of a paper look at the same runs, so its sweeps are named once and run once. Each goes into a
folder of its own as `leeward.sweep` keeps it: what is there is not run again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import compute, parquet

from leeward import data, sweep
from leeward.simulation import runs_at_once
from leeward.sweep import plan
from leeward.sweep.settings import axes
from leeward.sweep.store import Store


@dataclass(frozen=True)
class Sweep:
    """Policies by seeds by the values of one setting, of a scenario."""

    name: str
    scenario: Path
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
    whole: bool = False
    """Whether its runs are as long as the scenario says, whatever is asked for."""

    def settings(self, horizon: str | None) -> dict[str, Sequence[str]]:
        """What `leeward.sweep` is told to set."""
        made: dict[str, Sequence[str]] = {path: [value] for path, value in self.fixed}
        if horizon and not self.whole:
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
    store = Store(out / wanted.name)
    variants = plan.variants(wanted.scenario, data.found(), axes(wanted.settings(horizon)))
    planned = plan.cells(variants, wanted.policies, wanted.seeds(seeds))
    left = sweep.unfinished(store, planned, wanted.tables)
    # Sweeps may share a folder, so that a table of all that is there belongs to none of them.
    with store.locked():
        made = sweep.finish(store, planned, left, runs_at_once(jobs), "threading", wanted.tables, progress)
    return Cells(wanted, made.to_pylist(), store, planned)
