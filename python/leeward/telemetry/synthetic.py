"""Telemetry with known truths: links that carry little, but for what is planted in them.

For tests, examples and figures that are drawn from made-up fleets. Without a plant, a link's utilization in a
sample is its own mean, drawn once, with noise around it that is drawn for each sample; never above `QUIET`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import pyarrow

from leeward.telemetry.samples import COLUMNS

QUIET = 0.6
"""No link carries more than this share of its capacity unless it is planted."""


@dataclass(frozen=True)
class Plant:
    """Something known about a link for some time.

    Attributes:
        link: Its name.
        start_ms: From when on (Unix milliseconds).
        end_ms: Up to when.
        utilization: What it carries of its full capacity; None: what it carries anyway.
        capacity: The share of its capacity that is left. It carries what it would, up to that.
        seen: False: there are no samples of it.
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
    """Samples of links, one a link for each cadence.

    Args:
        links: As `Cluster.links` has them.
        plants: What is known; where several hold for a sample, the last.
        start_ms: When the first samples begin.
        end_ms: When the last end, at most.
        cadence_ms: What a sample covers.
        means: Between which the mean utilization of each link is drawn.
        noise: The most by which a sample is off its link's mean, as a share of capacity.
        seed: Of what is drawn.

    Returns:
        The columns of `Samples.table`, sorted by link and time.
    """
    random = numpy.random.default_rng(seed)
    ends = numpy.arange(start_ms + cadence_ms, end_ms + 1, cadence_ms, dtype=numpy.int64)
    planted: dict[str, list[Plant]] = {}
    for plant in plants:
        planted.setdefault(plant.link, []).append(plant)
    made: list[list[numpy.ndarray]] = [[] for _ in COLUMNS]
    rows = zip(*(links[name].to_pylist() for name in ("link", "name", "capacity_bps")), strict=True)
    for link, name, capacity in rows:
        mean = random.uniform(*means)
        carried = numpy.clip(mean + random.uniform(-noise, noise, len(ends)), 0.0, QUIET)
        left = numpy.ones(len(ends))
        seen = numpy.ones(len(ends), dtype=bool)
        for plant in planted.get(name, ()):
            within = (ends > plant.start_ms) & (ends <= plant.end_ms)
            if plant.utilization is not None:
                carried[within] = plant.utilization
            left[within] = plant.capacity
            seen[within] = plant.seen
            carried[within] = numpy.minimum(carried[within], plant.capacity)
        now = numpy.rint(capacity * left).astype(numpy.int64)
        bits = numpy.rint(carried * capacity * cadence_ms / 1000).astype(numpy.int64)
        columns = (numpy.full(len(ends), link), ends, numpy.full(len(ends), cadence_ms), bits, now)
        for column, values in zip(made, columns, strict=True):
            column.append(values[seen])
    arrays = [
        pyarrow.array(numpy.concatenate(column), getattr(pyarrow, kind)())
        for column, kind in zip(made, COLUMNS.values(), strict=True)
    ]
    return pyarrow.table(arrays, names=list(COLUMNS))
