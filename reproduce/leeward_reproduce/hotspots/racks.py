"""Experiments on a rack's link for the figures of latency, with results as telemetry and logs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
import pyarrow
from pyarrow import parquet

from leeward._arrays import Floats
from leeward.impact import Settings, measure, tables
from leeward.telemetry import Engine, Samples
from leeward_reproduce.figures import Experiment
from leeward_reproduce.hotspots import impact_figures, rack_storage
from leeward_reproduce.hotspots.rack_storage import CHUNK, CLASSES, Operation, ServedOperations
from leeward_reproduce.links import START_MS

SHORT_LEVELS = (0.025, 0.475, 0.775, 0.975)
"""Utilizations of a first look."""
INTERVALS = 2
"""Number of intervals of 30 s at each level."""
CAPACITIES_BPS = (4.5e9, 3e9, 2e9)
"""Capacities of the uplinks of High-, Medium- and Low-Uplink racks in `clusters/storage.yaml`."""
LEAST = 50
"""Minimum number of latencies of a bucket that is judged."""
LINKS = {"read": "r0:uplink", "write": "r0:downlink"}
_BY_CLASS = (Operation("hdd-read", "read", "hdd", CHUNK, 5), Operation("hdd-write", "write", "ram", CHUNK, 5))
_READS = (Operation("hdd-read", "read", "hdd", CHUNK, 10),)


def _rack(seed: int, short: bool) -> ServedOperations:
    return rack_storage.serve(seed, 1 if short else INTERVALS, levels=_levels(short))


def _classes(seed: int, short: bool) -> ServedOperations:
    return rack_storage.serve(seed, 1, levels=_levels(short), operations=_BY_CLASS, classes=True)


def _uneven(seed: int, short: bool) -> dict[float, ServedOperations]:
    return {
        bps: rack_storage.serve(seed, 1, levels=_levels(short), link_bps=bps, operations=_READS)
        for bps in CAPACITIES_BPS
    }


def _levels(short: bool) -> Sequence[float]:
    return SHORT_LEVELS if short else rack_storage.LEVELS


RACK = Experiment("rack", _rack)
"""All operations at a rack of the middle class."""
BY_CLASS = Experiment("classes", _classes)
"""Reads and writes of two classes of service."""
UNEVEN = Experiment("uneven", _uneven)
"""HDD reads from racks of each class of uplink."""


def utilization(served: ServedOperations, way: str) -> Floats:
    """Utilization of the link in each interval and direction, 0 to 1; all classes together."""
    carried = sum(bits for name, bits in served.carried.items() if name.split()[-1] == way)
    result: Floats = numpy.asarray(carried) / rack_storage.INTERVAL_S / served.link_bps
    return result


def logs(served: ServedOperations) -> pyarrow.Table:
    """Operations in the form of a file of latencies, each with the link that it crossed.

    `operation` is `file-read` or `file-write`. `medium` is the medium of the file: it is `hdd` for writes,
    although they end in memory. `class` is null without classes of service.
    """
    names = [name.split("-") for name in served.operations]
    columns = {
        "operation": [f"file-{name[1]}" for name in names],
        "medium": [name[0] for name in names],
        "class": [name[-1] if name[-1] in CLASSES else None for name in names],
        "links": [LINKS[name[1]] for name in names],
    }
    taken = pyarrow.array(served.operation)
    return pyarrow.table(
        {
            "t_ms": START_MS + 1000 * served.end_s,
            "latency_s": served.latency_s,
            "network_s": served.network_s,
            "size_bytes": served.bytes,
        }
        | {name: pyarrow.array(values, "string").take(taken) for name, values in columns.items()}
    )


def telemetry(served: ServedOperations, engine: Engine, of_class: str | None = None) -> Samples:
    """Load of the rack's link by all traffic, or by one class of service."""
    links = rack_storage.cluster(served.link_bps).links()
    number = dict(zip(links["name"].to_pylist(), links["link"].to_pylist(), strict=True))
    ends = START_MS + 1000 * rack_storage.INTERVAL_S * (1 + numpy.arange(len(served.level)))
    parts = []
    for way in ("up", "down"):
        name = way if of_class is None else f"{of_class} {way}"
        if name in served.carried:
            bits = numpy.rint(served.carried[name]).astype(numpy.int64)
            parts.append((number[f"r0:{way}link"], bits))
    count = len(ends)
    table = pyarrow.table(
        {
            "link": pyarrow.array(numpy.repeat([link for link, _ in parts], count), "int32"),
            "t_ms": numpy.tile(ends, len(parts)),
            "span_ms": numpy.full(count * len(parts), 1000 * rack_storage.INTERVAL_S),
            "bits": numpy.concatenate([bits for _, bits in parts]),
            "capacity_bps": numpy.full(count * len(parts), int(served.link_bps)),
        }
    )
    racks = rack_storage.cluster(served.link_bps).rack_table()
    return Samples(engine, engine.table(table), links, racks, 1000 * rack_storage.INTERVAL_S)


def inflation(
    served: ServedOperations,
    rows: pyarrow.Table,
    by: Sequence[str],
    weights: Mapping[str, int] | None = None,
) -> impact_figures.Tables:
    """Joins latencies with the telemetry, as `leeward impact --by` does.

    Args:
        served: Operations with the loads of links.
        rows: Latencies.
        by: Fields by which latencies are split.
        weights: Weights of classes of service, for weighted-effective utilization.
    """
    # Confidence intervals are over seeds, so the bootstrap over a single run is off.
    settings = Settings(by=tuple(by), least=LEAST, resamples=0)
    engine = Engine.duckdb(threads=1)
    with TemporaryDirectory(prefix="leeward-latencies-") as folder:
        path = Path(folder) / "latencies.parquet"
        parquet.write_table(rows, path)
        if weights is None:
            result = measure(path, telemetry(served, engine), settings)
        else:
            by_class = {name: telemetry(served, engine, name) for name in CLASSES}
            result = measure(path, by_class, settings, weights=weights)
    return impact_figures.Tables(tables.buckets(result), tables.tolerance(result))
