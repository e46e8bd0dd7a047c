"""Link loads of a simulated run as telemetry, the input of the analyses of links."""

from pathlib import Path

import numpy
import pyarrow

from leeward import Cluster
from leeward.telemetry import Engine, Samples

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z, the start of runs."""


def samples(links: pyarrow.Table, cluster: Path) -> Samples:
    """The table `links` of a run, as telemetry.

    Utilizations are those of the run, which are of the true capacities: as a switch counts, a link that has
    lost half of its capacity is full at half of its load.

    Args:
        links: Mean loads in intervals of equal length.
        cluster: Cluster file of the run.
    """
    network = Cluster(cluster)
    known = network.links()
    number = dict(zip(known["name"].to_pylist(), range(len(known)), strict=True))
    coded = links["link"].cast("string").dictionary_encode().combine_chunks()
    row = numpy.array([number[name] for name in coded.dictionary.to_pylist()])[coded.indices.to_numpy()]
    start = links["start_s"].to_numpy()
    span = round(1000 * float(numpy.diff(numpy.unique(start)).min()))
    load, utilization = (links[name].to_numpy() for name in ("load_bps", "utilization"))
    nominal = known["capacity_bps"].to_numpy()[row]
    true = numpy.divide(load, utilization, out=nominal.astype(float), where=utilization > 0)
    table = pyarrow.table(
        {
            "link": pyarrow.array(known["link"].to_numpy()[row], "int32"),
            "t_ms": START_MS + numpy.rint(1000 * start).astype(numpy.int64) + span,
            "span_ms": numpy.full(len(start), span),
            "bits": numpy.rint(load * span / 1000).astype(numpy.int64),
            "capacity_bps": numpy.rint(true).astype(numpy.int64),
        }
    )
    engine = Engine.duckdb(threads=1)
    return Samples(engine, engine.table(table), known, network.rack_table(), span)
