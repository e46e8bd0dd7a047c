"""Table types: any object with Arrow's PyCapsule interface."""

from typing import Protocol


class ArrowStream(Protocol):
    """A table as a stream of record batches, as pyarrow, Polars, pandas 2.2 and DuckDB give it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with an `ArrowArrayStream`."""


class ArrowArray(Protocol):
    """A table as one record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules with an `ArrowSchema` and an `ArrowArray`."""


Table = ArrowStream | ArrowArray
