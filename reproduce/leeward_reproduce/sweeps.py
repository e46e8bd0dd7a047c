"""Sweeps behind figures, and values from their cells.

Several figures of a paper use the same runs, so each sweep has a name and runs once. Each sweep has a folder
in the format of `leeward.sweep`; cells that are in the folder are not run again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import compute, parquet

from leeward import data, sweep
from leeward._quantities import read_seconds
from leeward.simulation import runs_at_once
from leeward.sweep import plan
from leeward.sweep.settings import axes
from leeward.sweep.store import Store

_LEAST_SAMPLES = 12
"""Least number of sampling intervals in a run."""


@dataclass(frozen=True)
class Sweep:
    """A sweep of a scenario over policies, seeds and the values of one setting."""

    name: str
    scenario: Path
    policies: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    """Settings that differ from the scenario's file."""
    axis: str | None = None
    """Path of the varied setting."""
    values: tuple[str, ...] = ()
    """Values of that setting."""
    tables: bool = False
    """True if the runs' tables are needed."""
    max_seeds: int | None = None
    """Maximum number of seeds, for long runs."""
    seeds_factor: int = 1
    """Seeds for each one of the reproduction, for quantities that differ much between seeds."""
    traces: bool = False
    """True if the scenario needs public traces."""
    ignores_horizon: bool = False
    """True if the runs keep the scenario's length even if a horizon is given."""

    def settings(self, horizon: str | None) -> dict[str, Sequence[str]]:
        """Settings for `leeward.sweep`."""
        result: dict[str, Sequence[str]] = {path: [value] for path, value in self.fixed}
        if horizon and not self.ignores_horizon:
            result["horizon"] = [horizon]
            # A scenario of a day may have a sampling interval that is too long for the horizon.
            most = read_seconds("horizon", horizon) / _LEAST_SAMPLES
            if any(read_seconds("sample", sample) > most for sample in result.get("sample", ())):
                del result["sample"]
        if self.axis:
            result[self.axis] = self.values
        return result

    def seeds(self, count: int) -> range:
        """Seeds from 1 to `count` times the factor, or to `max_seeds` if that is less."""
        count *= self.seeds_factor
        return range(1, 1 + min(count, self.max_seeds or count))

    def cells(self, count: int) -> int:
        """Number of runs."""
        return len(self.policies) * len(self.seeds(count)) * max(len(self.values), 1)


@dataclass(eq=False)
class Cells:
    """The finished cells of a sweep."""

    sweep: Sweep
    rows: list[dict[str, Any]]
    """Rows of the table that `leeward.sweep.run` returns."""
    store: Store
    planned: list[plan.Cell] = field(repr=False)

    @property
    def seeds(self) -> list[int]:
        """Seeds, in order."""
        return sorted({row["seed"] for row in self.rows})

    def by_seed(self, quantity: str, policy: str, value: str | None = None) -> dict[int, float]:
        """A column of the summaries by seed; seeds without a value are left out.

        Args:
            quantity: A column, such as `full_block_write_s.mean`.
            policy: Policy, with its settings.
            value: Value of the varied setting.
        """
        results = {seed: self._row(policy, seed, value).get(quantity) for seed in self.seeds}
        return {seed: figure for seed, figure in results.items() if figure is not None}

    def figures(self, quantity: str, policy: str) -> list[float]:
        """A column of the summaries, in the order of seeds."""
        return list(self.by_seed(quantity, policy).values())

    def writes(self, policy: str, seed: int, since: str, value: str | None = None) -> pyarrow.Table:
        """Write times of a run as `leeward.sweep` compares them.

        Args:
            policy: Policy, with its settings.
            seed: A seed of the sweep.
            since: `asked` counts the wait for the decision; `placed` does not, and returns blocks only.
            value: Value of the varied setting.
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
        files = self.store.read(self._cell(policy, seed, value))[0]["files"]
        (path,) = (path for path in files if path.endswith(f"/{name}.parquet"))
        return parquet.read_table(self.store.cells / path)

    @cached_property
    def _by_key(self) -> dict[tuple[str, int, str | None], dict[str, Any]]:
        column = f"set.{self.sweep.axis}"
        return {(row["policy"], row["seed"], row.get(column)): row for row in self.rows}

    def _row(self, policy: str, seed: int, value: str | None) -> dict[str, Any]:
        return self._by_key[policy, seed, value]

    def _cell(self, policy: str, seed: int, value: str | None) -> plan.Cell:
        needed = {self.sweep.axis: value} if self.sweep.axis and value is not None else {}
        for cell in self.planned:
            setting = dict(cell.variant.setting)
            if (cell.policy, cell.seed) == (policy, seed) and all(setting[k] == v for k, v in needed.items()):
                return cell
        raise KeyError((policy, seed, value))


def perform(
    needed: Sweep,
    seeds: int,
    jobs: int | None,
    out: Path,
    horizon: str | None,
    progress: Callable[[int, float], object] | None,
) -> Cells:
    """Runs a sweep, or returns its finished cells.

    Args:
        needed: The sweep.
        seeds: Number of seeds; they are numbered from 1.
        jobs: Number of runs at once.
        out: Folder of all sweeps.
        horizon: Length of the runs; None for the scenario's.
        progress: Called with the number of a cell and its completed share, from several threads.
    """
    store = Store(out / needed.name)
    variants = plan.variants(needed.scenario, data.data_folder(), axes(needed.settings(horizon)))
    planned = plan.cells(variants, needed.policies, needed.seeds(seeds))
    pending = sweep.remaining_cells(store, planned, needed.tables)
    # Sweeps may share a folder, so no table of all cells is written.
    with store.lock():
        result = sweep.finish(
            store, planned, pending, runs_at_once(jobs), "threading", needed.tables, progress
        )
    return Cells(needed, result.to_pylist(), store, planned)
