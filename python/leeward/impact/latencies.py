"""Latencies of operations: read from files, checked, and written once as a table of valid rows.

Files are read in batches and may be larger than memory. Valid rows go to a Parquet file, so that both engines
read the same whole numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from pyarrow import compute, parquet

from leeward.errors import InputError
from leeward.impact import columns, sources
from leeward.impact.bins import MOST, Whole, bins
from leeward.impact.columns import Rows
from leeward.impact.latency_files import TIMES, FileColumns
from leeward.impact.operations import ENDS, SIDES, NoLinksError, Places, Rules
from leeward.impact.settings import MILLION
from leeward.telemetry import Discards

LONGEST_S = 86_400
"""Greatest length of an operation, a day; a longer one would span thousands of intervals."""
TOO_FAST = 1.05
"""Multiple of the capacity of its links above which the unit of an operation's bytes must be wrong."""
MOST_COUNT = 1_000_000
"""Greatest number of operations in a row."""
MOST_SUM_US = 10**14
"""Greatest sum of the latencies of a row in microseconds, so that sums of many rows are whole numbers."""
MOST_S = 1e11
"""Greatest plausible time in seconds since 1970. Times of this century in milliseconds are greater."""
SCHEMA = pyarrow.schema(
    [
        ("route", pyarrow.int32()),
        ("first_ms", pyarrow.int64()),
        ("last_ms", pyarrow.int64()),
        ("bin", pyarrow.int32()),
        ("latency_us", pyarrow.int64()),
        ("network_bin", pyarrow.int32()),
        ("network_us", pyarrow.int64()),
        ("operation", pyarrow.string()),
        ("medium", pyarrow.string()),
        ("class", pyarrow.string()),
        ("query", pyarrow.string()),
        ("size_bytes", pyarrow.int64()),
        ("compute_ppm", pyarrow.int64()),
        ("weight", pyarrow.int64()),
    ]
)


@dataclass
class Latencies:
    """Latencies in a Parquet file.

    Attributes:
        file: The file, with a row as in `SCHEMA` for each valid latency: `route` (index in `routes`),
            `first_ms` and `last_ms` (the first and last millisecond of the operation), `bin` (see
            `leeward.impact.bins`) and `latency_us`, `network_bin` and `network_us` (the part of the latency
            on the network), `operation`, `medium`, `class`, `query`, `size_bytes`, `compute_ppm`, `weight`
            (number of operations with these values). Optional values are null if unknown.
        routes: Distinct sets of links that operations cross.
        rows: Number of operations in the files.
        valid_rows: Number of valid operations.
        optional_columns: Optional columns that the files have; `network` for a part on the network.
        first_ms: First millisecond of all operations.
        last_ms: Last millisecond of all operations.
        discards: Operations left out, by reason.
        too_fast: Number of kept operations with more bytes than their links can have carried in the time.
        above_buckets: Number of operations above the last bound of their histogram, which count with that
            bound.
    """

    file: Path
    routes: list[tuple[int, ...]] = field(default_factory=list)
    rows: int = 0
    valid_rows: int = 0
    optional_columns: set[str] = field(default_factory=set)
    first_ms: int = 2**63 - 1
    last_ms: int = -(2**63)
    discards: Discards = field(default_factory=Discards)
    too_fast: int = 0
    above_buckets: int = 0


def check(paths: Sequence[str | Path]) -> None:
    """Checks that files exist and have the required columns, without reading their rows.

    Raises:
        InputError: A file is missing, or lacks a column.
    """
    for file in sources.files_of(paths):
        if sources.form(file) is None:
            FileColumns.of(file)


def read(
    paths: Sequence[str | Path],
    places: Places,
    rules: Rules,
    folder: Path,
    names: Mapping[str, str] | None = None,
) -> Latencies:
    """Reads latencies from files, and writes the valid ones to a Parquet file.

    Args:
        paths: Files of latencies, spans or histograms, or folders of them.
        places: Hosts, racks and links of the cluster.
        rules: Links that each kind of operation crosses.
        folder: Folder of the Parquet file.
        names: Kinds of operations by the names of spans and histograms.

    Raises:
        InputError: A file cannot be read or lacks a column, an operation has no rule, or no latency is valid.
    """
    result = Latencies(folder / "latencies.parquet")
    reader = _Reader(result, places, rules)
    with parquet.ParquetWriter(result.file, SCHEMA) as writer:
        made = sources.tables(paths, places, rules, names or {}, folder, result.discards)
        result.rows += result.discards.total
        result.above_buckets = made.above
        for shown, table in made.files:
            source = FileColumns.of(table, shown)
            result.optional_columns |= source.optional_columns
            first = 0
            for batch in source.batches():
                writer.write_table(reader.clean(source, batch, first))
                first += batch.num_rows
    if not result.valid_rows:
        name = ", ".join(str(path) for path in paths)
        if not result.rows:
            raise InputError.about(name, "no latencies: the file has a header and no row")
        reasons = ", ".join(f"{count:,} {reason}" for reason, count, _ in result.discards)
        error = InputError.about(name, f"none of {result.rows:,} latencies is valid: {reasons}")
        for reason, _, examples in list(result.discards)[:3]:
            error.add_note(f"{reason}: {'; '.join(examples)}")
        raise error
    return result


class _Codes:
    """Codes from 0 for distinct values that are parsed from texts."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._code_of: dict[Any, int] = {}

    def encode(self, texts: Any, parse: Callable[[str], Any]) -> Any:
        """Code of each text in a column; a missing text counts as an empty one."""
        encoded = compute.fill_null(texts, "").dictionary_encode()
        codes = [self._code(parse(text)) for text in encoded.dictionary.to_pylist()]
        return numpy.array(codes, dtype=numpy.int64)[encoded.indices.to_numpy()]

    def _code(self, value: Any) -> int:
        if value not in self._code_of:
            self._code_of[value] = len(self.values)
            self.values.append(value)
        return self._code_of[value]


class _Reader:
    """Cleans batches of rows. Caches the route for each operation and its ends."""

    def __init__(self, result: Latencies, places: Places, rules: Rules) -> None:
        self._result, self._places, self._rules = result, places, rules
        self._index_of: dict[tuple[int, ...], int] = {}
        self._cache: dict[tuple[int, ...], int | NoLinksError] = {}
        self._operations, self._names = _Codes(), _Codes()
        parts = (part for rule in rules.values() for part in rule)
        self._by_host = any(SIDES[part.side][0] == "host" for part in parts)

    def clean(self, source: FileColumns, batch: Any, first: int) -> Any:
        """Valid rows of a batch, as in `SCHEMA`. Counts the others among the discards.

        Args:
            source: File of the batch.
            batch: Rows with the columns of the file.
            first: Number of the batch's first row in the file.
        """
        result, rows = self._result, batch.num_rows
        valid = Rows(source.file, first, rows, result.discards)
        column = {name: batch.column(index) for index, name in enumerate(source.columns)}
        self._weigh(valid, column)
        result.rows += int(valid.weights.sum())
        _check_unit(source, column[source.time])
        end = columns.micros(column[source.time], TIMES[source.time])
        valid.drop("no-time", end.missing)
        valid.drop("not-a-number", end.invalid, source.time, end.texts)
        latency_ns = self._span(valid, column, source.latency, "no-latency")
        valid.drop("zero", latency_ns == 0, source.latency[0], column[source.latency[0]])
        is_long = latency_ns // 1000 > MOST_SUM_US // valid.weights
        valid.drop("too-long", is_long, source.latency[0], column[source.latency[0]])
        end_us = end.values.astype(numpy.int64)
        first_ms = (end_us * 1000 - latency_ns) // 1_000_000
        last_ms = numpy.maximum(-(-end_us // 1000) - 1, first_ms)
        network = [None] * rows if source.network is None else column[source.network[0]]
        network_ns = numpy.zeros(rows, dtype=numpy.int64)
        stated = numpy.zeros(rows, dtype=bool)
        if source.network is not None:
            stated = column[source.network[0]].is_valid().to_numpy(zero_copy_only=False)
            network_ns = self._span(valid, column, source.network, None)
            valid.drop("network-above-total", network_ns > latency_ns, source.network[0], network)
        text = {
            name: columns.texts(column[name]) if name in column else pyarrow.nulls(rows, pyarrow.string())
            for name in ("operation", "medium", "class", "query")
        }
        valid.drop("no-operation", text["operation"].is_null().to_numpy(zero_copy_only=False))
        size = self._optional(valid, column, "size_bytes", 1.0, float(MOST))
        ratio = self._optional(valid, column, "compute_ratio", float(MILLION), float(MILLION))
        routes = self._routes(source, valid, text["operation"], column, first)
        self._count_fast(valid, routes, size, latency_ns)
        indices = numpy.flatnonzero(valid.rows)
        if len(indices):
            result.valid_rows += int(valid.weights[indices].sum())
            result.first_ms = min(result.first_ms, int(first_ms[indices].min()))
            result.last_ms = max(result.last_ms, int(last_ms[indices].max()))
        # A part on the network that is too short for the clock is 0, and bins begin at 1 ns.
        network_bin = pyarrow.array(bins(numpy.maximum(network_ns, 1)), mask=~stated)
        arrays = {
            "route": routes,
            "first_ms": first_ms,
            "last_ms": last_ms,
            "bin": bins(numpy.maximum(latency_ns, 1)),
            "latency_us": latency_ns // 1000,
            "network_bin": network_bin,
            "network_us": pyarrow.array(network_ns // 1000, mask=~stated),
            **text,
            "size_bytes": size,
            "compute_ppm": ratio,
            "weight": valid.weights,
        }
        table = pyarrow.table(
            [compute.cast(pyarrow.array(arrays[name]), SCHEMA.field(name).type) for name in SCHEMA.names],
            schema=SCHEMA,
        )
        return table.take(pyarrow.array(indices))

    def _weigh(self, valid: Rows, column: Mapping[str, Any]) -> None:
        """Takes the number of operations in each row from the column `count`; by default one."""
        if "count" not in column:
            return
        numbers = columns.numbers(column["count"])
        valid.numbers("count", numbers, None)
        counts = numpy.where(numbers.missing, 1.0, numbers.values)
        whole = (counts >= 1) & (counts <= MOST_COUNT) & (counts == numpy.floor(counts))
        valid.drop("out-of-range", ~whole, "count", numbers.texts)
        valid.weights = numpy.where(whole & valid.rows, counts, 1.0).astype(numpy.int64)

    def _span(
        self, valid: Rows, column: Mapping[str, Any], name_and_unit: tuple[str, float], missing: str | None
    ) -> Any:
        """A column of time spans in whole nanoseconds."""
        name, unit = name_and_unit
        numbers = columns.numbers(column[name])
        valid.numbers(name, numbers, missing)
        valid.drop("negative", numbers.values < 0, name, numbers.texts)
        ns = numpy.rint(numbers.values * unit)
        valid.drop("too-long", ns > LONGEST_S * 1e9, name, numbers.texts)
        return numpy.where(valid.rows, ns, 0.0).astype(numpy.int64)

    def _optional(self, valid: Rows, column: Mapping[str, Any], name: str, unit: float, most: float) -> Any:
        """A column of whole numbers from 0, null for unknown ones."""
        if name not in column:
            return pyarrow.nulls(len(valid.rows), pyarrow.int64())
        numbers = columns.numbers(column[name])
        valid.numbers(name, numbers, None)
        values = numpy.floor(numbers.values * unit + 1e-6)
        valid.drop("out-of-range", (numbers.values < 0) | (values > most), name, numbers.texts)
        in_units = numpy.where(valid.rows, values, 0.0).astype(numpy.int64)
        return pyarrow.array(in_units, mask=numbers.missing)

    def _routes(
        self, source: FileColumns, valid: Rows, operation: Any, column: Mapping[str, Any], first: int
    ) -> Any:
        """Index of each row's route. Drops rows without a route."""
        rows = len(valid.rows)
        codes = [self._operations.encode(operation, str)]
        for name in (*ENDS, "links"):
            texts = columns.lists(column[name]) if name in column else pyarrow.nulls(rows, pyarrow.string())
            codes.append(
                self._names.encode(texts, _split if name == "links" or self._by_host else self._racks)
            )
        # Many rows have the same ends; their links are looked up once.
        positions = numpy.flatnonzero(valid.rows)
        row_codes = numpy.stack(codes, axis=1)[positions]
        firsts, which = _distinct(row_codes)
        lookups = [
            self._route(source, tuple(key), first + int(positions[row]))
            for key, row in zip(row_codes[firsts].tolist(), firsts, strict=True)
        ]
        failed: dict[str, list[int]] = {}
        for index, lookup in enumerate(lookups):
            if isinstance(lookup, NoLinksError):
                failed.setdefault(lookup.reason, []).append(index)
        for reason, indices in failed.items():
            is_dropped = numpy.isin(which, indices)
            valid.rows[positions[is_dropped]] = False
            examples = [
                f"{source.file} row {first + int(positions[row])}: {lookups[which[row]]}"
                for row in numpy.flatnonzero(is_dropped)[:3]
            ]
            lost = int(valid.weights[positions[is_dropped]].sum())
            self._result.discards.count(reason, lost, *examples)
        routes = numpy.zeros(rows, dtype=numpy.int64)
        values = [0 if isinstance(lookup, NoLinksError) else lookup for lookup in lookups]
        routes[positions] = numpy.array(values, dtype=numpy.int64)[which]
        return routes

    def _racks(self, text: str) -> tuple[str, ...]:
        """Racks of hosts: links above a host depend only on its rack."""
        return self._places.racks_of(text.split())

    def _route(self, source: FileColumns, key: tuple[int, ...], row: int) -> int | NoLinksError:
        """Index of the route for an operation and its ends, all given as codes; an error without a route."""
        if key not in self._cache:
            operation = self._operations.values[key[0]]
            names = [self._names.values[code] for code in key[1:]]
            self._cache[key] = self._resolve(source, operation, names, row)
        return self._cache[key]

    def _resolve(
        self, source: FileColumns, operation: str, names: Sequence[tuple[str, ...]], row: int
    ) -> int | NoLinksError:
        src, dst, links = names
        if not links and operation not in self._rules:
            message = f"row {row}: `{operation}`: no rule for the links of this operation"
            near = get_close_matches(operation, list(self._rules), 1)
            expected = f"expected one of {', '.join(self._rules)}"
            error = InputError(str(source.file), None, None, "operation", f"{message}; {expected}")
            if near:
                error.add_note(f"did you mean `{near[0]}`?")
            error.add_note(f"--links '{operation}=src:uplink,dst:downlink' adds a rule")
            raise error
        try:
            if links:
                route = self._places.by_name(links)
            else:
                route = self._places.links_crossed(self._rules[operation], {"src": src, "dst": dst})
        except NoLinksError as error:
            return error
        if route not in self._index_of:
            self._index_of[route] = len(self._result.routes)
            self._result.routes.append(route)
        return self._index_of[route]

    def _count_fast(self, valid: Rows, routes: Any, size: Any, latency_ns: Any) -> None:
        """Counts rows with more bytes than their links can have carried in the time."""
        if size.null_count == len(size):
            return
        capacity = [sum(self._places.capacity[link] for link in route) for route in self._result.routes]
        bits = 8.0 * compute.fill_null(size, 0).to_numpy(zero_copy_only=False)
        most = TOO_FAST * numpy.array(capacity or [0], dtype=numpy.float64)[routes] * latency_ns / 1e9
        self._result.too_fast += int(valid.weights[(bits > most) & valid.rows].sum())


def _distinct(rows: Whole) -> tuple[Whole, Whole]:
    """First index of each distinct row, and for each row the number of its distinct row."""
    which = numpy.zeros(len(rows), dtype=numpy.int64)
    for column in rows.T:
        # `unique` renumbers from 0, so `which` stays below the number of rows and no product overflows.
        _, which = numpy.unique(which * (column.max(initial=0) + 1) + column, return_inverse=True)
    _, firsts, which = numpy.unique(which, return_index=True, return_inverse=True)
    return firsts, which


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _check_unit(source: FileColumns, times: Any) -> None:
    """Rejects times with an unknown or wrong unit, for which there would be no telemetry."""
    if source.time == "t_s":
        numbers = columns.numbers(times)
        values = numbers.values[~(numbers.missing | numbers.invalid)]
        # The median ignores a few implausible times. They are counted later.
        median = float(numpy.median(values)) if len(values) else 0.0
        if median > MOST_S:
            message = f"`{median:.0f}`: too large for seconds; is it in milliseconds (`t_ms`)?"
            raise InputError(str(source.file), None, None, "t_s", message)
    column_type = columns.plain(times).type
    if source.time == "t" and not (
        pyarrow.types.is_timestamp(column_type) or pyarrow.types.is_date(column_type)
    ):
        first = next((value for value in columns.plain(times).to_pylist() if value is not None), None)
        try:
            float(str(first))
        except ValueError:
            return
        message = f"`{first}`: a number without a unit; expected a date and time, or a column t_s or t_ms"
        raise InputError(str(source.file), None, None, "t", message)
