"""Sweeps: policies by seeds by settings of a scenario, resumable, on threads, processes or Ray.

>>> from leeward import sweep
>>> cells = sweep.run(
...     "scenario.yaml",
...     ["uniform", "sinbad"],
...     seeds=range(1, 11),
...     settings={"telemetry.delay": ["0s", "2s"]},
...     out="results",
... )  # doctest: +SKIP
>>> sweep.summarize(cells).to_pandas()  # doctest: +SKIP
"""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from os import PathLike
from pathlib import Path

import pyarrow

from leeward import data as traces
from leeward._policies import Chosen, Policies, choose
from leeward.errors import MOST_SEED, InputError, whole_number
from leeward.simulation import ScenarioSource, check_chosen, name_policy, runs_at_once
from leeward.sweep import plan
from leeward.sweep.cell import check_arrivals
from leeward.sweep.execute import BACKENDS, check_backend, outcomes
from leeward.sweep.settings import axes
from leeward.sweep.statistics import CONFIDENCE, interval, summarize
from leeward.sweep.store import TABLE, Store, write_table
from leeward.sweep.table import table

__all__ = ["BACKENDS", "CONFIDENCE", "interval", "run", "summarize"]

log = logging.getLogger("leeward.sweep")


def run(
    scenario: ScenarioSource,
    policies: Policies | None = None,
    *,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Sequence[object] | str] | None = None,
    jobs: int | None = None,
    backend: str = "threading",
    out: str | PathLike[str] | None = None,
    tables: bool = False,
    data: str | PathLike[str] | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> pyarrow.Table:
    """Runs a scenario under every policy, seed and setting; all policies of a seed see the same arrivals.

    With `out`, every finished cell is stored there, and stored cells are not computed again. The logger
    `leeward.sweep` gets the number of stored and of damaged cells. The same cells give bit-identical
    results, whatever the order, the jobs and the backend.

    Args:
        scenario: Path of its file, a `Scenario`, or anything else that `leeward.read_scenario` takes.
        policies: Names with settings; the first is the baseline. Policies of your own (see `leeward.policy`)
            may be among them: a stored cell of one counts while the file with its code does not change. By
            default those of the scenario. A single one needs no list.
        seeds: Whole numbers from 0 to 2^64 - 1; by default the seed of the scenario.
        settings: For paths in the scenario, such as `telemetry.delay`, the values to try there, as YAML
            text or as values of JSON; a text is one value.
        jobs: Number of runs at once, at least 1; by default the number of processors.
        backend: `threading`, `loky` (processes) or `ray`.
        out: Folder for the cells and `cells.parquet`; by default nothing is stored.
        tables: True to keep the tables of every run too, in `out`, which is then required.
        data: Folder of `data:...` files; by default that of `leeward.data`.
        progress: Called with the number of a cell and the completed share of it, from several threads.

    Returns:
        A row for each cell, by setting, seed and policy; see `docs/guides/sweeps.md` for the columns.

    Raises:
        InputError: The scenario, a policy, a setting, a trace or the backend is invalid; or another sweep
            writes to `out`, or it holds something other than a sweep. In these cases, no cell has run and no
            file was written.
    """
    if tables and out is None:
        raise InputError.about("tables", "expected a folder for them: `out`")
    variants = plan.variants(scenario, data or traces.data_folder(), axes(settings or {}))
    scenario_read = variants[0].read()
    chosen = Chosen(scenario_read.policies, {}) if policies is None else choose(policies)
    if seeds is not None:
        seeds = [whole_number("seeds", seed, 0, MOST_SEED) for seed in seeds]
    cells = plan.cells(variants, chosen.labels, [scenario_read.seed] if seeds is None else seeds, chosen.own)
    jobs = runs_at_once(jobs)
    if policies is not None:
        check_chosen(chosen, scenario_read.kind)
    check_backend(backend)
    with nullcontext(out) if out is not None else tempfile.TemporaryDirectory(prefix="leeward-") as folder:
        store = Store(Path(folder))
        remaining = remaining_cells(store, cells, tables)
        with store.lock():
            result = finish(store, cells, remaining, jobs, backend, tables, progress)
            write_table(store.folder / TABLE, result)
    return result


def remaining_cells(store: Store, cells: list[plan.Cell], tables: bool) -> list[int]:
    """Numbers of the remaining cells, after a check that their arrivals can be read.

    Raises:
        InputError: A file of their arrivals is missing or invalid.
    """
    remaining = [at for at, cell in enumerate(cells) if not store.has(cell, tables)]
    first: dict[plan.Variant, int] = {}
    for at in remaining:
        first.setdefault(cells[at].variant, cells[at].seed)
    for variant, seed in first.items():
        check_arrivals(variant, seed)
    return remaining


def finish(
    store: Store,
    cells: list[plan.Cell],
    remaining: list[int],
    jobs: int,
    backend: str,
    tables: bool,
    progress: Callable[[int, float], object] | None,
) -> pyarrow.Table:
    """Runs the remaining cells into a locked store, and compares all cells; see `run`."""
    if stale := store.others(cells):
        log.warning(
            "%s: %d cells are of an earlier state of the scenario, its files or Leeward; not used",
            store.folder,
            stale,
        )
    if len(remaining) < len(cells):
        log.info(
            "%s: %d of %d cells are there already", store.folder, len(cells) - len(remaining), len(cells)
        )
    if progress:
        for number in sorted(set(range(len(cells))) - set(remaining)):
            progress(number, 1.0)

    def tell(number: int, share: float) -> None:
        if progress:
            progress(remaining[number], share)

    cells_to_run = [cells[number] for number in remaining]
    with name_policy("policies"), closing(outcomes(cells_to_run, jobs, backend, tables, tell)) as results:
        for number, outcome in results:
            store.write(cells_to_run[number], outcome)
    for cell in cells:
        if (cell.seed, cell.policy) == (cells[0].seed, cells[0].policy):
            for line in store.read(cell)[0]["arrivals"]:
                log.info("%s: %s", cell.where, line)
    return table(store, cells, cells[0].policy)
