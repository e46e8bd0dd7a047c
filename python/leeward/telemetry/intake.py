"""Telemetry from files or from Prometheus, as samples: the one function that commands read it with."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

import ibis

from leeward import _native
from leeward.errors import InputError
from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.samples import Samples

if TYPE_CHECKING:
    from leeward import Cluster


def read(
    cluster: "Cluster",
    paths: Sequence[str | PathLike[str]] = (),
    *,
    prometheus: str | None = None,
    since: str | None = None,
    until: str | None = None,
    map: str | PathLike[str] | None = None,  # noqa: A002 - the flag's name
    engine: Engine | None = None,
    cadence: str | None = None,
    http: str | PathLike[str] | None = None,
    keep: str | PathLike[str] | None = None,
) -> Samples:
    """What the links of a cluster were seen to carry.

    Args:
        cluster: Whose links they are.
        paths: Files or folders of them, CSV or Parquet; or none, with `prometheus`.
        prometheus: The address of a Prometheus server, such as `http://prom:9090`.
        since: From when on: a time before `until` (`30d`) or a date (`2026-01-31`, `2026-01-31T12:00Z`).
        until: Up to when: likewise, before now.
        map: A file that says which labels are which links; by default a column `link` names them.
        engine: Where it is worked on; by default DuckDB in this process.
        cadence: The usual time from a sample to its next, such as `30s`; by default what is most frequent.
        http: A file that says how to reach Prometheus: who asks, with which certificates.
        keep: A folder for what Prometheus answered, so that it need not be asked twice.

    Raises:
        InputError: Something given is not right, cannot be read or reached, or holds nothing of these links.
    """
    engine = engine or Engine.duckdb()
    links, discards = cluster.links(), Discards()
    if not paths:
        raise InputError("telemetry", None, None, None, "expected files or Prometheus")
    every = engine.parquet(paths)
    period = 30_000 if cadence is None else round(1000 * _native.seconds(cadence))
    names = engine.table(links.select(["link", "name", "capacity_bps"]))
    rows = every.rename(name="link").join(names, "name")
    bits = rows.load_bps.cast("float64") * float(period) / 1000.0
    table = rows.select(
        link=rows.link,
        t_ms=(rows.t_s * 1000).cast("int64"),
        span_ms=ibis.literal(period, "int64"),
        bits=bits.floor().cast("int64"),
        capacity_bps=rows.capacity_bps,
    )
    return Samples(engine, table, links, cluster.rack_table(), period, discards)
