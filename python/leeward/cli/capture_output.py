"""Output that all levels of `leeward matrix capture` share: progress, files, doubts, notes below tables."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward._quantities import bytes_text, percent_text
from leeward.cli.notes import print_note
from leeward.cli.progress import progress, slow_notice
from leeward.errors import InputError

if TYPE_CHECKING:
    import pyarrow

    from leeward.matrix import Capture, ClassLoads

MOST_SOURCES = 20
"""Greatest number of observers in the notes."""
MOST_UNKNOWN = 5
"""Greatest number of addresses outside of the mapping that a note names."""
TABLES = (".csv", ".parquet")
"""Endings of files with tables."""


@contextmanager
def reading(files: list[str]) -> Iterator[Callable[[int], None] | None]:
    """Shows the progress of reading; without a bar for compressed files, whose length is unknown."""
    sizes = [path.stat().st_size if (path := Path(file)).is_file() else 0 for file in files]
    if not sum(sizes) or any(file.endswith(".gz") for file in files):
        with slow_notice("reading"):
            yield None
    else:
        with progress("reading", sum(sizes)) as advance:
            yield advance


def check_ending(path: Path, flag: str, endings: Sequence[str] = TABLES) -> None:
    """Raises an error for a file name with another ending."""
    if path.suffix not in endings:
        message = f"`{path}`: expected a name that ends in {' or '.join(endings)}"
        raise InputError.about(flag, message)


def write_table(path: Path, table: "pyarrow.Table") -> None:
    """Writes a table as CSV or Parquet."""
    from pyarrow import csv, parquet

    from leeward._files import atomic_file

    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            parquet.write_table(table, temporary)
        else:
            csv.write_csv(table, temporary, csv.WriteOptions(quoting_style="none"))


def print_doubts(result: "Capture | ClassLoads") -> None:
    """Prints above the table which discards may change it."""
    doubts = [row for row in result.discards.to_pylist() if row["doubt"]]
    for kept, title in ((False, "incomplete, without"), (True, "in doubt, with")):
        parts = [
            f"{row['count']:,} {row['reason']}" + (f" ({bytes_text(row['bytes'])})" if row["bytes"] else "")
            for row in doubts
            if row["kept"] is kept
        ]
        if parts:
            print(f"{title}: {', '.join(parts)}")


def error_text(row: dict[str, Any]) -> str:
    """Sampling error of the bytes at 95 % confidence; empty if every packet was seen."""
    from leeward.matrix.captures import CONFIDENT

    if not row["stderr"]:
        return ""
    return f"±{percent_text(CONFIDENT * row['stderr'] / row['bytes'])}"


def print_notes(result: "Capture | ClassLoads", starts: "pyarrow.ChunkedArray") -> None:
    """Notes below the table, on stderr.

    Args:
        result: The captures.
        starts: Start of the interval of each row, in seconds since 1970.
    """
    lines = []
    if len(starts):
        times = starts.to_numpy()
        intervals = int(times.max() - times.min()) // result.interval_s + 1
        noun = "interval" if intervals == 1 else "intervals"
        lines.append(f"{intervals:,} {noun} of {result.interval_s:,} s, from {_moment(int(times.min()))}")
    sources = result.sources.to_pylist()
    for row in sources[:MOST_SOURCES]:
        noun = "packets" if row["protocol"] == "packets" else "records"
        lines.append(
            f"seen by {row['name']} ({row['protocol']}): {row['flows']:,} {noun}, {bytes_text(row['bytes'])}"
        )
    if len(sources) > MOST_SOURCES:
        lines.append(f"and by {len(sources) - MOST_SOURCES:,} more")
    if len(sources) > 1:
        lines.append("traffic seen by two of these sources is counted twice")
    discards = result.discards.to_pylist()
    for is_counted in (False, True):
        for row in discards:
            if row["kept"] is is_counted:
                title = (
                    "not counted"
                    if not is_counted
                    else "counted, but doubtful"
                    if row["doubt"]
                    else "counted"
                )
                reason = f"{row['reason']}, {row['detail']}" if row["detail"] else row["reason"]
                size = f", {bytes_text(row['bytes'])}" if row["bytes"] else ""
                lines.append(
                    f"{title}: {row['count']:,} {reason}{size}: {row['meaning']} ({row['examples']})"
                )
    if len(result.unknown):
        first = result.unknown.slice(0, MOST_UNKNOWN).to_pylist()
        names = ", ".join(f"{row['address']} ({bytes_text(row['bytes'])})" for row in first)
        more = len(result.unknown) - len(first)
        lines.append(f"addresses outside of the mapping: {names}" + (f" and {more:,} more" if more else ""))
    # The lines say which traffic is missing from the matrix or counted in doubt.
    print_note("\n".join(["", *lines]), doubt=True)


def _moment(seconds: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
