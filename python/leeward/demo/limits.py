"""What limited the full blocks of a run: a link of a rack, or other blocks on their hosts and disks."""

from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy
import pyarrow

from leeward._arrays import Floats
from leeward._native import Cluster, Run

SAME_WITHIN = 0.01
"""A block that takes at most this share longer than an idle network and idle disks allow is not held back."""


@dataclass(frozen=True)
class Limits:
    """Shares of the full blocks, which add up to 1.

    Attributes:
        free: Blocks that were as fast as an idle network and idle disks allow.
        links: Slower blocks that crossed a busy link of a rack.
        hosts: Other slower blocks: they shared hosts or disks with other blocks.
    """

    free: float
    links: float
    hosts: float

    def record(self) -> dict[str, float]:
        """The shares for JSON."""
        return asdict(self)


def limits_of(run: Run, cluster: Cluster) -> Limits:
    """Limits of the full blocks of a run whose files began after the warm-up.

    A link of a rack is busy in an interval if its load leaves less than the rate of an unlimited block free.
    """
    blocks, files = run.blocks(), run.files()
    counted = files["start_s"].to_numpy()[blocks["file"].to_numpy()] >= run.warmup_s
    counted &= blocks["full"].to_numpy(zero_copy_only=False) & blocks["finished_s"].is_valid().to_numpy()
    blocks = blocks.filter(counted)
    if not len(blocks):
        return Limits(0.0, 0.0, 0.0)
    placed, finished = blocks["placed_s"].to_numpy(), blocks["finished_s"].to_numpy()
    rate_bps = _unlimited_bps(cluster)
    held_back = finished - placed > (1 + SAME_WITHIN) * 8 * blocks["bytes"].to_numpy() / rate_bps
    crossed = RackLinks(run, cluster, rate_bps).busy(blocks)
    links, hosts = float((held_back & crossed).mean()), float((held_back & ~crossed).mean())
    return Limits(float(1 - held_back.mean()), links, hosts)


def _unlimited_bps(cluster: Cluster) -> float:
    """Rate of a block that nothing else slows down: the least of a host's links and a disk's writes."""
    description = cluster.describe()
    rates = [device["write_bps"] for device in description["devices"]]
    rates += [links["most_bps"] for links in description["links"] if links["kind"].startswith("host")]
    return float(min(rates))


class RackLinks:
    """Loads of the links of racks, by interval."""

    def __init__(self, run: Run, cluster: Cluster, rate_bps: float) -> None:
        """Reads the loads of a run; a link with less than `rate_bps` free is busy."""
        table = run.links()
        capacity = dict(
            zip(*(cluster.links()[name].to_pylist() for name in ("name", "capacity_bps")), strict=True)
        )
        names = table["link"].to_numpy(zero_copy_only=False)
        start = table["start_s"].to_numpy()
        count = int((start == start[0]).sum())
        self._start = float(start[0])
        self._length = run.sample_s
        self._column = {name: at for at, name in enumerate(names[:count])}
        rack_of = dict(
            zip(*(cluster.host_table()[name].to_pylist() for name in ("host", "rack")), strict=True)
        )
        self._rack_of = rack_of
        free = numpy.array([capacity[name] for name in names[:count]]) - table["load_bps"].to_numpy().reshape(
            -1, count
        )
        self._is_busy = free < rate_bps

    def busy(self, blocks: pyarrow.Table) -> "numpy.typing.NDArray[numpy.bool_]":
        """For each block: whether a link of a rack on its way was busy while it was written."""
        placed: Floats = blocks["placed_s"].to_numpy()
        finished: Floats = blocks["finished_s"].to_numpy()
        last = len(self._is_busy) - 1
        begin = numpy.clip((placed - self._start) // self._length, 0, last).astype(int)
        end = numpy.clip((finished - self._start) // self._length, 0, last).astype(int)
        result = numpy.zeros(len(blocks), dtype=bool)
        for at, hosts in enumerate(blocks["hosts"].to_pylist()):
            racks = [self._rack_of[host] for host in hosts]
            links = {
                self._column[name]
                for source, target in pairwise(racks)
                if source != target
                for name in (f"{source}:uplink", f"{target}:downlink")
            }
            result[at] = bool(links) and bool(self._is_busy[begin[at] : end[at] + 1, list(links)].any())
        return result
