"""Columns of latency files, found by their names."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from leeward._table_head import Head
from leeward._table_head import head as read_head
from leeward.errors import InputError
from leeward.impact import columns
from leeward.impact.operations import ENDS

TIMES = {"t_s": 1e9, "t_ms": 1e6, "t": None}
"""Columns for the end of an operation, with the nanoseconds in their unit; `t` has dates and times."""
OPTIONAL = ("src", "dst", "links", "size_bytes", "medium", "class", "compute_ratio", "query", "count")


@dataclass(frozen=True)
class FileColumns:
    """A file and its columns.

    Attributes:
        head: Head of the table.
        file: Path of the file in messages: the table, or the file that it was made from.
        time: Column of the end of operations.
        latency: Column of the latency, with the nanoseconds of its unit.
        network: Column of the part on the network, if there is one.
        optional_columns: Optional columns that the file has.
    """

    head: Head
    file: Path
    time: str
    latency: tuple[str, float]
    network: tuple[str, float] | None
    optional_columns: frozenset[str]

    @staticmethod
    def of(file: Path, shown: Path | None = None) -> "FileColumns":
        """Finds the columns of a file by their names.

        Args:
            file: Path of the table.
            shown: Path of the file in messages, if it is another one.

        Raises:
            InputError: The file cannot be read, or lacks a column.
        """
        head = read_head(file)
        head.check_names()
        names = head.columns
        times = [name for name in TIMES if name in names]
        if len(times) != 1:
            beside = f"`{times[1]}` beside `{times[0]}`: " if times else ""
            expected = f"{beside}expected the end of operations in one of {', '.join(TIMES)}"
            raise InputError.about(str(file), f"{expected}; it has {', '.join(names)}")
        latency = columns.in_unit(file, names, "latency", True)
        network = columns.in_unit(file, names, "network", False)
        if "operation" not in names:
            near = get_close_matches("operation", names, 1)
            error = InputError(
                str(file), None, None, "operation", f"no such column; it has {', '.join(names)}"
            )
            if near:
                error.add_note(f"rename the column `{near[0]}` to `operation`")
            raise error
        if not {"src", "dst", "links"} & set(names):
            message = "no column `src`, `dst` or `links`: the links of operations are unknown"
            raise InputError.about(str(file), f"{message}; it has {', '.join(names)}")
        optional = {name for name in OPTIONAL if name in names} | ({"network"} if network else set())
        assert latency is not None
        return FileColumns(head, shown or file, times[0], latency, network, frozenset(optional))

    def batches(self) -> Iterator[Any]:
        """Batches of rows, with `columns`."""
        times = () if TIMES[self.time] else (self.time,)
        return columns.batches(self.head, self.columns, times, (*ENDS, "links"))

    @property
    def columns(self) -> list[str]:
        """Names of the columns to read."""
        network = [self.network[0]] if self.network else []
        plain = [name for name in OPTIONAL if name in self.optional_columns]
        return [self.time, self.latency[0], "operation", *network, *plain]
