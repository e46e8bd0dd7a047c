"""Meaning of the columns of a telemetry file, by their names or by a map file.

Files are *long*, a row for each reading of a link or port, or *wide*, a row for each time and a column for
each link. Readings are rates, or counters that only grow.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from leeward.errors import InputError
from leeward.telemetry.units import COUNTERS, RATES, TIMES

_LINK = ("link", "link_name")
_DEVICE = ("device", "instance", "source", "producer", "node", "hostname", "switch", "target", "agent")
_PORT = ("interface", "interface_name", "ifname", "ifdescr", "port", "nic")
_TIME = {
    "s": ("t_s", "unix_s", "time_s", "timestamp_s", "epoch", "epoch_s", "unix"),
    "ms": ("t_ms", "unix_ms", "time_ms", "timestamp_ms", "epoch_ms"),
    "us": ("t_us", "unix_us", "time_us", "timestamp_us"),
    "ns": ("t_ns", "unix_ns", "time_ns", "timestamp_ns"),
    "": ("time", "timestamp", "ts", "t", "datetime", "date", "_time"),
}
_WAYS = {
    "in": r"in|rx|recv|receive|received|input|ingress",
    "out": r"out|tx|send|sent|transmit|transmitted|output|egress",
    "load": r"load|rate|traffic|throughput|utilized|used",
}
_RATE = {
    r"bps|bits_per_second|bits_per_sec|bits_per_s|bits_s": "bps",
    r"kbps": "kbps",
    r"mbps": "Mbps",
    r"gbps": "Gbps",
    r"bytes_per_second|bytes_per_sec|bytes_per_s|bytes_s|octets_per_second|octets_per_s": "B/s",
}
_SPEED = {
    "capacity_bps": "bps",
    "speed_bps": "bps",
    "bandwidth_bps": "bps",
    "bandwidth_kbps": "kbps",
    "capacity_kbps": "kbps",
    "speed_kbps": "kbps",
    "ifhighspeed": "Mbps",
    "speed_mbps": "Mbps",
    "capacity_mbps": "Mbps",
    "bandwidth_mbps": "Mbps",
    "capacity_gbps": "Gbps",
    "speed_gbps": "Gbps",
    "bandwidth_gbps": "Gbps",
    "speed_bytes": "B/s",
    "node_network_speed_bytes": "B/s",
    # With 32 bits, it ends at 4.29 Gbps.
    "ifspeed": "bps",
}
"""Columns of speeds, and their units. The first that a file has counts."""


_WHOLE_NAMES = {
    "bps": ("load", "bps", False),
    "octets": ("load", "octets", True),
    "counter_octets": ("load", "octets", True),
    "counter_bits": ("load", "bits", True),
    **{f"if{hc}{way}octets": (way, "octets", True) for hc in ("", "hc") for way in ("in", "out")},
}
"""Way and unit of readings, and true for counters, by the complete name of a column."""


@dataclass(frozen=True)
class Column:
    """A column, and the unit of its numbers. If the unit of a time is empty, the values decide it."""

    name: str
    unit: str


@dataclass(frozen=True)
class MapColumns:
    """Columns by a map file; names decide the others."""

    time: Column | None = None
    labels: tuple[str, ...] = ()
    values: dict[str, Column] = field(default_factory=dict)
    speed: Column | None = None
    wide: str | None = None
    counter_bits: int | None = None


@dataclass(frozen=True)
class Layout:
    """Meaning of the columns of a file.

    Attributes:
        time: Time of a reading.
        labels: Columns whose texts identify the link or port. Empty in wide files.
        values: Readings by way: `load` of a link, or `in` and `out` of a port. In wide files, by the names of
            links.
        wide: True if each column is a link.
        counter: True if readings are counters.
        width: Bits of a counter, 32 or 64; 0 if unknown.
        speed: Capacity of the link or port, if the file has it.
        unit_named: True if a name or a map says whether values count bits or bytes: not in a wide file whose
            columns are links.
    """

    time: Column
    labels: tuple[str, ...]
    values: dict[str, Column]
    wide: bool
    counter: bool
    width: int
    speed: Column | None
    unit_named: bool = True


def layout(file: str, columns: Sequence[str], map_columns: MapColumns | None = None) -> Layout:
    """Meaning of columns.

    Args:
        file: Name of the file, for errors.
        columns: Names of the columns.
        map_columns: Columns by a map.

    Raises:
        InputError: There is no time, no reading, or no column that identifies the link; or one is repeated.
    """
    map_columns = map_columns or MapColumns()
    plain = {name: re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in columns}
    for name in [
        *map_columns.labels,
        *(
            column.name
            for column in (map_columns.time, map_columns.speed, *map_columns.values.values())
            if column
        ),
    ]:
        if name not in columns:
            raise InputError(file, None, None, name, f"no such column; the columns are: {_few(columns)}")
    time = map_columns.time or _time(file, plain)
    labels = map_columns.labels or _labels(plain)
    speed = map_columns.speed or _first(plain, _SPEED)
    values = map_columns.values or _values(
        file, {name: text for name, text in plain.items() if name != time.name}
    )
    if map_columns.wide or not (labels or values):
        if labels and not map_columns.wide:
            raise InputError.about(file, f"no readings; there are: {_few(columns)}")
        # The unit in a map is that of all links.
        unit = map_columns.wide or "bps"
        links = [name for name in columns if name != time.name and name not in map_columns.labels]
        if not links:
            raise InputError.about(file, "no column but the time; expected one for each link")
        values, labels, speed = {name: Column(name, unit) for name in links}, (), None
        wide = True
    else:
        wide = False
        if not values:
            raise InputError.about(file, f"no readings, such as `load_bps`; there are: {_few(columns)}")
        if not labels:
            raise InputError.about(
                file, f"no `link`, or `device` and `interface`; there are: {_few(columns)}"
            )
    units = {column.unit for column in values.values()}
    counter = units <= set(COUNTERS)
    if not counter and not units <= set(RATES):
        raise InputError.about(file, f"rates and counters in one file: {', '.join(sorted(units))}")
    narrow = any(re.fullmatch(r"if(in|out)octets", plain.get(column.name, "")) for column in values.values())
    width = map_columns.counter_bits or (32 if narrow else 0)
    return Layout(time, labels, values, wide, counter, width, speed, not wide or bool(map_columns.wide))


def _time(file: str, plain: dict[str, str]) -> Column:
    for unit, names in _TIME.items():
        for name in names:
            for column, text in plain.items():
                if name in (column, text):
                    return Column(column, unit)
    raise InputError.about(file, f"no column of times, such as `t_s`; there are: {_few(list(plain))}")


def _labels(plain: dict[str, str]) -> tuple[str, ...]:
    for column, text in plain.items():
        if text in _LINK:
            return (column,)
    return tuple(column for column, text in plain.items() if text in (*_DEVICE, *_PORT))


def _first(plain: dict[str, str], units: dict[str, str]) -> Column | None:
    columns = {text: column for column, text in reversed(plain.items())}
    return next((Column(columns[text], unit) for text, unit in units.items() if text in columns), None)


def _values(file: str, plain: dict[str, str]) -> dict[str, Column]:
    """Columns of readings by way."""
    rates: dict[str, Column] = {}
    counters: dict[str, Column] = {}
    for column, text in plain.items():
        way, unit, counter = _reading(text)
        if not way:
            continue
        result = counters if counter else rates
        if way in result:
            raise InputError(
                file,
                None,
                None,
                column,
                f"`{result[way].name}` reads the same direction; a map file must name the column to use",
            )
        result[way] = Column(column, unit)
    # In a file with both, counters are the source of the rates, for the same ways.
    without_counter = [column for way, column in rates.items() if way not in counters]
    if counters and without_counter:
        counter_name = next(iter(counters.values())).name
        message = f"a rate beside the counter `{counter_name}`, and no counter of the same direction"
        raise InputError(
            file, None, None, without_counter[0].name, f"{message}; a map file must name the column to use"
        )
    columns = counters or rates
    return {"load": columns["load"]} if "load" in columns else columns


def _reading(text: str) -> tuple[str, str, bool]:
    """Way, unit and kind (counter or rate) of a column's plain name."""
    text = text.removesuffix("_total").removeprefix("node_network_")
    if text in _WHOLE_NAMES:
        return _WHOLE_NAMES[text]
    for way, words in _WAYS.items():
        for units, unit in _RATE.items():
            if re.fullmatch(rf"(?:{words})_(?:{units})", text):
                return way, unit, False
        for units, unit in (("bytes|octets", "octets"), ("bits", "bits")):
            # `load` is a rate.
            if way != "load" and re.fullmatch(rf"(?:{words})_(?:{units})|(?:{units})_(?:{words})", text):
                return way, unit, True
    return "", "", False


def check_unit(file: str, line: int | None, where: str, unit: str) -> str:
    """A valid unit of a reading.

    Raises:
        InputError: The unit is unknown.
    """
    if unit not in RATES and unit not in COUNTERS:
        expected = ", ".join([*RATES, *COUNTERS])
        raise InputError(file, line, None, where, f"`{unit}`: expected one of {expected}")
    return unit


def check_time_unit(file: str, line: int | None, where: str, unit: str) -> str:
    """A valid unit of times.

    Raises:
        InputError: The unit is unknown.
    """
    if unit not in TIMES:
        raise InputError(file, line, None, where, f"`{unit}`: expected one of {', '.join(TIMES)}")
    return unit


def _few(columns: Sequence[str]) -> str:
    text = ", ".join(columns[:12])
    return f"{text} and {len(columns) - 12:,} others" if len(columns) > 12 else text
