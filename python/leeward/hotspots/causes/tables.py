"""Tables that tell more of a fleet than its links do: what racks carry for whom, their tasks, who asks.

Each is CSV or Parquet with named columns; `t_ms` is the end of what a row covers, in Unix milliseconds, or
`t_s` in seconds. Rows that cannot be used are counted among the discards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

import ibis
from pyarrow import csv

from leeward.errors import InputError
from leeward.ragged import why
from leeward.telemetry import Discards, Engine

MOST = 1e15
"""Of any number in them."""
_EXAMPLES = 3
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Column:
    """A column of such a table.

    Attributes:
        name: Its name.
        kind: `text`, or a `number` that is not negative.
        default: What stands where there is no such column; None: it must be there.
    """

    name: str
    kind: Literal["text", "number"]
    default: str | float | None = None


SPLIT = (
    Column("rack", "text"),
    Column("storage_bps", "number"),
    Column("compute_bps", "number"),
    Column("direction", "text", "both"),
)
"""What a rack's storage and its compute carried: mean rates in bits per second, by direction."""
TASKS = (
    Column("rack", "text"),
    Column("job", "text"),
    Column("cpus", "number"),
    Column("tx_bps", "number"),
    Column("rx_bps", "number"),
    Column("tasks", "number", 1.0),
)
"""Tasks of a job on a rack: their number, processors, and what they send and receive together."""
REQUESTS = (
    Column("rack", "text"),
    Column("requests", "number", 1.0),
    Column("operation", "text", "any"),
)
"""Storage requests that a rack served: `read`, `write`, or whichever."""
WORDS = {"direction": ("up", "down", "both"), "operation": ("read", "write", "any")}


def read(
    engine: Engine,
    path: str | PathLike[str],
    columns: Sequence[Column],
    racks: Sequence[str],
    discards: Discards,
) -> ibis.Table:
    """Such a table, with what cannot be used left out and counted.

    Args:
        engine: Where it goes.
        path: CSV or Parquet, by its name.
        columns: Which it has.
        racks: The names of the cluster's racks.
        discards: Where rows that are left out are counted.

    Returns:
        `t_ms` (int64) and the columns: texts, and numbers as doubles.

    Raises:
        InputError: It cannot be read, or a column is missing or of the wrong type.
    """
    raw = _raw(engine, path)
    table = _typed(raw, path, columns)
    bad = {
        "not-a-number": _any(_odd(table[one.name]) for one in (Column("t_ms", "number"), *columns)),
        "negative": _any(table[one.name] < 0 for one in columns if one.kind == "number"),
        "too-large": _any(table[one.name] > MOST for one in columns if one.kind == "number"),
        "no-rack": ~table.rack.isin(list(racks)),
    }
    for name, words in WORDS.items():
        if name in table.columns:
            bad[f"no-{name}"] = ~table[name].isin(words)
    marked = table.mutate(reason=_first(bad))
    counts = engine.arrow(marked.filter(marked.reason != "").group_by("reason").agg(n=ibis._.count()))
    for row in sorted(counts.to_pylist(), key=lambda one: str(one["reason"])):
        some = marked.filter(marked.reason == row["reason"]).order_by("t_ms", "rack").limit(_EXAMPLES)
        examples = [
            f"{Path(path).name}: rack {one['rack']} at {one['t_ms']}"
            for one in engine.arrow(some).to_pylist()
        ]
        discards.count(row["reason"], row["n"], *examples)
    return engine.keep(marked.filter(marked.reason == "").drop("reason"))


def _raw(engine: Engine, path: str | PathLike[str]) -> ibis.Table:
    try:
        if Path(path).suffix in _PARQUET:
            return engine.parquet([path])
        return engine.table(csv.read_csv(path))
    except FileNotFoundError:
        raise InputError(str(path), None, None, None, "no such file") from None
    except Exception as error:
        # Engines have errors of their own for a file that they cannot read.
        if Path(path).suffix not in _PARQUET and (told := why(path)):
            raise told from None
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(str(path), None, None, None, f"not readable as a table: {said}") from None


def _typed(raw: ibis.Table, path: str | PathLike[str], columns: Sequence[Column]) -> ibis.Table:
    """The columns that are wanted, in their types."""
    made: dict[str, ibis.Value] = {}
    time, factor = ("t_ms", 1.0) if "t_ms" in raw.columns else ("t_s", 1000.0)
    for one in (Column(time, "number"), *columns):
        if one.name not in raw.columns:
            if one.default is None:
                wanted = ", ".join(column.name for column in columns if column.default is None)
                error = InputError(str(path), None, None, one.name, "there is no such column")
                error.add_note(f"expected t_ms (or t_s), {wanted}; there are {', '.join(raw.columns)}")
                raise error
            made[one.name] = ibis.literal(one.default)
            continue
        column = raw[one.name]
        if one.kind == "number" and not (column.type().is_numeric() or column.type().is_null()):
            message = f"a column of type {column.type()}; expected numbers"
            raise InputError(str(path), None, None, one.name, message)
        made[one.name] = column.cast("string" if one.kind == "text" else "float64")
    at = made.pop(time)
    # Null where there is no time, or none that fits.
    sound = at.notnull() & ~at.isnan() & (at >= 0) & (at * factor < 2.0**52)
    made["t_ms"] = sound.ifelse(at * factor, None).round().cast("int64")
    return raw.select(**made)


def _odd(value: ibis.Value) -> ibis.Value:
    odd = value.isnull()
    return odd | value.isnan() | value.isinf() if value.type().is_floating() else odd


def _any(conditions: Iterable[ibis.Value]) -> ibis.Value:
    found: ibis.Value = ibis.literal(False)
    for condition in conditions:
        found = found | ibis.coalesce(condition, False)
    return found


def _first(bad: dict[str, ibis.Value]) -> ibis.Value:
    """The first reason that holds of a row; empty where none does."""
    reason: ibis.Value = ibis.literal("")
    for name, condition in reversed(bad.items()):
        reason = ibis.ifelse(ibis.coalesce(condition, False), name, reason)
    return reason
