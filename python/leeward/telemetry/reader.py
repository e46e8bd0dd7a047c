"""Telemetry from files or from Prometheus, as samples: the one reader of all commands."""

import time
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from leeward._arrow import Table
from leeward._inputs import is_table
from leeward._quantities import read_milliseconds
from leeward.errors import InputError
from leeward.telemetry.counters import GAP, Counter, counters
from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.files import Readings, readings
from leeward.telemetry.links import link_samples
from leeward.telemetry.mapping import Map, read_map
from leeward.telemetry.rates import rates
from leeward.telemetry.samples import Samples
from leeward.telemetry.series import MOST_CADENCE_MS, Period, series
from leeward.telemetry.sums import sum_rates
from leeward.telemetry.times import moment
from leeward.telemetry.units import Source

if TYPE_CHECKING:
    from leeward import Cluster
    from leeward.telemetry.prometheus import Progress

DAY_MS = 86_400_000
"""Default period of a query to Prometheus."""


def read(
    cluster: "Cluster",
    paths: Sequence[str | PathLike[str] | Table] | str | PathLike[str] | Table = (),
    *,
    prometheus: str | Sequence[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    map: Map | str | PathLike[str] | None = None,  # noqa: A002 - the flag's name
    engine: Engine | None = None,
    cadence: str | None = None,
    http: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
    now_ms: int | None = None,
    progress: "Progress | None" = None,
    refresh: bool = False,
) -> Samples:
    """Samples of the links of a cluster.

    Args:
        cluster: The cluster of the links.
        paths: Files or folders of them, CSV or Parquet, or tables with the same columns; one of them needs no
            list. Or none, with `prometheus`.
        prometheus: Address of a Prometheus server, such as `http://prom:9090`, or of several, which are all
            read.
        since: Start: a time before `until` (`30d`, `2h30m`) or before now (`now-1d`), a date (`2026-01-31`,
            `2026-01-31T12:00Z`), or seconds since 1970. By default the first reading of files, or a day
            before the end for Prometheus.
        until: End, written like `since`, where a length counts back from now; by default now.
        map: A map file, or its content, which finds links by labels. By default a column `link` names the
            links.
        engine: Engine of the samples; by default DuckDB in this process.
        cadence: Usual time between samples, such as `30s`, at most an hour; by default the most frequent one.
        http: A file with credentials and certificates for Prometheus. Only with `prometheus`.
        keep: A folder that caches answers of Prometheus; by default one in the user's cache. Only
            with `prometheus`.
        now_ms: Current time; by default the clock's.
        progress: Shows the progress of queries to Prometheus.
        refresh: True to query cached answers again. Only with `prometheus`.

    Returns:
        Samples, in no order, without duplicates. Omissions and corrections are counted; answers of Prometheus
        that may lack series count as `partial`.

    Raises:
        InputError: An argument is invalid, a source is unreadable or unreachable, or it has no reading of
            these links.
    """
    is_one = isinstance(paths, str | PathLike) or is_table(paths)
    sources = [paths] if is_one else list(cast(Sequence[Any], paths))
    if bool(sources) == bool(prometheus):
        raise InputError.about("telemetry", "expected either files or a Prometheus server")
    servers = [prometheus] if isinstance(prometheus, str) else list(prometheus or ())
    for argument, value in (("http", http), ("keep", keep), ("refresh", refresh or None)):
        if value is not None and not prometheus:
            raise InputError.about(argument, "only valid with a Prometheus server")
    now = round(time.time() * 1000) if now_ms is None else now_ms
    last = now if until is None else moment("until", until, now, now)
    first = None if since is None else moment("since", since, last, now)
    if first is not None and first >= last:
        raise InputError.about("since", f"`{since}`: not before the end")
    spacing = None if cadence is None else read_milliseconds("cadence", cadence, MOST_CADENCE_MS)
    map_content = map if isinstance(map, Map) else Map() if map is None else read_map(map)
    engine = engine or Engine.duckdb()
    discards = Discards()
    source: Readings
    if prometheus:
        from leeward.telemetry.prometheus import fetch, join

        begin = last - DAY_MS if first is None else first
        times = begin, last, now
        parts = [
            fetch(engine, url, map_content, times, http, keep, progress, refresh, discards) for url in servers
        ]
        source = parts[0] if len(parts) == 1 else join(parts)
        period = Period(begin, last, now)
    else:
        source = readings(engine, cast(list[Any], sources), map_content.columns)
        # Without an end, times ahead of the clock are reported apart from those outside of the period.
        ahead = 2**62 if until is None else last
        period = Period(-(2**62) if first is None else first, ahead, now)
    links = cluster.links()
    racks = cluster.rack_table()
    if not (source.counter or source.speeds):
        sums = sum_rates(engine, source, links, map_content, period, spacing, discards)
        if sums is not None:
            known = Source(source.unit_named)
            return Samples(engine, sums.table, links, racks, sums.cadence_ms, discards, sums.sums, known)
    series_table = series(engine, source, links, map_content, period, spacing, discards)
    if source.counter:
        counter = Counter(source.unit, source.width, GAP * series_table.cadence_ms)
        samples = counters(engine, series_table, counter, discards, source.name)
    else:
        samples = rates(engine, series_table, discards, source.name)
    table = link_samples(engine, samples, series_table, source.speeds, discards, source.name)
    known = Source(source.unit_named, source.speeds, series_table.ports)
    return Samples(engine, table, links, racks, series_table.cadence_ms, discards, source=known)
