"""Lists in Parquet, as the CSV that the sources of a scenario read."""

from collections.abc import Iterator
from io import BytesIO
from os import PathLike
from typing import Any

import pyarrow
from pyarrow import csv, parquet

MOST_ROWS = 30_000_000
"""Greatest number of rows of a source."""


def as_csv(path: str | PathLike[str], columns: list[str]) -> bytes:
    """Columns of a Parquet file as CSV with a header.

    Args:
        path: The file.
        columns: Wanted columns. Columns that the file does not have are left out; if it has none of them, the
            header lists all of its own, for an error.

    Raises:
        ValueError: The file has too many rows, or is not readable as Parquet.
    """
    try:
        with parquet.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            if rows > MOST_ROWS:
                raise ValueError(f"{rows:,} rows: more than {MOST_ROWS:,}")
            return b"".join(_texts(file, columns))
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"not readable as a table: {str(error).splitlines()[0]}") from None


def batches(path: str | PathLike[str], columns: list[str]) -> Iterator[bytes]:
    """Text of `as_csv` in batches of rows, for a file of any length.

    Raises:
        ValueError: The file is not readable as Parquet.
    """
    try:
        with parquet.ParquetFile(path) as file:
            yield from _texts(file, columns)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"not readable as a table: {str(error).splitlines()[0]}") from None


def _texts(file: Any, columns: list[str]) -> Iterator[bytes]:
    """A header, and then the rows of each batch."""
    names = file.schema_arrow.names
    wanted = [name for name in columns if name in names]
    yield (",".join(wanted or names) + "\n").encode()
    if not wanted:
        return
    schema = pyarrow.schema([(name, _plain(file.schema_arrow.field(name).type)) for name in wanted])
    for batch in file.iter_batches(columns=wanted):
        text = BytesIO()
        rows = pyarrow.Table.from_batches([batch]).select(wanted).cast(schema)
        csv.write_csv(rows, text, csv.WriteOptions(include_header=False))
        yield text.getvalue()


def _plain(kind: Any) -> Any:
    """Type of a column's values, where the column is dictionary-encoded."""
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind
