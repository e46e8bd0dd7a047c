"""Tables of a fleet besides its links: loads of racks by owner, their tasks, storage requests.

Each table is CSV or Parquet with named columns. The column `t_ms` is the end of a row's period in Unix
milliseconds; `t_s` is the same in seconds. Invalid rows are counted among the discards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

import ibis

from leeward._table_head import Head
from leeward._table_head import head as read_head
from leeward.errors import InputError
from leeward.telemetry import Discards, Engine
from leeward.telemetry.cells import number
from leeward.telemetry.files import reading

MOST = 1e15
"""Greatest value of a number in a table."""
MOST_SUM = 4e18
"""Greatest sum of a column. Sums, also those over two columns, must fit into 64 bits."""
_EXAMPLES = 3


@dataclass(frozen=True)
class Column:
    """A column of such a table.

    Attributes:
        name: Name.
        kind: `text`, or a `number` that is not negative.
        default: Value for a missing column; None for a required one.
        parts: Factor that makes numbers whole for sums: 1000 for thousandths.
    """

    name: str
    kind: Literal["text", "number"]
    default: str | float | None = None
    parts: int = 1


SPLIT = (
    Column("rack", "text"),
    Column("storage_bps", "number"),
    Column("compute_bps", "number"),
    Column("direction", "text", "both"),
)
"""Loads of a rack's storage and its compute: mean rates in bits per second, by direction."""
TASKS = (
    Column("rack", "text"),
    Column("job", "text"),
    Column("cpus", "number", parts=1000),
    Column("tx_bps", "number"),
    Column("rx_bps", "number"),
    Column("tasks", "number", 1.0, 1000),
)
"""Tasks of a job on a rack: number, processors, and their sent and received load."""
REQUESTS = (
    Column("rack", "text"),
    Column("requests", "number", 1.0),
    Column("operation", "text", "any"),
)
"""Storage requests that a rack served: `read`, `write`, or any."""
WORDS = {"direction": ("up", "down", "both"), "operation": ("read", "write", "any")}


def read(
    engine: Engine,
    path: str | PathLike[str],
    columns: Sequence[Column],
    racks: Sequence[str],
    discards: Discards,
) -> ibis.Table:
    """Reads a table of the fleet; invalid rows are left out and counted.

    Args:
        engine: Engine of the table.
        path: CSV or Parquet.
        columns: Columns of the table.
        racks: Names of the cluster's racks.
        discards: Counts of rows left out.

    Returns:
        `t_ms` (int64) and the columns: texts, and numbers as doubles.

    Raises:
        InputError: The file cannot be read, or a column is missing or of the wrong type.
    """
    head = read_head(_file(path))
    head.check_names()
    table = _cast(_raw(engine, head), head, columns)
    bad = {
        "not-a-number": _any(_invalid(table[column.name]) for column in (Column("t_ms", "number"), *columns)),
        "negative": _any(table[column.name] < 0 for column in columns if column.kind == "number"),
        "too-large": _any(table[column.name] > MOST for column in columns if column.kind == "number"),
        "no-rack": ~table.rack.isin(list(racks)),
    }
    for name, words in WORDS.items():
        if name in table.columns:
            bad[f"no-{name}"] = ~table[name].isin(words)
    with_reason = table.mutate(reason=_first(bad))
    with reading(str(path)):
        with_reason = engine.keep(with_reason)
    counts = engine.arrow(with_reason.group_by("reason").agg(n=ibis._.count()))
    reason_counts = sorted(counts.to_pylist(), key=lambda row: str(row["reason"]))
    for row in (row for row in reason_counts if row["reason"]):
        invalid = (
            with_reason.filter(with_reason.reason == row["reason"]).order_by("t_ms", "rack").limit(_EXAMPLES)
        )
        examples = [
            f"{Path(path).name}: rack {example['rack']} at {example['t_ms']}"
            for example in engine.arrow(invalid).to_pylist()
        ]
        discards.count(row["reason"], row["n"], *examples)
    good = with_reason.filter(with_reason.reason == "").drop("reason")
    if reason_counts and not any(row["reason"] == "" for row in reason_counts):
        text = ", ".join(f"{row['reason']}: {row['n']:,}" for row in reason_counts)
        raise InputError.about(str(path), f"no row can be used ({text})")
    _check_sums(engine, good, head, columns)
    return good


def _check_sums(engine: Engine, table: ibis.Table, head: Head, columns: Sequence[Column]) -> None:
    numbers = [column for column in columns if column.kind == "number"]
    totals = {column.name: table[column.name].sum() for column in numbers}
    sums = engine.arrow(table.agg(**totals)).to_pylist()[0]
    for column in numbers:
        if (sums[column.name] or 0) * column.parts > MOST_SUM:
            message = f"the numbers of this column add up to {sums[column.name]:.2g}: is the unit right?"
            raise InputError(str(head.path), None, None, column.name, message)


def _file(path: str | PathLike[str]) -> Path:
    if not Path(path).is_file():
        raise InputError.about(str(path), "no such file")
    return Path(path)


def _raw(engine: Engine, head: Head) -> ibis.Table:
    if head.parquet:
        return engine.parquet([head.path])
    return engine.csv([head.path], head.delimiter, head.columns, head.compressed)


def _cast(raw: ibis.Table, head: Head, columns: Sequence[Column]) -> ibis.Table:
    """Requested columns, in their types."""
    result: dict[str, ibis.Value] = {}
    time, factor = ("t_ms", 1.0) if "t_ms" in head.columns else ("t_s", 1000.0)
    for wanted in (Column(time, "number"), *columns):
        if wanted.name not in head.columns:
            if wanted.default is None:
                required = ", ".join(column.name for column in columns if column.default is None)
                error = InputError(str(head.path), None, None, wanted.name, "there is no such column")
                error.add_note(f"expected t_ms (or t_s), {required}; there are {', '.join(head.columns)}")
                raise error
            result[wanted.name] = ibis.literal(wanted.default)
            continue
        head.check_type(wanted.name, "numbers", "texts")
        column = raw[wanted.name]
        # Columns of CSV are texts: `001` stays a name, and `abc` in a column of numbers is one invalid cell.
        result[wanted.name] = column.cast("string") if wanted.kind == "text" else number(column, "float64")
    times = result.pop(time)
    # An invalid time becomes null.
    valid = times.notnull() & ~times.isnan() & (times >= 0) & (times * factor < 2.0**52)
    result["t_ms"] = valid.ifelse(times * factor, None).round().cast("int64")
    return raw.select(**result)


def _invalid(value: ibis.Value) -> ibis.Value:
    invalid = value.isnull()
    return invalid | value.isnan() | value.isinf() if value.type().is_floating() else invalid


def _any(conditions: Iterable[ibis.Value]) -> ibis.Value:
    result: ibis.Value = ibis.literal(False)
    for condition in conditions:
        result = result | ibis.coalesce(condition, False)
    return result


def _first(bad: dict[str, ibis.Value]) -> ibis.Value:
    """First reason why a row is invalid; empty for a valid row."""
    reason: ibis.Value = ibis.literal("")
    for name, condition in reversed(bad.items()):
        reason = ibis.ifelse(ibis.coalesce(condition, False), name, reason)
    return reason
