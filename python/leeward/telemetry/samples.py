"""The one clean table that every analysis reads: what each link carried, and when."""

from dataclasses import dataclass, field

import ibis
import pyarrow

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine

COLUMNS = {"link": "int32", "t_ms": "int64", "span_ms": "int64", "bits": "int64", "capacity_bps": "int64"}
"""Columns of samples and their types."""
MOST_CAPACITY = 10**15
"""Bits per second that a link may have."""


@dataclass(frozen=True)
class Sums:
    """Samples in intervals that longer ones can be made of.

    Attributes:
        table: `link`, `start_ms`, `bits`, `capacity_bits`, `covered_ms`, `ppm`, as `Windows.table` has them.
        length_ms: The length of the intervals.
    """

    table: ibis.Table
    length_ms: int


@dataclass(frozen=True)
class Samples:
    """What links were seen to carry, each direction by itself.

    Attributes:
        engine: Where the table lives.
        table: A row for each sample, without duplicates: `link` (int32, its number in `links`), `t_ms` (the
            end of what it covers, Unix time in milliseconds), `span_ms` (how long it covers, above 0), `bits`
            (carried in it, not negative), `capacity_bps` (of the link then, above 0). Of rates that come
            sooner than the cadence, spans may overlap (`rates`).
        links: The cluster's links as `Cluster.links()` has them.
        racks: The cluster's racks as `Cluster.rack_table()` has them.
        cadence_ms: The usual time from a sample of a link to its next.
        discards: What was left out, by reason.
        sums: The same in short intervals, where they were summed up while they were read.
    """

    engine: Engine
    table: ibis.Table
    links: pyarrow.Table
    racks: pyarrow.Table
    cadence_ms: int
    discards: Discards = field(default_factory=Discards)
    sums: Sums | None = None
