"""Counters from Prometheus, in cached pieces, so that a second run queries only missing pieces.

An answer with warnings may lack series. It is used and reported, and not cached.

Range selectors (`ifHCInOctets[6h]`) return every reading with the time of its scrape. `query_range`
would repeat a reading at each step until the next reading, for at most five minutes, with the time of the
step. Rates would be wrong by the time between scrape and step, and restarts between steps would be invisible.
`query_range` serves for speeds, which seldom change. If a speed changed between two steps, every reading
between them is queried.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import ibis
import pyarrow
from pyarrow import parquet

from leeward._files import atomic_file, check_folder
from leeward.errors import InputError
from leeward.telemetry.answers import LEAST_MS, label_values, results, seconds
from leeward.telemetry.cache import (
    UNSURE,
    cache_folder,
    cached_pieces,
    clear,
    describe,
    query_folder,
    server_folder,
)
from leeward.telemetry.cells import whole_numbers
from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import Readings, reading
from leeward.telemetry.http import Server, TooMuchError, server
from leeward.telemetry.mapping import Map, nearest
from leeward.telemetry.ports import SERVER
from leeward.telemetry.units import COUNTERS, RATES

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows progress: a name, and a number of steps."""

POINTS = 1_000_000
"""Approximate number of points of one answer."""
LENGTHS_MS = tuple(60_000 * minutes for minutes in (1440, 360, 120, 30, 10))
"""Possible lengths of a piece, the longest first."""
SPEED_STEP_MS = 300_000
"""Step of speeds."""
LATE_MS = 600_000
"""Age below which a piece may be incomplete, and is queried again."""
SETTLED_MS = 600_000
"""Ends of pieces that are old enough to keep are whole multiples of this."""
LABELS = ("instance", "ifIndex", "ifName", "ifDescr", "device", "interface", "port", "name")
"""Labels whose values split a piece, the first that has several."""
SCHEMA = pyarrow.schema(
    [
        ("labels", pyarrow.dictionary(pyarrow.int32(), pyarrow.string())),
        ("t_ms", pyarrow.int64()),
        ("value", pyarrow.float64()),
    ]
)
"""Columns of a piece: labels as JSON, sorted by name."""
_UNIT_NAMES = {"octets": r"(?i)octet|byte", "bits": r"(?i)bits"}
"""Patterns of names of metrics that say their unit."""


def fetch(
    engine: Engine,
    url: str,
    map_file: Map,
    period: tuple[int, int, int],
    http: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    refresh: bool = False,
    discards: Discards | None = None,
) -> Readings:
    """Readings from a Prometheus server.

    Args:
        engine: Engine that reads them.
        url: Address of the server.
        map_file: Metrics to query.
        period: Start, end and current time, in milliseconds since 1970.
        http: A file of credentials and certificates.
        keep: A folder that caches answers of the server; by default in the user's cache.
        progress: Shows the progress.
        refresh: True to query cached pieces again.
        discards: Counts answers that may be incomplete, as `partial`.

    Raises:
        InputError: The server is unreachable or has no such metric, or an argument is invalid.
    """
    prometheus = server(url, http)
    partial: dict[str, int] = {}
    if map_file.metrics is None:
        error = InputError.about("map", "it does not name the counters to query from Prometheus")
        error.add_note("--map examples/telemetry/snmp_exporter.yaml names them in its field `prometheus`")
        raise error
    place = server_folder(cache_folder(keep), prometheus)
    check_folder(place, "keep")
    queries = [(way, query, False) for way, query in map_file.metrics.queries.items()]
    if map_file.metrics.speed is not None:
        queries.append(("speed", map_file.metrics.speed, True))
    begin, last, now = period
    settled = now - LATE_MS
    settled -= settled % SETTLED_MS
    jobs = []
    for way, query, steps in queries:
        # A missing speed is taken from the cluster, and counted.
        if not _exists(prometheus, query, begin, last) and not steps:
            raise _missing_metric(prometheus, query, begin, last)
        folder = query_folder(place, query, steps)
        if refresh:
            clear(folder, begin, last)
        for file in folder.glob(f"{UNSURE}*.parquet"):
            file.unlink()
        pieces = _missing_pieces(prometheus, query, steps, folder, (begin, settled, last))
        jobs.append((way, query, steps, folder, pieces))
    total = sum(len(pieces) for *_, pieces in jobs)
    show = (
        nullcontext(lambda _: None) if progress is None or not total else progress(f"querying {url}", total)
    )
    with show as advance:
        for _, query, steps, folder, pieces in jobs:
            describe(folder, prometheus.url, query)
            for start, end in pieces:
                path = folder / f"{start}-{end}.parquet"
                warnings = _store(path, prometheus, query, steps, start, end)
                # A piece that may be incomplete is cached only until the next run.
                if end > settled or warnings:
                    path.rename(folder / f"{UNSURE}{start}-{end}.parquet")
                for warning in warnings:
                    partial[warning] = partial.get(warning, 0) + 1
                advance(1)
    for warning, number in partial.items():
        if discards is not None:
            discards.count("partial", number, f"{prometheus.url}: {warning}")
    tables = {way: _table(engine, folder) for way, _, _, folder, _ in jobs}
    return _readings(engine, prometheus, map_file, tables)


def join(parts: Sequence[Readings]) -> Readings:
    """Readings of several servers. Each series has the address of its server as the label `SERVER`."""
    tables = []
    for part in parts:
        beginning = ibis.literal(json.dumps({SERVER: part.name}, ensure_ascii=False)[:-1])
        # Keys are labels as JSON.
        rest = (part.table.key == "{}").ifelse("}", ibis.literal(", ") + part.table.key.substr(1))
        tables.append(part.table.mutate(key=beginning + rest))
    return replace(parts[0], table=ibis.union(*tables), name=", ".join(part.name for part in parts))


def _readings(engine: Engine, prometheus: Server, map_file: Map, tables: dict[str, ibis.Table]) -> Readings:
    """Pieces as readings, each with the speed of its port at the time."""
    metrics = map_file.metrics
    assert metrics is not None
    ways = [
        table.select(
            key=table.labels,
            **({"way": ibis.literal(way)} if len(metrics.queries) > 1 else {}),
            t_ms=table.t_ms,
            value=whole_numbers(table.value),
        )
        for way, table in tables.items()
        if way != "speed"
    ]
    readings = ibis.union(*ways) if len(ways) > 1 else ways[0]
    if "speed" in tables:
        speeds = tables["speed"]
        speed = speeds.value * RATES[metrics.speed_unit]
        window = {"group_by": speeds.labels, "order_by": speeds.t_ms}
        before = speeds.value.lag().over(**window)
        with_before = speeds.mutate(speed=speed, before=before)
        changes = with_before.filter(with_before.before.isnull() | (with_before.before != with_before.value))
        window = {"group_by": changes.labels, "order_by": changes.t_ms}
        beginning = changes.t_ms.lag().over(**window).isnull()
        spans = changes.select(
            labels=changes.labels,
            speed=changes.speed,
            # The first speed of a port counts for the time before it too.
            since=beginning.ifelse(-(2**62), changes.t_ms),
            until=changes.t_ms.lead().over(**window).fill_null(2**62),
        )
        with reading(prometheus.url):
            spans = engine.keep(spans)
        within = [
            readings.key == spans.labels,
            readings.t_ms >= spans.since,
            readings.t_ms < spans.until,
        ]
        readings = readings.left_join(spans, within).select(*readings.columns, "speed")
    else:
        readings = readings.mutate(speed=ibis.null("float64"))
    return Readings(
        readings,
        tuple(metrics.queries),
        ("labels",),
        True,
        metrics.width,
        COUNTERS[metrics.unit],
        "speed" in tables,
        prometheus.url,
        all(re.search(_UNIT_NAMES[metrics.unit], query) for query in metrics.queries.values()),
    )


def _table(engine: Engine, folder: Path) -> ibis.Table:
    files = sorted(file for file in folder.glob("*.parquet") if not file.name.startswith("."))
    if not files:
        return engine.table(SCHEMA.empty_table().cast(_plain()))
    table = engine.parquet(files)
    return table.select(labels=table.labels.cast("string"), t_ms=table.t_ms, value=table.value)


def _plain() -> pyarrow.Schema:
    return pyarrow.schema(
        [("labels", pyarrow.string()), ("t_ms", pyarrow.int64()), ("value", pyarrow.float64())]
    )


def _exists(prometheus: Server, query: str, begin: int, last: int) -> bool:
    """True if a server has any series of a selector."""
    return any(label_values(prometheus, "__name__", begin, last, query))


def _missing_metric(prometheus: Server, query: str, begin: int, last: int) -> InputError:
    """Lists the metrics that a server has instead."""
    names = set(label_values(prometheus, "__name__", begin, last))
    metric = re.split(r"[{\s]", query)[0]
    if metric in names:
        message = f"`{query}`: it has `{metric}`, but not with these labels in these times"
    elif not names:
        message = f"`{query}`: it has no metric at all in these times"
    else:
        words = [name for name in names if re.search("octets|bytes|receive|transmit", name, re.IGNORECASE)]
        near = [*nearest(metric, names, 5), *sorted(words)]
        examples = list(dict.fromkeys(near or sorted(names)))[:8]
        message = f"`{query}`: there is no such metric among {len(names):,}; there are: {', '.join(examples)}"
    error = InputError.about(prometheus.url, message)
    error.add_note("the field `prometheus` of a map file sets the query")
    return error


def _missing_pieces(
    prometheus: Server, query: str, steps: bool, folder: Path, period: tuple[int, int, int]
) -> list[tuple[int, int]]:
    """Pieces of time that are not cached yet.

    Args:
        prometheus: The server.
        query: The query.
        steps: True to query in steps.
        folder: Folder of cached answers.
        period: Start, end of cacheable answers, and end of wanted ones.
    """
    begin, settled, last = period
    gaps, covered_to = [], begin
    for start, end in sorted(cached_pieces(folder)):
        if start > covered_to:
            gaps.append((covered_to, min(start, last)))
        covered_to = max(covered_to, end)
        if covered_to >= last:
            break
    if covered_to < last:
        gaps.append((covered_to, last))
    length = _length(prometheus, query, steps, begin, last) if gaps else LENGTHS_MS[0]
    pieces = []
    for gap_start, gap_end in gaps:
        start = gap_start
        while start < gap_end:
            # Whole multiples, so that runs for other times use the same pieces. The part too young to cache
            # is a piece of its own, so that the next run queries no more than that.
            end = min(gap_end, start - start % length + length)
            end = settled if start < settled < end else end
            if end > start:
                pieces.append((start, end))
            start = end
    return pieces


def _length(prometheus: Server, query: str, steps: bool, begin: int, last: int) -> int:
    """Length of pieces with answers of about `POINTS`."""
    if steps:
        query_text, most = f"count({query}) * {3_600_000 // SPEED_STEP_MS}", 0.0
    else:
        query_text, most = f"sum(count_over_time({query}[1h]))", 0.0
    for time_ms in (last, (begin + last) // 2):
        try:
            answer = prometheus.ask("query", query=query_text, time=seconds(time_ms))
            counts = results(prometheus, answer.data, "vector")
        except TooMuchError:
            return LENGTHS_MS[-1]
        for result in counts:
            try:
                most = max(most, float(result["value"][1]))
            except (KeyError, IndexError, TypeError, ValueError):
                raise prometheus.unknown_form(str(result)[:80]) from None
    return next((length for length in LENGTHS_MS if most * length <= POINTS * 3.6e6), LENGTHS_MS[-1])


def _store(path: Path, prometheus: Server, query: str, steps: bool, start: int, end: int) -> dict[str, None]:
    """Writes a piece, completely or not at all; returns the warnings of its answers, each once."""
    warnings: dict[str, None] = {}
    with atomic_file(path) as temporary, parquet.ParquetWriter(temporary, SCHEMA) as writer:
        for table, texts in _pieces(prometheus, query, steps, start, end):
            writer.write_table(table)
            warnings.update(dict.fromkeys(texts))
    return warnings


def _pieces(
    prometheus: Server, query: str, steps: bool, start: int, end: int
) -> Iterator[tuple[pyarrow.Table, tuple[str, ...]]]:
    """Readings after `start` up to `end` with warnings, split until no answer is too large."""
    try:
        if steps:
            parameters = {
                "start": seconds(start + 1),
                # One step beyond, to see changes after the last.
                "end": seconds(end + SPEED_STEP_MS),
                "step": f"{SPEED_STEP_MS / 1000:g}",
            }
            answers = [prometheus.ask("query_range", query=query, **parameters)]
            for time_ms in _changes(prometheus, results(prometheus, answers[0].data, "matrix")):
                reach = f"{query}[{SPEED_STEP_MS}ms]"
                answers.append(prometheus.ask("query", query=reach, time=seconds(time_ms)))
        else:
            answers = [prometheus.ask("query", query=f"{query}[{end - start}ms]", time=seconds(end))]
    except TooMuchError:
        if end - start > LEAST_MS:
            middle = (start + end) // 2
            yield from _pieces(prometheus, query, steps, start, middle)
            yield from _pieces(prometheus, query, steps, middle, end)
            return
        for part in _parts(prometheus, query, start, end):
            yield from _pieces(prometheus, part, steps, start, end)
        return
    for answer in answers:
        table = _as_table(prometheus, results(prometheus, answer.data, "matrix"), start, end)
        yield table, answer.warnings


def _changes(prometheus: Server, results: list[dict[str, Any]]) -> list[int]:
    """Times of steps at which any series differs from the step before."""
    changes: set[int] = set()
    for result in results:
        try:
            for (_, before), (time, value) in pairwise(result["values"]):
                if value != before:
                    changes.add(round(1000 * float(time)))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise prometheus.unknown_form(str(result)[:80]) from None
    return sorted(changes)


def _parts(prometheus: Server, query: str, start: int, end: int) -> Iterator[str]:
    """A selector in two halves by a label."""
    for label in LABELS:
        values = sorted(set(label_values(prometheus, label, start, end, query)))
        if len(values) > 1:
            break
    else:
        message = f"`{query}`: five minutes of it are too much for one answer"
        raise InputError.about(prometheus.url, message)
    half = len(values) // 2
    first = f"{label}=~{json.dumps('|'.join(re.escape(value) for value in values[:half]))}"
    # The second half includes series without the label.
    for matcher in (first, first.replace("=~", "!~", 1)):
        text = query.strip()
        if text.endswith("}"):
            inside = text[:-1].rstrip().removesuffix(",")
            yield f"{inside}{'' if inside.endswith('{') else ','}{matcher}}}"
        else:
            yield f"{text}{{{matcher}}}"


def _as_table(prometheus: Server, results: list[dict[str, Any]], start: int, end: int) -> pyarrow.Table:
    """Readings of an answer after `start` up to `end`."""
    parts = []
    for result in results:
        try:
            labels = {str(name): str(text) for name, text in result["metric"].items() if name != "__name__"}
            times = [round(float(time) * 1000) for time, _ in result["values"]]
            values = [float(value) for _, value in result["values"]]
            if any(abs(time) > 10**15 for time in times):
                raise ValueError("an invalid time")
            within = [number for number, time in enumerate(times) if start < time <= end]
            labels_text = json.dumps(labels, sort_keys=True, ensure_ascii=False)
            columns = {
                "labels": pyarrow.DictionaryArray.from_arrays(
                    pyarrow.array([0] * len(within), pyarrow.int32()), pyarrow.array([labels_text])
                ),
                "t_ms": pyarrow.array([times[number] for number in within], pyarrow.int64()),
                "value": pyarrow.array([values[number] for number in within], pyarrow.float64()),
            }
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, pyarrow.ArrowException):
            raise prometheus.unknown_form(str(result)[:80]) from None
        parts.append(pyarrow.table(columns, SCHEMA))
    return pyarrow.concat_tables(parts).unify_dictionaries() if parts else SCHEMA.empty_table()
