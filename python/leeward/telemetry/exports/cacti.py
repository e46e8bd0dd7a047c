"""CSV of a graph of Cacti: its title, the unit, and the rates of a port."""

import csv
import re

import pyarrow

from leeward.errors import InputError
from leeward.telemetry.exports.numbers import NONE, plain_number
from leeward.telemetry.exports.table import TIME, Export, stamp_ms

_UNITS = {r"bits?\s*(per|/)\s*s(ec(ond)?)?|bps": 1.0, r"(bytes?|octets?)\s*(per|/)\s*s(ec(ond)?)?": 8.0}
_WAYS = {
    "in_bps": r"(?i).*\b(in|inbound|received)\b.*|traffic_in",
    "out_bps": r"(?i).*\b(out|outbound|sent)\b.*|traffic_out",
}


def recognizes(head: list[str]) -> bool:
    """True if a file begins with the title of a graph."""
    return head[0].replace('"', "").startswith("Title:")


def read(file: str, lines: list[str]) -> Export:
    """The rates of a graph, whose title is the label `device`.

    Raises:
        InputError: The unit or the direction of a column is not known, or a cell is not a number or a time.
    """
    facts: dict[str, tuple[int, str]] = {}
    header: list[str] | None = None
    columns: dict[str, list[float | None]] = {}
    places: dict[str, int] = {}
    times: list[int] = []
    factor = 1.0
    reader = csv.reader(lines)
    for cells in reader:
        line = reader.line_num
        if not any(cells):
            continue
        if header is None and cells[0].rstrip().endswith(":"):
            facts[cells[0].strip().rstrip(":").lower()] = line, (cells[1].strip() if len(cells) > 1 else "")
        elif header is None:
            header = cells
            factor = _factor(file, facts)
            for name, pattern in _WAYS.items():
                found = [
                    place
                    for place, text in enumerate(header)
                    if place and re.fullmatch(pattern, text.strip())
                ]
                if len(found) > 1:
                    raise InputError(
                        file, line, None, None, f"`{header[found[1]]}`: a second column of this direction"
                    )
                if found:
                    places[name], columns[name] = found[0], []
            if not places:
                raise InputError(
                    file,
                    line,
                    None,
                    None,
                    f"no column `Inbound` or `Outbound`; there are: {', '.join(header[1:])}",
                )
        else:
            if len(cells) != len(header):
                raise InputError(
                    file, line, None, None, f"{len(cells)} cells; expected {len(header)} as in the header"
                )
            times.append(stamp_ms(file, line, cells[0]))
            for name, place in places.items():
                cell = cells[place].strip()
                value = None if cell.lower() in NONE else plain_number(file, line, header[place], cell)
                columns[name].append(None if value is None else value * factor)
    if header is None:
        raise InputError.about(
            file, "an export of Cacti without a table; expected a line with Date and Inbound"
        )
    title = facts["title"][1]
    return Export(
        pyarrow.table(
            {
                TIME: pyarrow.array(times, pyarrow.int64()),
                "device": pyarrow.array([title] * len(times), pyarrow.string()),
                **{name: pyarrow.array(values, pyarrow.float64()) for name, values in columns.items()},
            }
        ),
        True,
    )


def _factor(file: str, facts: dict[str, tuple[int, str]]) -> float:
    """Bits per second of the unit in the vertical label."""
    line, label = facts.get("vertical label", (1, ""))
    for pattern, factor in _UNITS.items():
        if re.fullmatch(pattern, label, re.IGNORECASE):
            return factor
    message = f"`{label[:40]}`: expected bits per second or bytes per second"
    raise InputError(file, line, None, "Vertical Label", message)
