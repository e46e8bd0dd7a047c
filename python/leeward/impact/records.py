"""Latencies from spans and histograms, as columns of a latency table."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow

_KINDS = {
    "t": pyarrow.timestamp("us", "UTC"),
    "latency_ns": pyarrow.int64(),
    "operation": pyarrow.string(),
    "src": pyarrow.string(),
    "dst": pyarrow.string(),
    "links": pyarrow.string(),
    "network_ns": pyarrow.int64(),
    "size_bytes": pyarrow.int64(),
    "medium": pyarrow.string(),
    "class": pyarrow.string(),
    "compute_ratio": pyarrow.float64(),
    "query": pyarrow.string(),
    "count": pyarrow.int64(),
}
"""Columns of a latency table, with their types."""
_ALWAYS = ("t", "latency_ns", "operation", "src", "dst")
_LONGEST = 1000
"""Greatest number of characters of a text."""


@dataclass
class Records:
    """Latencies of a file.

    Attributes:
        columns: Values of each column; all have one length.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _KINDS})

    def add(self, **values: Any) -> None:
        """Adds a latency; columns without a value are empty."""
        for name, column in self.columns.items():
            column.append(values.get(name))

    def extend(self, other: "Records") -> None:
        """Adds the latencies of another."""
        for name, column in self.columns.items():
            column.extend(other.columns[name])

    def __len__(self) -> int:
        return len(self.columns["t"])

    def table(self) -> pyarrow.Table:
        """The latencies as a table; optional columns without any value are left out."""
        columns = {
            name: pyarrow.array(values, _KINDS[name])
            for name, values in self.columns.items()
            if name in _ALWAYS or any(value is not None for value in values)
        }
        return pyarrow.table(columns)


def text(value: object) -> str | None:
    """A text or number as text without invalid characters; None for an empty one, and for other values."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    # JSON may have halves of a surrogate pair, which no file can have.
    return str(value)[:_LONGEST].encode("utf-8", "replace").decode() or None


def whole(value: object, most: int = 2**62) -> int | None:
    """A whole number from 0 below `most`, or a text of its digits; None for another value."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < most else None
