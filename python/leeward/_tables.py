"""Parquet files and tables in memory as batches of Arrow.

The extension module reads lists of scenarios and traces from them, and `leeward.matrix` lists of transfers.
"""

from collections.abc import Iterator
from os import PathLike
from typing import Any

import pyarrow
from pyarrow import parquet, types

MOST_ROWS = 30_000_000
"""Greatest number of rows of a list."""


def batches(path: str | PathLike[str], columns: list[str], limited: bool) -> tuple[list[str], Iterator[Any]]:
    """Wanted columns that a file has, and their rows as record batches.

    Columns of batches are of int64, uint64, float64 or string: floats and decimals of other widths become
    float64. For a file without any wanted column, returns
    the names of all its columns, for an error message, and no batches.

    Args:
        path: Path of the file.
        columns: Wanted columns.
        limited: True to reject a file with more than `MOST_ROWS` rows.

    Raises:
        ValueError: The file has too many rows, is not readable as Parquet, or has times in a wanted column.
    """
    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(error) from None
    rows = file.metadata.num_rows
    if limited and rows > MOST_ROWS:
        file.close()
        raise ValueError(f"{rows:,} rows: more than {MOST_ROWS:,}")
    names = file.schema_arrow.names
    present = [name for name in columns if name in names]
    if not present:
        file.close()
        return names, iter(())
    try:
        schema = _batch_schema(file.schema_arrow, present)
    except ValueError:
        file.close()
        raise
    return present, _read(file, schema)


def rows(data: Any, columns: list[str]) -> tuple[list[str], Iterator[Any]]:
    """Wanted columns that a table in memory has, and their rows as record batches; see `batches`.

    Raises:
        ValueError: A column has no form as numbers or texts.
    """
    table = table_of(data)
    names = table.column_names
    present = [name for name in columns if name in names]
    if not present:
        return names, iter(())
    schema = _batch_schema(table.schema, present)
    try:
        return present, iter(_cast(table, schema).to_batches())
    except pyarrow.ArrowException as error:
        raise _unreadable(error) from None


def _read(file: Any, schema: Any) -> Iterator[Any]:
    try:
        with file:
            for batch in file.iter_batches(columns=schema.names):
                yield from _cast(pyarrow.Table.from_batches([batch]), schema).to_batches()
    except (pyarrow.ArrowException, OSError) as error:
        raise _unreadable(error) from None


def table_of(data: Any) -> Any:
    """A table of any library as a `pyarrow.Table`, its texts as plain ones.

    Raises:
        ValueError: Arrow cannot read it as a table.
    """
    try:
        table = pyarrow.table(data)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise _unreadable(error) from None
    for at, column in enumerate(table.schema):
        # Earlier versions of pyarrow do not cast views of texts, which Polars makes.
        if str(column.type) == "string_view":
            texts = pyarrow.array(table[column.name].to_pylist(), pyarrow.string())
            table = table.set_column(at, column.name, texts)
    return table


def _cast(table: Any, schema: Any) -> Any:
    """The columns of a schema, with their types."""
    return table.select(schema.names).cast(schema)


def _unreadable(error: Exception) -> ValueError:
    return ValueError(f"not readable as a table: {str(error).splitlines()[0]}")


def _batch_schema(schema: Any, names: list[str]) -> Any:
    """Types of wanted columns in batches."""
    return pyarrow.schema([(name, _batch_type(name, schema.field(name).type)) for name in names])


def _batch_type(name: str, kind: Any) -> Any:
    """The type of a column in batches; types other than numbers become texts.

    Raises:
        ValueError: The column has times, which have no form as numbers here.
    """
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(kind):
        raise ValueError(f"column `{name}`: {kind}: expected numbers, such as seconds")
    if types.is_unsigned_integer(kind):
        return pyarrow.uint64()
    if types.is_integer(kind):
        return pyarrow.int64()
    return pyarrow.float64() if types.is_floating(kind) or types.is_decimal(kind) else pyarrow.string()
