"""Compute ratio of queries: share of processing in the time of their slowest workers.

::

    compute ratio = sum over stages of the processing time of the 10 slowest workers of that stage
                    / sum over stages of those workers' total time

as in Hotspots, section 4.2. The slowest workers have the greatest total time. A query with a higher ratio
depends less on its links.
"""

from pathlib import Path
from typing import Any

import ibis
import numpy
import pyarrow
from pyarrow import compute, parquet

from leeward._table_head import files
from leeward._table_head import head as read_head
from leeward.errors import InputError
from leeward.impact import columns
from leeward.impact.columns import Rows
from leeward.impact.latencies import LONGEST_S
from leeward.impact.settings import MILLION
from leeward.telemetry import Discards, Engine

SLOWEST = 10
"""Number of slowest workers of a stage whose times the paper's telemetry has."""
SCHEMA = pyarrow.schema(
    [
        ("query", pyarrow.string()),
        ("stage", pyarrow.string()),
        ("worker", pyarrow.string()),
        ("compute_us", pyarrow.int64()),
        ("total_us", pyarrow.int64()),
    ]
)
_NAMES = ("query", "stage", "worker")


def read(path: str | Path, folder: Path, discards: Discards) -> Path:
    """Reads the times of workers, and writes the valid ones to a file in a folder.

    Args:
        path: A file in CSV or Parquet, or a folder of them: columns `query`, `stage`, `worker`, and with a
            unit (`_s`, `_ms`, `_us`, `_ns`) `compute` and `total`.
        folder: Folder of the clean table.
        discards: Counts of rows left out.

    Raises:
        InputError: A file cannot be read or lacks a column.
    """
    output = folder / "stages.parquet"
    with parquet.ParquetWriter(output, SCHEMA) as writer:
        for file in files([path], "stages"):
            head = read_head(file)
            head.check_names()
            names = head.columns
            for name in _NAMES:
                if name not in names:
                    message = f"no such column; it has {', '.join(names)}"
                    raise InputError(str(file), None, None, name, message)
            spans = [columns.in_unit(file, names, name, True) for name in ("compute", "total")]
            units = [span for span in spans if span is not None]
            first = 0
            for batch in columns.batches(head, [*_NAMES, *(name for name, _ in units)]):
                valid = Rows(file, first, batch.num_rows, discards)
                writer.write_table(_clean(valid, batch, units))
                first += batch.num_rows
    return output


def _clean(valid: Rows, batch: Any, units: list[tuple[str, float]]) -> Any:
    names = [columns.texts(batch.column(index)) for index in range(len(_NAMES))]
    for name in names:
        valid.drop("stage-without-name", name.is_null().to_numpy(zero_copy_only=False))
    spans = []
    for index, (name, unit) in enumerate(units, len(_NAMES)):
        numbers = columns.numbers(batch.column(index))
        valid.numbers(name, numbers, "stage-without-time")
        valid.drop("negative", numbers.values < 0, name, numbers.texts)
        ns = numpy.rint(numbers.values * unit)
        valid.drop("too-long", ns > LONGEST_S * 1e9, name, numbers.texts)
        spans.append(numpy.where(valid.rows, ns, 0.0).astype(numpy.int64) // 1000)
    valid.drop("compute-above-total", spans[0] > spans[1], units[0][0], batch.column(len(_NAMES)))
    table = pyarrow.table(
        [
            compute.cast(pyarrow.array(values), kind.type)
            for values, kind in zip([*names, *spans], SCHEMA, strict=True)
        ],
        schema=SCHEMA,
    )
    return table.take(pyarrow.array(numpy.flatnonzero(valid.rows)))


def compute_ratios(engine: Engine, file: Path) -> ibis.Table:
    """Compute ratio of each query: `query`, `ratio_ppm` (int64, millionths, rounded down).

    Queries without any time have no row.
    """
    workers = engine.parquet([file])
    order = ibis.window(
        group_by=["query", "stage"],
        order_by=[workers.total_us.desc(), workers.compute_us.desc(), workers.worker.asc()],
    )
    slowest = workers.mutate(rank=ibis.row_number().over(order)).filter(lambda t: t["rank"] < SLOWEST)
    sums = slowest.group_by("query").agg(
        compute_us=lambda t: t.compute_us.sum().cast("int64"),
        total_us=lambda t: t.total_us.sum().cast("int64"),
    )
    with_time = sums.filter(sums.total_us > 0)
    share = with_time.compute_us.cast("float64") * float(MILLION) / with_time.total_us.cast("float64")
    return with_time.select(query=with_time.query, ratio_ppm=share.floor().cast("int64"))
