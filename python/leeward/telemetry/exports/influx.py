"""Annotated CSV of InfluxDB: tables, each with its annotations and header.

https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/
"""

import csv
from collections.abc import Iterator

from leeward.errors import InputError
from leeward.telemetry.exports.table import Export, joined, stamp_ms

_ANNOTATIONS = ("#datatype", "#group", "#default")
_RESULT = ("result", "table")
_NUMBERS = ("double", "long", "unsignedLong")


def recognizes(head: list[str]) -> bool:
    """True if a file begins with an annotation."""
    first = next((line for line in head if line.strip()), "")
    return first.split(",")[0].strip('"') in _ANNOTATIONS


def read(file: str, lines: list[str]) -> Export:
    """All tables of a file; `_field` names the reading, and other columns without `_` are labels.

    Raises:
        InputError: The server reports an error, or a cell is not a number or a time.
    """
    return Export(joined(_rows(file, lines)))


def _rows(file: str, lines: list[str]) -> Iterator[tuple[int, dict[str, str], str, float | int]]:
    header: list[str] | None = None
    annotations: dict[str, list[str]] = {}
    reader = csv.reader(lines)
    for cells in reader:
        line = reader.line_num
        if not any(cells):
            header, annotations = None, {}
        elif cells[0] in _ANNOTATIONS:
            header = None
            annotations[cells[0]] = cells
        elif header is None:
            header = cells
            if "error" not in header and not {"_time", "_value"} <= set(header):
                there = ", ".join(filter(None, header))
                raise InputError(file, line, None, None, f"no column `_time` or `_value`; there are: {there}")
        elif len(cells) != len(header):
            message = f"{len(cells)} cells; expected {len(header)} as in the header"
            raise InputError(file, line, None, None, message)
        else:
            defaults = annotations.get("#default", [""] * len(cells))
            filled = [cell or default for cell, default in zip(cells, defaults, strict=False)]
            row = dict(zip(header, filled, strict=False))
            if "_value" not in row:
                raise InputError(file, line, None, None, f"InfluxDB reports an error: {row['error'][:200]}")
            if row["_value"]:
                kinds = dict(zip(header, annotations.get("#datatype", []), strict=False))
                value = _number(file, line, row["_value"], kinds.get("_value", "double"))
                yield stamp_ms(file, line, row["_time"]), _labels(row), row.get("_field") or "value", value


def _labels(row: dict[str, str]) -> dict[str, str]:
    """Labels of a series: all columns but those of the query's result."""
    return {name: text for name, text in row.items() if name and name[0] != "_" and name not in _RESULT}


def _number(file: str, line: int, cell: str, kind: str) -> float | int:
    try:
        if kind not in _NUMBERS:
            raise ValueError
        return float(cell) if kind == "double" else int(cell)
    except ValueError:
        message = f"`{cell[:40]}` of the type `{kind}`: expected a number ({', '.join(_NUMBERS)})"
        raise InputError(file, line, None, "_value", message) from None
