"""Output of `rrdtool fetch` and `rrdtool xport --json`: rates of the data sources of one file.

The name of the file is the label `device`. Neither output has units; a map file names them.
"""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow

from leeward.errors import InputError
from leeward.telemetry.exports.numbers import NONE, plain_number
from leeward.telemetry.exports.table import TIME, Export

_ROW = re.compile(r"(\d{9,11}): +(\S.*)")


def recognizes(head: list[str]) -> bool:
    """True for a line of names, an empty line, and lines with a time and a colon."""
    lines = [line for line in head if line.strip()]
    return len(lines) > 1 and head[0].startswith(" ") and _ROW.fullmatch(lines[1]) is not None


def read(file: str, lines: list[str]) -> Export:
    """The rates that `rrdtool fetch` prints.

    Raises:
        InputError: A line has another number of values than the first has names, or a value is not a number.
    """
    names = lines[0].split()
    times: list[int] = []
    values: list[list[float | None]] = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        row = _ROW.fullmatch(line.rstrip())
        cells = row[2].split() if row else []
        if row is None or len(cells) != len(names):
            message = f"`{line.strip()[:40]}`: expected a time, a colon, and {len(names)} values"
            raise InputError(file, number, None, None, message)
        times.append(1000 * int(row[1]))
        values.append(
            [
                None if cell.lower() in NONE else plain_number(file, number, name, cell)
                for name, cell in zip(names, cells, strict=True)
            ]
        )
    return _export(file, names, times, values)


def recognizes_json(head: list[str]) -> bool:
    """True for an object that begins with what `xport` writes."""
    text = " ".join(head)[:4000]
    return text.lstrip().startswith("{") and '"meta"' in text and '"legend"' in text


def read_json(file: str, lines: list[str]) -> Export:
    """The rates that `rrdtool xport --json` prints.

    Raises:
        InputError: The text is not JSON, or has other fields.
    """
    try:
        document: Any = json.loads("\n".join(lines))
        meta, rows = document["meta"], document["data"]
        start, step, names = int(meta["start"]), int(meta["step"]), [str(name) for name in meta["legend"]]
        values = [[None if cell is None else float(cell) for cell in row] for row in rows]
        if any(len(row) != len(names) for row in values):
            raise ValueError("a row has another number of values than the legend")
        # A row has the time of its end, and the first is one step after the start (since rrdtool 1.4).
        times = (
            [1000 * int(row) for row in meta["times"]]
            if "times" in meta
            else [1000 * (start + step * number) for number in range(1, len(values) + 1)]
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError.about(file, f"not as rrdtool xport --json prints it: {error}") from None
    return _export(file, names, times, values)


def _export(file: str, names: list[str], times: list[int], values: list[list[float | None]]) -> Export:
    device = Path(file).name.split(".")[0]
    columns = {
        TIME: pyarrow.array(times, pyarrow.int64()),
        "device": pyarrow.array([device] * len(times), pyarrow.string()),
    }
    for place, name in enumerate(names):
        columns[name] = pyarrow.array([row[place] for row in values], pyarrow.float64())
    return Export(pyarrow.table(columns))
