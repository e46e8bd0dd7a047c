"""Series: readings of one port in one direction. Unusable readings are counted, with example links."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ibis
import numpy
import pyarrow

from leeward.errors import InputError
from leeward.telemetry.cells import finite
from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import SEPARATOR, Readings, reading
from leeward.telemetry.mapping import Map, nearest
from leeward.telemetry.ports import FOREVER, SERVER, Run, ports
from leeward.telemetry.samples import MOST_CAPACITY

LATE_MS = 60_000
"""Greatest lead of a device's clock."""
REASONS = ("", "no-time", "outside", "future", "not-a-number", "negative", "too-fast", "past")
"""Reasons of unusable readings, by number; readings outside of the period do not count as lost."""
EARLIEST_MS = 631_152_000_000
"""Beginning of 1990: an earlier time is of a clock that was not set."""
MOST_CADENCE_MS = 3_600_000
"""Greatest time between readings."""
MOST_RATE = 1e15
"""Bits per second beyond any link."""
SPEED_TOP = 2.0**32 - 1
"""Value of `ifSpeed` for every speed that its 32 bits cannot hold: the speed is unknown."""
_MOST_PROBES = 8
"""Number of series whose spacings are examined."""
_HINT = "a map file gives the links of labels: --map FILE"


@dataclass(frozen=True)
class Period:
    """Valid times, in milliseconds since 1970.

    Attributes:
        since_ms: Start.
        until_ms: End, included.
        now_ms: Current time.
    """

    since_ms: int
    until_ms: int
    now_ms: int


@dataclass(frozen=True)
class Series:
    """Valid readings, and their links.

    Attributes:
        table: `series`, `link`, `share_bps` and `members` as in `known`; `t_ms`, `value`, `speed`.
        times: `t_ms` of these readings, and of series that are not links, by the columns `by`.
        by: `key`, or `key` and `way`.
        known: For each series its `key` and `way`, `series` and `link` (int32), `share_bps` (int64: the
            cluster's capacity, divided by the number of ports of the link), `members` (int32: that number),
            and `since_ms` (int64: readings up to this time do not count).
        cadence_ms: The most frequent spacing.
    """

    table: ibis.Table
    times: ibis.Table
    by: list[str]
    known: pyarrow.Table
    cadence_ms: int

    @property
    def ports(self) -> dict[int, int]:
        """Number of ports of each link with several."""
        links = zip(self.known["link"].to_pylist(), self.known["members"].to_pylist(), strict=True)
        return {link: members for link, members in links if members > 1}

    @property
    def has_bundles(self) -> bool:
        """True if any link has several ports."""
        return bool(self.known.num_rows) and self.known["members"].to_numpy().max() > 1


def series(
    engine: Engine,
    readings: Readings,
    links: pyarrow.Table,
    map_file: Map,
    period: Period,
    cadence_ms: int | None,
    discards: Discards,
    alone: bool = True,
) -> Series:
    """Readings of the links of a cluster.

    Args:
        engine: Engine of the tables.
        readings: The readings.
        links: Links of the cluster.
        map_file: Links of labels.
        period: Valid times.
        cadence_ms: Usual spacing, if known.
        discards: Counts of readings left out.
        alone: True if there are no other readings. Otherwise all of these may be left out.

    Raises:
        InputError: No reading is of a link.
    """
    if readings.speeds:
        # An invalid speed becomes null: as the greatest number, it would hide one out of range.
        speed = finite(readings.table.speed)
        readings = replace(readings, table=readings.table.mutate(speed=speed.nullif(SPEED_TOP)))
    rows, clean = _judge(engine, readings, period)
    if not rows and alone:
        raise InputError.about(readings.name, "no readings")
    for row in rows:
        most = row["most"]
        if most is not None and most > MOST_CAPACITY:
            speed = f"a speed of {most:g} bps; expected at most {MOST_CAPACITY:g}: is the unit right?"
            message = f"{_series_text(readings, row)}: {speed}"
            raise InputError.about(readings.name, message)
        reason = REASONS[row["reason"]]
        if reason and reason != "outside":
            discards.count(reason, row["number"], _series_text(readings, row))
    good = [row for row in rows if row["reason"] == 0]
    if not good and alone:
        outside = sum(row["number"] for row in rows if REASONS[row["reason"]] == "outside")
        raise _no_reading_error(readings, discards, outside)
    runs = _link_series(readings, good, links, map_file, discards, alone)
    numbers = dict(zip(links["name"].to_pylist(), links["link"].to_pylist(), strict=True))
    for row in rows:
        reason = REASONS[row["reason"]]
        name = map_file.link(_plain_labels(readings, row["key"]), row["way"]) if row["reason"] else None
        if name in numbers and reason != "outside":
            discards.lose(numbers[name], reason, row["number"])
    if cadence_ms is None:
        cadence_ms = cadence_of(engine, clean, readings, [run.key for run in runs])
    if cadence_ms is None:
        error = InputError.about(
            readings.name,
            "no series has two readings, so the time between readings is unknown",
        )
        error.add_note("set it: --cadence 30s")
        raise error
    if cadence_ms > MOST_CADENCE_MS:
        message = f"readings are {cadence_ms / 3.6e6:.3g} h apart; expected at most 1 h"
        raise InputError.about(readings.name, message)
    counted = ports(
        runs, engine, clean, readings.by, readings.counter, cadence_ms, map_file.replica_labels, discards
    )
    series_links = _shares(counted, links)
    joined = clean.join(engine.table(series_links), readings.by)
    if any(run.since_ms > -FOREVER for run, _ in counted):
        joined = joined.filter(joined.t_ms > joined.since_ms)
    table = joined.select("series", "link", "share_bps", "members", "t_ms", "value", "speed")
    return Series(table, clean.select(*readings.by, "t_ms"), readings.by, series_links, cadence_ms)


def _judge(engine: Engine, readings: Readings, period: Period) -> tuple[list[dict[str, Any]], ibis.Table]:
    """Number of valid and invalid readings of each series, and a table of the valid ones."""
    table = readings.table
    summary = table.group_by(readings.by).agg(
        number=table.count(),
        times=table.t_ms.count(),
        values=table.value.count(),
        first=table.t_ms.min(),
        last=table.t_ms.max(),
        low=table.value.min(),
        high=table.value.max(),
        **({"most": table.speed.max()} if readings.speeds else {}),
    )
    first = max(period.since_ms + 1, EARLIEST_MS)
    last = min(period.until_ms, period.now_ms + LATE_MS)
    highest = 2**63 - 1 if readings.counter else MOST_RATE
    with reading(readings.name):
        rows = engine.arrow(summary.order_by(readings.by)).to_pylist()
    # Usually all readings are valid, which these sums show. An invalid number counts as the highest.
    if all(
        row["number"] == row["times"] == row["values"]
        and first <= row["first"] <= row["last"] <= last
        and 0 <= row["low"] <= row["high"] <= highest
        for row in rows
    ):
        return [_with_way(readings, row) | {"reason": 0} for row in rows], table
    with_reason = table.mutate(reason=_reason(readings, period))
    grouped = with_reason.group_by([*readings.by, "reason"]).agg(
        number=with_reason.count(),
        most=with_reason.speed.max(),
        first=with_reason.t_ms.min(),
        last=with_reason.t_ms.max(),
    )
    with reading(readings.name):
        rows = engine.arrow(grouped.order_by([*readings.by, "reason"])).to_pylist()
    return [_with_way(readings, row) for row in rows], with_reason.filter(with_reason.reason == 0)


def _with_way(readings: Readings, row: dict[str, Any]) -> dict[str, Any]:
    """A row of a summary with the way, if there is only one."""
    return {"way": readings.ways[0], "most": None} | row


def _reason(readings: Readings, period: Period) -> Any:
    """Reason of an invalid reading, as its index into `REASONS`."""
    table = readings.table
    t, value = table.t_ms, table.value
    none = value.isnull() if readings.counter else value.isnull() | value.isnan() | value.isinf()
    cases = [
        (t.isnull(), 1),
        (t > period.now_ms + LATE_MS, 3),
        ((t <= period.since_ms) | (t > period.until_ms), 2),
        (t < EARLIEST_MS, 7),
        (none, 4),
        (value < 0, 5),
    ]
    if not readings.counter:
        cases.append((value > MOST_RATE, 6))
    return ibis.cases(*cases, else_=0).cast("int8")


def _labels(readings: Readings, key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if readings.labels == ("labels",):
        # The form of cached labels of Prometheus.
        import json

        return {name: str(text) for name, text in json.loads(key).items()}
    return dict(zip(readings.labels, key.split(SEPARATOR), strict=False))


def _plain_labels(readings: Readings, key: str | None) -> dict[str, str]:
    """Labels of a port, without that of the server."""
    return {name: text for name, text in _labels(readings, key).items() if name != SERVER}


def _series_text(readings: Readings, row: dict[str, Any]) -> str:
    labels = _labels(readings, row["key"])
    text = ", ".join(f"{name}={value}" for name, value in labels.items()) or "no name"
    return text if row["way"] == "load" else f"{text}, {row['way']}"


def _link_series(
    readings: Readings,
    summaries: list[dict[str, Any]],
    links: pyarrow.Table,
    map_file: Map,
    discards: Discards,
    alone: bool,
) -> list[Run]:
    """Series of links.

    Raises:
        InputError: No series is a link, and there are no others.
    """
    numbers = dict(zip(links["name"].to_pylist(), links["link"].to_pylist(), strict=True))
    runs: list[Run] = []
    unmatched: list[str] = []
    ignored: list[str] = []
    for row in summaries:
        labels = _labels(readings, row["key"])
        name = map_file.link(_plain_labels(readings, row["key"]), row["way"])
        if name in numbers:
            text = _series_text(readings, row)
            times = row["number"], row["first"], row["last"]
            runs.append(Run(row["key"], row["way"], numbers[name], labels, *times, text))
            continue
        if name == "":
            ignored.append(_series_text(readings, row))
            discards.count("ignored", row["number"], ignored[-1])
            continue
        text_of_labels = name if name is not None else ":".join(labels.values())
        description = (
            _series_text(readings, row) if name is None else f"{_series_text(readings, row)}: `{name}`"
        )
        # The search for similar names is slow among many.
        if len(unmatched) < 3:
            near = map_file.near(labels) if name is None else ""
            names = [] if near else nearest(text_of_labels, numbers)
            near = near or (f"nearest: {', '.join(names)}" if names else "")
            unmatched.append(f"{description}; {near}" if near else description)
        discards.count("no-link", row["number"], *unmatched[-1:])
    if not runs and alone:
        text = "; ".join(unmatched or ignored[:3])
        message = f"none of {len(summaries):,} series is a link of the cluster: {text}"
        error = InputError.about(readings.name, message)
        if not unmatched:
            ways = ", ".join(f"`{way}`" for way in readings.ways)
            error.add_note(f"{map_file.name}: `ignore` has them, or their rule has no link for {ways}")
        else:
            error.add_note(
                _HINT if not map_file.rules else f"{map_file.name}: no rule in `links` gives these a link"
            )
        raise error
    return runs


def links_of_keys(
    readings: Readings, keys: list[dict[str, Any]], links: pyarrow.Table, map_file: Map
) -> pyarrow.Table | None:
    """Links of these keys, as `Series.known`; None if none is a link."""
    numbers = dict(zip(links["name"].to_pylist(), links["link"].to_pylist(), strict=True))
    whole = [_with_way(readings, row) for row in keys]
    link_names = [
        (row["key"], row["way"], map_file.link(_labels(readings, row["key"]), row["way"])) for row in whole
    ]
    runs = [Run(key, way, numbers[name], {}, 0, 0, 0, "") for key, way, name in link_names if name in numbers]
    return _shares([(run, 1) for run in runs], links) if runs else None


def _shares(runs: list[tuple[Run, int]], links: pyarrow.Table) -> pyarrow.Table:
    """Series and their numbers of ports as the table `Series.known`."""
    capacities = dict(zip(links["link"].to_pylist(), links["capacity_bps"].to_pylist(), strict=True))
    columns = {
        "key": (pyarrow.string(), [run.key for run, _ in runs]),
        "way": (pyarrow.string(), [run.way for run, _ in runs]),
        "series": (pyarrow.int32(), range(len(runs))),
        "link": (pyarrow.int32(), [run.link for run, _ in runs]),
        "share_bps": (pyarrow.int64(), [max(1, capacities[run.link] // number) for run, number in runs]),
        "members": (pyarrow.int32(), [number for _, number in runs]),
        "since_ms": (pyarrow.int64(), [run.since_ms for run, _ in runs]),
    }
    return pyarrow.table({name: pyarrow.array(values, kind) for name, (kind, values) in columns.items()})


def cadence_of(engine: Engine, clean: ibis.Table, readings: Readings, keys: Sequence[str]) -> int | None:
    """Most frequent spacing of readings of some series; None if no series has two readings.

    Args:
        engine: Engine of the tables.
        clean: Valid readings.
        readings: All readings.
        keys: Keys of the series of links.
    """
    step = max(1, len(keys) // _MOST_PROBES)
    probes = clean.filter(clean.key.isin(keys[::step][:_MOST_PROBES])).select(*readings.by, "t_ms")
    probes = probes.filter(probes.t_ms.notnull())
    before = probes.t_ms.lag().over(group_by=readings.by, order_by=probes.t_ms)
    spacings = probes.mutate(spacing=probes.t_ms - before)
    spacings = spacings.filter(spacings.spacing > 0)
    counts = spacings.group_by("spacing").agg(number=spacings.count()).order_by("spacing")
    with reading(readings.name):
        rows = engine.arrow(counts)
    if not rows.num_rows:
        return None
    return most_frequent(rows["spacing"].to_pylist(), rows["number"].to_pylist())


def most_frequent(spacings: Iterable[int], counts: Iterable[int]) -> int:
    """Most frequent spacing, of readings by inexact clocks.

    Spacings within a twentieth of one count as equal to it; the result is the median of the most frequent
    spacings.

    Args:
        spacings: Distinct spacings, in order, above 0.
        counts: Frequency of each.
    """
    values = numpy.fromiter(spacings, numpy.int64)
    numbers = numpy.fromiter(counts, numpy.int64)
    sums = numpy.concatenate([[0], numpy.cumsum(numbers)])
    low = numpy.searchsorted(values, values * 0.95, "left")
    high = numpy.searchsorted(values, values * 1.05, "right")
    best = int(numpy.argmax(sums[high] - sums[low]))
    middle = (sums[low[best]] + sums[high[best]] + 1) // 2
    return int(values[numpy.searchsorted(sums[1:], middle, "left")])


def _no_reading_error(readings: Readings, discards: Discards, outside: int) -> InputError:
    if outside:
        return InputError.about(
            readings.name, f"all {outside:,} readings are outside of the requested period"
        )
    text = ", ".join(f"{reason}: {number:,}" for reason, number, _ in discards)
    return InputError.about(readings.name, f"no reading can be used ({text})")
