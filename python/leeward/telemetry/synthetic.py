"""Synthetic telemetry with known states: quiet links, except for planted ones.

It serves tests, examples and figures of synthetic fleets. Without a plant, a link's utilization in a sample
is its own mean, drawn once, with noise around it drawn for each sample; never above `QUIET`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import pyarrow

from leeward.telemetry.samples import COLUMNS

QUIET = 0.6
"""Greatest utilization of a link without a plant."""


@dataclass(frozen=True)
class Plant:
    """A known state of a link for some time.

    Attributes:
        link: Name of the link.
        start_ms: Start (Unix milliseconds).
        end_ms: End.
        utilization: Load of the link as a share of its full capacity; None for its usual load.
        capacity: Remaining share of its capacity, which limits its load.
        seen: False for a link without samples.
    """

    link: str
    start_ms: int
    end_ms: int
    utilization: float | None = None
    capacity: float = 1.0
    seen: bool = True


def telemetry(
    links: pyarrow.Table,
    plants: Sequence[Plant] = (),
    *,
    start_ms: int,
    end_ms: int,
    cadence_ms: int = 30_000,
    means: tuple[float, float] = (0.1, 0.5),
    noise: float = 0.05,
    seed: int = 1,
) -> pyarrow.Table:
    """Samples of links, one per link and cadence.

    Args:
        links: Links, as in `Cluster.links`.
        plants: Known states; if several apply to a sample, the last one counts.
        start_ms: Start of the first samples.
        end_ms: Greatest end of the last samples.
        cadence_ms: Span of a sample.
        means: Range of the mean utilization of links.
        noise: Greatest deviation of a sample from its link's mean, as a share of capacity.
        seed: Seed of the draws.

    Returns:
        The columns of `Samples.table`, sorted by link and time.
    """
    random = numpy.random.default_rng(seed)
    ends = numpy.arange(start_ms + cadence_ms, end_ms + 1, cadence_ms, dtype=numpy.int64)
    plants_of_link: dict[str, list[Plant]] = {}
    for plant in plants:
        plants_of_link.setdefault(plant.link, []).append(plant)
    column_parts: list[list[numpy.ndarray]] = [[] for _ in COLUMNS]
    rows = zip(*(links[name].to_pylist() for name in ("link", "name", "capacity_bps")), strict=True)
    for link, name, capacity in rows:
        mean = random.uniform(*means)
        load = numpy.clip(mean + random.uniform(-noise, noise, len(ends)), 0.0, QUIET)
        capacity_share = numpy.ones(len(ends))
        seen = numpy.ones(len(ends), dtype=bool)
        for plant in plants_of_link.get(name, ()):
            within = (ends > plant.start_ms) & (ends <= plant.end_ms)
            if plant.utilization is not None:
                load[within] = plant.utilization
            capacity_share[within] = plant.capacity
            seen[within] = plant.seen
            load[within] = numpy.minimum(load[within], plant.capacity)
        capacities = numpy.rint(capacity * capacity_share).astype(numpy.int64)
        bits = numpy.rint(load * capacity * cadence_ms / 1000).astype(numpy.int64)
        columns = (numpy.full(len(ends), link), ends, numpy.full(len(ends), cadence_ms), bits, capacities)
        for column, values in zip(column_parts, columns, strict=True):
            column.append(values[seen])
    arrays = [
        pyarrow.array(numpy.concatenate(column), getattr(pyarrow, kind)())
        for column, kind in zip(column_parts, COLUMNS.values(), strict=True)
    ]
    return pyarrow.table(arrays, names=list(COLUMNS))
