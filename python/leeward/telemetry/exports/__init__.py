"""Files of telemetry that other programs export, as one table each.

The content of a file decides its form: annotated CSV of InfluxDB; CSV of Grafana (with units, with `sep=`),
of Cacti, of a spreadsheet with decimal commas or separated thousands; output of `rrdtool fetch` and `rrdtool
xport --json`; text of Prometheus with times. What is not understood is an error with its line and cell.
"""

import gzip
import re
import zlib
from collections.abc import Callable
from pathlib import Path

from leeward._table_head import GZIP, PARQUET
from leeward.errors import InputError
from leeward.telemetry.exports import cacti, influx, prometheus_text, rrdtool, spreadsheet
from leeward.telemetry.exports.table import Export

MOST_BYTES = 1_000_000_000
"""Greatest size of an export, which is read whole; other files are streamed."""
_HEAD = 64
"""Number of lines that decide the form."""
_HEAD_BYTES = 200_000

FORMS: tuple[tuple[Callable[[list[str]], bool], Callable[[str, list[str]], Export]], ...] = (
    (influx.recognizes, influx.read),
    (cacti.recognizes, cacti.read),
    (rrdtool.recognizes_json, rrdtool.read_json),
    (rrdtool.recognizes, rrdtool.read),
    (prometheus_text.recognizes, prometheus_text.read),
    (spreadsheet.recognizes, spreadsheet.read),
)
"""Each form: whether the first lines of a file are of it, and how it is read."""


def export(path: Path) -> Export | None:
    """The table of a file, or None if it is plain CSV or Parquet.

    Raises:
        InputError: A line or cell is not understood.
    """
    lines = _lines(path, _HEAD_BYTES)
    if lines is None or not any(line.strip() for line in lines):
        return None
    head = lines[:_HEAD]
    read = next((read for recognizes, read in FORMS if recognizes(head)), None)
    if read is None:
        _check(str(path), head)
        return None
    return read(str(path), _lines(path, MOST_BYTES + 1) or [])


def _lines(path: Path, most: int) -> list[str] | None:
    """Lines of the first `most` bytes; None for Parquet, and for a file that cannot be read as text."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(PARQUET))
        if magic == PARQUET:
            return None
        with gzip.open(path, "rb") if magic.startswith(GZIP) else path.open("rb") as opened:
            content = opened.read(most)
        if len(content) > MOST_BYTES:
            raise InputError.about(
                path, f"an export longer than {MOST_BYTES:,} bytes; expected CSV or Parquet"
            )
        text = content.decode("utf-8-sig", errors="strict" if len(content) < most else "ignore")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return None
    return re.split(r"\r\n|\n|\r", text)


def _check(file: str, head: list[str]) -> None:
    """Names the form of a file that is neither CSV nor one of `FORMS`."""
    first = next(line.strip() for line in head if line.strip())
    if first.startswith("<"):
        raise InputError(
            file, 1, None, None, f"`{first[:40]}`: XML or HTML; expected CSV, Parquet or rrdtool's --json"
        )
    if first[0] in "{[" and "," not in first.split('"')[0]:
        raise InputError(
            file, 1, None, None, f"`{first[:40]}`: JSON; expected CSV, Parquet or rrdtool xport --json"
        )
