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
from contextlib import closing
from os import PathLike
from pathlib import Path

import pyarrow

from leeward import data as traces
from leeward.errors import MOST_SEED, names, whole_number
from leeward.simulation import of_policy, runs_at_once
from leeward.sweep import plan
from leeward.sweep.execute import BACKENDS, outcomes
from leeward.sweep.settings import axes
from leeward.sweep.statistics import CONFIDENCE, interval, summarize
from leeward.sweep.store import Store, write_table
from leeward.sweep.table import table

__all__ = ["BACKENDS", "CONFIDENCE", "interval", "run", "summarize"]

log = logging.getLogger("leeward.sweep")


def run(
    scenario: str | PathLike[str],
    policies: Sequence[str] | str | None = None,
    *,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Sequence[object]] | None = None,
    jobs: int | None = None,
    backend: str = "threading",
    out: str | PathLike[str] | None = None,
    tables: bool = False,
    data: str | PathLike[str] | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> pyarrow.Table:
    """Runs a scenario under every policy, seed and setting; all policies of a seed see the same arrivals.

    With `out` every finished cell is kept there, and what is there already is not computed again. What was
    found and what is damaged is told to the logger `leeward.sweep`. The same cells give the same results to
    the last bit, whatever the order, the jobs and the backend.

    Args:
        scenario: The path of its file.
        policies: Names with settings; the first is the baseline. By default those of the scenario. A text is
            one name.
        seeds: Whole numbers from 0 to 2^64 - 1; by default the scenario's one.
        settings: For paths in the scenario, such as `telemetry.delay`, the values to try there, as YAML
            text or anything that JSON knows.
        jobs: Runs at once, at least 1; by default one a processor.
        backend: `threading`, `loky` (processes) or `ray`.
        out: Folder for the cells and `cells.parquet`; by default nothing is kept.
        tables: Whether to keep the tables of every run too, in `out`.
        data: The folder that `data:...` files are looked up in; by default that of `leeward.data`.
        progress: Called with the number of a cell and the share of it that is done, from several threads.

    Returns:
        A row for each cell, by setting, seed and policy; see `docs/guides/sweeps.md` for the columns.

    Raises:
        InputError: The scenario, a policy, a setting or the backend is not right; or another sweep writes
            to `out`, or it holds something else than a sweep.
    """
    made = plan.variants(scenario, data or traces.found(), axes(settings or {}))
    read = made[0].read()
    chosen = read.policies if policies is None else names(policies)
    if seeds is not None:
        seeds = [whole_number("seeds", seed, 0, MOST_SEED) for seed in seeds]
    cells = plan.cells(made, chosen, [read.seed] if seeds is None else seeds)
    jobs = runs_at_once(jobs)
    if out is not None:
        return _run(Store(Path(out)), cells, jobs, backend, tables, progress)
    with tempfile.TemporaryDirectory(prefix="leeward-") as folder:
        return _run(Store(Path(folder)), cells, jobs, backend, False, progress)


def _run(
    store: Store,
    cells: list[plan.Cell],
    jobs: int,
    backend: str,
    tables: bool,
    progress: Callable[[int, float], object] | None,
) -> pyarrow.Table:
    with store.locked(), of_policy("policies"):
        left = [at for at, cell in enumerate(cells) if not store.has(cell, tables)]
        if changed := store.others(cells):
            log.warning(
                "%s: %d cells are of an earlier state of the scenario, its files or Leeward; not used",
                store.folder,
                changed,
            )
        if len(left) < len(cells):
            log.info("%s: %d of %d cells are there already", store.folder, len(cells) - len(left), len(cells))
        if progress:
            for at in sorted(set(range(len(cells))) - set(left)):
                progress(at, 1.0)

        def tell(at: int, share: float) -> None:
            if progress:
                progress(left[at], share)

        with closing(outcomes([cells[at] for at in left], jobs, backend, tables, tell)) as finished:
            for at, outcome in finished:
                store.write(cells[left[at]], outcome)
        result = table(store, cells, cells[0].policy)
        write_table(store.folder / "cells.parquet", result)
        for cell in cells:
            if (cell.seed, cell.policy) == (cells[0].seed, cells[0].policy):
                for line in store.read(cell)[0]["arrivals"]:
                    log.info("%s: %s", cell.where, line)
    return result
