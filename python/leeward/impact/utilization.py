"""Utilizations for latencies: plain, or weighted-effective for a class of service.

The scheduler of the switch decides how classes of service share a link. Hotspots' appendix C sums the
utilizations of all classes; lower classes weigh less than 1, and higher classes more than 1. It states
neither a formula nor weights. The formula here is::

    effective utilization of class q = sum over classes c of (weight of c / weight of q) x utilization by c

with the weights of the switch's scheduler, which the caller gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import ibis
import pyarrow

from leeward.errors import InputError
from leeward.telemetry import Engine, Windows

MOST_WEIGHT = 1_000_000


@dataclass(frozen=True)
class Utilization:
    """Utilization of links in intervals.

    Attributes:
        engine: Engine of the tables.
        table: `link` (int32), `start_ms`, `ppm` (int64; null where the interval was seen for too short a time
            to be judged), and `class` for utilization by class.
        interval_ms: Length of an interval.
        cadence_ms: Usual time between samples of a link.
        links: Links of the cluster.
        weights: Weights of classes, for effective utilizations.
    """

    engine: Engine
    table: ibis.Table
    interval_ms: int
    cadence_ms: int
    links: pyarrow.Table
    weights: Mapping[str, int] | None = None

    @property
    def keys(self) -> list[str]:
        """Columns that identify a row."""
        return ["link", "start_ms", *(["class"] if self.weights else [])]


def plain(windows: Windows) -> Utilization:
    """Utilization of links over all traffic."""
    table = windows.table.select("link", "start_ms", "ppm").union(_thin(windows))
    samples = windows.samples
    return Utilization(samples.engine, table, windows.interval_ms, samples.cadence_ms, samples.links)


def effective(by_class: Mapping[str, Windows], weights: Mapping[str, int]) -> Utilization:
    """Weighted-effective utilizations.

    Args:
        by_class: Load of each class of service alone; all have one engine, cluster and interval.
        weights: Weights of the same classes, whole numbers from 1.

    Raises:
        InputError: A class has no weight or no telemetry, or a weight is out of bounds.
    """
    for name in sorted(by_class.keys() - weights.keys()):
        raise InputError("weights", None, None, name, f"no weight; there are weights of {', '.join(weights)}")
    for name, weight in weights.items():
        if name not in by_class:
            message = f"no telemetry of this class; there is telemetry of {', '.join(by_class)}"
            raise InputError("weights", None, None, name, message)
        if not 1 <= weight <= MOST_WEIGHT:
            message = f"`{weight}`: expected a whole number from 1 to {MOST_WEIGHT:,}"
            raise InputError("weights", None, None, name, message)
    parts = []
    for name, windows in by_class.items():
        table = windows.table.select("link", "start_ms", "ppm").union(_thin(windows))
        parts.append(table.mutate(load=table.ppm * ibis.literal(weights[name], "int64")))
    sums = (
        (ibis.union(*parts, distinct=False) if len(parts) > 1 else parts[0])
        .group_by("link", "start_ms")
        .agg(
            classes=lambda t: t.count(),
            seen=lambda t: t.ppm.count(),
            load=lambda t: t.load.sum().cast("int64"),
        )
    )
    whole = sums.filter(sums.classes == len(by_class))
    results = []
    for name, weight in weights.items():
        # Below 2^53, so that the quotient of doubles is that of whole numbers, rounded down.
        ppm = (whole.load.cast("float64") / float(weight)).floor().cast("int64")
        judged = ibis.ifelse(whole.seen == len(by_class), ppm, ibis.null("int64"))
        results.append(whole.select("link", "start_ms", ppm=judged).mutate(**{"class": ibis.literal(name)}))
    first = next(iter(by_class.values()))
    engine = first.samples.engine
    table = engine.keep(ibis.union(*results) if len(results) > 1 else results[0])
    cadence = max(windows.samples.cadence_ms for windows in by_class.values())
    return Utilization(engine, table, first.interval_ms, cadence, first.samples.links, dict(weights))


def _thin(windows: Windows) -> ibis.Table:
    return windows.thin.select("link", "start_ms").mutate(ppm=ibis.null("int64"))
