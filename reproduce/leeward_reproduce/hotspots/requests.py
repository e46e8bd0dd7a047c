"""Chunk requests, each with the class of its rack and the utilization of that rack's link.

A read leaves its rack by the uplink, and a write arrives by the downlink. The utilization of a request is the
highest one of that link in the windows of 30 s that the request spans (section 4.1). A degraded read counts
as one request for each chunk of the stripe that it reads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy
import pyarrow
from pyarrow import compute

from leeward import Cluster
from leeward._arrays import Floats, Ints
from leeward_reproduce.sweeps import Cells

CLASSES = ("High", "Medium", "Low")
"""Uplinks above the racks' average, within a tenth of it, and below (section 4.3)."""
WITHIN = 0.1
LONGEST = 40
"""Maximum number of windows of a request that count after its first window."""


@dataclass(frozen=True)
class Requests:
    """Chunk requests of a run."""

    utilization: Floats
    """Utilization of the link, 0 to 1."""
    kind: Ints
    """Position of the rack's class in `CLASSES`."""


@lru_cache
def classes(path: Path) -> dict[str, int]:
    """Position in `CLASSES` of each storage rack of a cluster file, by its name."""
    return classes_of(Cluster(path))


def classes_of(cluster: Cluster) -> dict[str, int]:
    """Position in `CLASSES` of each storage rack, by its name. All storage racks have the same disks."""
    table = cluster.resources().to_pydict()
    of_kind = list(zip(table["kind"], table["name"], table["capacity"], strict=True))
    storing = {_rack(name) for kind, name, _ in of_kind if kind == "device"}
    uplinks = {name.removesuffix(":uplink"): bps for kind, name, bps in of_kind if kind == "rack_uplink"}
    storage_uplinks = {rack: bps for rack, bps in uplinks.items() if rack in storing}
    guideline = sum(storage_uplinks.values()) / len(storage_uplinks)
    over = {rack: bps / guideline for rack, bps in storage_uplinks.items()}
    return {rack: 0 if share > 1 + WITHIN else 2 if share < 1 - WITHIN else 1 for rack, share in over.items()}


def reads(cells: Cells, cluster: Path, policy: str, seed: int, value: str | None = None) -> Requests:
    """The finished reads that were requested after the warm-up."""
    table = _finished_rows(cells.table("reads", policy, seed, value))
    several = compute.list_value_length(table["chunks"]).to_numpy()
    whole, degraded = table.filter(several == 0), table.filter(several > 0)
    links = cells.table("links", policy, seed, value)
    hosts = pyarrow.chunked_array([*whole["holder"].chunks, *compute.list_flatten(degraded["chunks"]).chunks])
    count = numpy.concatenate([numpy.ones(len(whole), dtype=int), several[several > 0]])
    request = pyarrow.concat_tables([whole, degraded])
    return join_loads(links, classes(cluster), "uplink", hosts, count, request, "asked_s")


def writes(cells: Cells, cluster: Path, policy: str, seed: int, value: str | None = None) -> Requests:
    """The chunks of finished blocks that were placed after the warm-up."""
    table = _finished_rows(cells.table("blocks", policy, seed, value))
    links = cells.table("links", policy, seed, value)
    hosts, count = compute.list_flatten(table["hosts"]), compute.list_value_length(table["hosts"]).to_numpy()
    return join_loads(links, classes(cluster), "downlink", hosts, count, table, "placed_s")


def _finished_rows(table: pyarrow.Table) -> pyarrow.Table:
    return table.filter(compute.is_valid(table["finished_s"]))


def join_loads(
    links: pyarrow.Table,
    class_of_rack: dict[str, int],
    direction: str,
    hosts: pyarrow.ChunkedArray,
    count: Ints,
    table: pyarrow.Table,
    since: str,
) -> Requests:
    """Requests to hosts, each with the highest load of the link of its rack while it lasts.

    Args:
        links: Utilization of links in intervals of equal length.
        class_of_rack: Result of `classes`.
        direction: `uplink` or `downlink`.
        hosts: Hosts of requests. The first `count[0]` belong to the first row of the table, and so on.
        count: Number of hosts of each row.
        table: Start and end (`finished_s`) of requests.
        since: Column with the start.
    """
    rack = {name: at for at, name in enumerate(class_of_rack)}
    position = _positions(links["link"], lambda link: rack.get(link.removesuffix(f":{direction}"), -1))
    start = links["start_s"].to_numpy()
    first, window = float(start.min()), float(numpy.diff(numpy.unique(start)).min())
    at = numpy.rint((start - first) / window).astype(int)
    load = numpy.zeros((len(rack), int(at.max()) + 1))
    ours = position >= 0
    load[position[ours], at[ours]] = links["utilization"].to_numpy()[ours]
    racks = _positions(hosts, lambda host: rack.get(_rack(host), -1))
    request, finished = (numpy.repeat(table[name].to_numpy(), count) for name in (since, "finished_s"))
    begin = numpy.floor((request - first) / window).astype(int)
    end = numpy.minimum(numpy.floor((finished - first) / window).astype(int), load.shape[1] - 1)
    needed = (begin >= 0) & (begin < load.shape[1]) & (racks >= 0)
    racks, begin, end = racks[needed], begin[needed], end[needed]
    highest = load[racks, begin]
    for more in range(1, min(int((end - begin).max(initial=0)), LONGEST) + 1):
        later = numpy.minimum(begin + more, numpy.maximum(end, begin))
        highest = numpy.maximum(highest, load[racks, later])
    return Requests(highest, numpy.array(list(class_of_rack.values()))[racks])


def _positions(names: pyarrow.ChunkedArray, position: Callable[[str], int]) -> Ints:
    """The position of each name. Each distinct name is looked up once."""
    coded = names.dictionary_encode().combine_chunks()
    positions = numpy.array([position(name) for name in coded.dictionary.to_pylist()], dtype=numpy.int64)
    return positions[coded.indices.to_numpy()] if len(coded) else numpy.empty(0, dtype=numpy.int64)


def _rack(host: str) -> str:
    """Rack of a host or device. Names have the default form, such as `r0h3` or `r0h3:disk0`."""
    return host.partition(":")[0].partition("h")[0]
