"""The cells of a sweep as one table, each compared with the baseline of its setting and seed."""

from collections.abc import Sequence
from typing import Any

import pyarrow

from leeward._figures import flatten_comparison, flatten_summary
from leeward.sweep.cell import compare
from leeward.sweep.plan import Cell
from leeward.sweep.store import Store

_COUNTS = {"blocks", "blocks_unfinished", "placed_blindly", "retries"}


def table(store: Store, cells: Sequence[Cell], baseline: str) -> pyarrow.Table:
    """A row for each cell of the store, in their order.

    The columns are `set.PATH` for each path, `policy`, `seed`, `baseline`, and the figures of the summary
    and, for all but the baseline, of the comparison, with dots between: `full_block_write_s.p95`,
    `against_baseline.blocks.factor`. A figure is null if nothing was counted, as in an hour in which no job
    ended, so that no mean over seeds includes a time of 0 s.
    """
    rows, names = [], set[str]()
    before: tuple[Any, pyarrow.Table] | None = None
    by_place = {(cell.variant.setting, cell.seed): cell for cell in cells if cell.policy == baseline}
    for cell in cells:
        place = (cell.variant.setting, cell.seed)
        if before is None or before[0] != place:
            before = place, store.read(by_place[place])[1]
        document, writes = store.read(cell)
        against = flatten_comparison(compare(writes, before[1]))
        if cell.policy == baseline:
            against = dict.fromkeys(against)
        figures = flatten_summary(document["summary"]) | against
        names |= figures.keys()
        settings = {f"set.{path}": value for path, value in cell.variant.setting}
        rows.append(settings | {"policy": cell.policy, "seed": cell.seed, "baseline": baseline} | figures)
    fields = [(name, pyarrow.uint64() if name == "seed" else _type(name, names)) for name in rows[0]]
    return pyarrow.Table.from_pylist(rows, pyarrow.schema(fields))


def _type(name: str, figures: set[str]) -> pyarrow.DataType:
    if name not in figures:
        return pyarrow.string()
    return pyarrow.int64() if name in _COUNTS or name.endswith(".count") else pyarrow.float64()
