"""The one clean table that every analysis reads: loads of links over time."""

from dataclasses import dataclass, field

import ibis
import pyarrow

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine
from leeward.telemetry.units import Source

COLUMNS = {"link": "int32", "t_ms": "int64", "span_ms": "int64", "bits": "int64", "capacity_bps": "int64"}
"""Columns of samples and their types."""
MOST_CAPACITY = 10**15
"""Greatest rate of a link, in bits per second."""


@dataclass(frozen=True)
class Sums:
    """Samples in intervals that add up to longer ones.

    Attributes:
        table: `link`, `start_ms`, `bits`, `capacity_bits`, `covered_ms`, `ppm`, as in `Windows.table`.
        length_ms: Length of the intervals.
    """

    table: ibis.Table
    length_ms: int


@dataclass(frozen=True)
class Samples:
    """Measured loads of links, each direction separately.

    Attributes:
        engine: Engine of the table.
        table: A row for each sample, without duplicates: `link` (int32, its number in `links`), `t_ms` (the
            end of its span, Unix time in milliseconds), `span_ms` (length of its span, above 0), `bits`
            (carried in it, not negative), `capacity_bps` (of the link at that time, above 0). With rates more
            frequent than the cadence, spans may overlap (`rates`).
        links: Links of the cluster, as in `Cluster.links()`.
        racks: Racks of the cluster, as in `Cluster.rack_table()`.
        cadence_ms: Usual time between samples of a link.
        discards: Readings left out, by reason.
        sums: Samples in short intervals, if the samples were summed while they were read.
        source: What is known of the readings.
    """

    engine: Engine
    table: ibis.Table
    links: pyarrow.Table
    racks: pyarrow.Table
    cadence_ms: int
    discards: Discards = field(default_factory=Discards)
    sums: Sums | None = None
    source: Source = field(default_factory=Source)
