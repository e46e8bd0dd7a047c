"""Chunk requests, each with the class of its rack and how loaded that rack's link was.

A read leaves its rack by the uplink and a write comes by the downlink. A request counts at the highest
utilization of that link among the windows of 30 s that it spans (section 4.1). A read degraded to others of
its stripe counts once for each of them.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy
import pyarrow

from leeward import Cluster
from leeward.arrays import Floats, Ints
from leeward.reproduce.sweeps import Cells

CLASSES = ("High", "Medium", "Low")
"""Uplinks above what racks have in the mean, within a tenth of it, and below (section 4.3)."""
WITHIN = 0.1
LONGEST = 40
"""Windows that a request spans at most, of which the utilization counts."""


@dataclass(frozen=True)
class Requests:
    """Chunk requests of a run."""

    utilization: Floats
    """Of the link, 0 to 1."""
    kind: Ints
    """Position of the rack's class in `CLASSES`."""


@lru_cache
def classes(path: Path) -> dict[str, int]:
    """The class of each rack that stores anything, by its name; racks of this cluster store alike."""
    table = Cluster(path).resources().to_pydict()
    of_kind = list(zip(table["kind"], table["name"], table["capacity"], strict=True))
    storing = {_rack(name) for kind, name, _ in of_kind if kind == "device"}
    uplinks = {name.removesuffix(":uplink"): bps for kind, name, bps in of_kind if kind == "rack_uplink"}
    kept = {rack: bps for rack, bps in uplinks.items() if rack in storing}
    guideline = sum(kept.values()) / len(kept)
    over = {rack: bps / guideline for rack, bps in kept.items()}
    return {rack: 0 if share > 1 + WITHIN else 2 if share < 1 - WITHIN else 1 for rack, share in over.items()}


def reads(cells: Cells, cluster: Path, policy: str, seed: int, value: str | None = None) -> Requests:
    """The reads that ended after the warm-up."""
    table = cells.table("reads", policy, seed, value)
    table = table.filter(pyarrow.compute.is_valid(table["finished_s"]))
    chunks, holders = table["chunks"].to_pylist(), table["holder"].to_pylist()
    hosts = [several or [one] for several, one in zip(chunks, holders, strict=True)]
    return _requests(cells, cluster, policy, seed, value, "uplink", hosts, table, "asked_s")


def writes(cells: Cells, cluster: Path, policy: str, seed: int, value: str | None = None) -> Requests:
    """The chunks of blocks that were written after the warm-up."""
    table = cells.table("blocks", policy, seed, value)
    table = table.filter(pyarrow.compute.is_valid(table["finished_s"]))
    return _requests(
        cells, cluster, policy, seed, value, "downlink", table["hosts"].to_pylist(), table, "placed_s"
    )


def _requests(
    cells: Cells,
    cluster: Path,
    policy: str,
    seed: int,
    value: str | None,
    direction: str,
    hosts: list[list[str]],
    table: pyarrow.Table,
    since: str,
) -> Requests:
    links = cells.table("links", policy, seed, value)
    of = classes(cluster)
    names = {f"{rack}:{direction}": at for at, rack in enumerate(of)}
    position = numpy.array([names.get(name, -1) for name in links["link"].to_pylist()])
    start = links["start_s"].to_numpy()
    first, window = float(start.min()), float(numpy.diff(numpy.unique(start)).min())
    at = numpy.rint((start - first) / window).astype(int)
    load = numpy.zeros((len(names), int(at.max()) + 1))
    load[position[position >= 0], at[position >= 0]] = links["utilization"].to_numpy()[position >= 0]
    count = numpy.array([len(several) for several in hosts], dtype=int)
    racks = numpy.array(
        [names.get(f"{_rack(host)}:{direction}", -1) for several in hosts for host in several]
    )
    asked = numpy.repeat(table[since].to_numpy(zero_copy_only=False), count)
    finished = numpy.repeat(table["finished_s"].to_numpy(zero_copy_only=False), count)
    begin = numpy.floor((asked - first) / window).astype(int)
    end = numpy.minimum(numpy.floor((finished - first) / window).astype(int), load.shape[1] - 1)
    wanted = (begin >= 0) & (begin < load.shape[1]) & (racks >= 0)
    racks, begin, end = racks[wanted], begin[wanted], end[wanted]
    highest = load[racks, begin]
    for more in range(1, min(int((end - begin).max(initial=0)), LONGEST) + 1):
        later = numpy.minimum(begin + more, numpy.maximum(end, begin))
        highest = numpy.maximum(highest, load[racks, later])
    kind = numpy.array(list(of.values()))[racks]
    return Requests(highest, kind)


def _rack(host: str) -> str:
    """The rack of a host or of its device: racks of this cluster have no names of their own."""
    return host.partition(":")[0].partition("h")[0]
