"""Full blocks of a run that a rack's link, or other blocks on the same hosts and disks, held back."""

from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy
import pyarrow

from leeward._arrays import Floats, Ints
from leeward._native import Cluster, Run
from leeward.sweep.cell import SAME_WITHIN


@dataclass(frozen=True)
class HeldBack:
    """Shares of the full blocks, which add up to 1.

    Attributes:
        free: Blocks that were at most 1 % slower than an idle network and idle disks allow.
        links: Slower blocks that crossed a busy link of a rack.
        hosts: Other slower blocks, which shared hosts or disks with other blocks.
    """

    free: float
    links: float
    hosts: float

    def record(self) -> dict[str, float]:
        """The shares for JSON."""
        return asdict(self)


def held_back(run: Run, cluster: Cluster) -> HeldBack:
    """Shares of the full blocks of a run whose files began after the warm-up.

    A link of a rack is busy in an interval if its load leaves less free than the rate of an unlimited block.
    """
    blocks, files = run.blocks(), run.files()
    counted = files["start_s"].to_numpy()[blocks["file"].to_numpy()] >= run.warmup_s
    counted &= blocks["full"].to_numpy(zero_copy_only=False) & blocks["finished_s"].is_valid().to_numpy()
    blocks = blocks.filter(counted)
    if not len(blocks):
        return HeldBack(0.0, 0.0, 0.0)
    rate_bps = _unlimited_bps(cluster)
    took = blocks["finished_s"].to_numpy() - blocks["placed_s"].to_numpy()
    slower = took > (1 + SAME_WITHIN) * 8 * blocks["bytes"].to_numpy() / rate_bps
    crossed = _crossed_busy_link(run, cluster, blocks, rate_bps)
    links, hosts = float((slower & crossed).mean()), float((slower & ~crossed).mean())
    return HeldBack(float(1 - slower.mean()), links, hosts)


def _unlimited_bps(cluster: Cluster) -> float:
    """Rate of a block that nothing else slows down: the least of a host's links and a disk's writes."""
    description = cluster.describe()
    rates = [device["write_bps"] for device in description["devices"]]
    rates += [links["most_bps"] for links in description["links"] if links["kind"].startswith("host")]
    return float(min(rates))


def _crossed_busy_link(
    run: Run, cluster: Cluster, blocks: pyarrow.Table, rate_bps: float
) -> "numpy.typing.NDArray[numpy.bool_]":
    """For each block: whether a rack's link on its way had less than a rate free while it was written."""
    table, capacities, hosts = run.links(), cluster.links(), cluster.host_table()
    start = table["start_s"].to_numpy()
    count = int((start == start[0]).sum())
    names = table["link"].to_pylist()[:count]
    column = {name: at for at, name in enumerate(names)}
    capacity = dict(zip(capacities["name"].to_pylist(), capacities["capacity_bps"].to_pylist(), strict=True))
    loads: Floats = table["load_bps"].to_numpy().reshape(-1, count)
    is_busy = numpy.array([capacity[name] for name in names]) - loads < rate_bps
    rack_of = dict(zip(hosts["host"].to_pylist(), hosts["rack"].to_pylist(), strict=True))

    def interval(times: Floats) -> Ints:
        number: Ints = numpy.clip((times - start[0]) // run.sample_s, 0, len(is_busy) - 1).astype(numpy.int64)
        return number

    begin, end = (interval(blocks[name].to_numpy()) for name in ("placed_s", "finished_s"))
    result = numpy.zeros(len(blocks), dtype=bool)
    for at, copies in enumerate(blocks["hosts"].to_pylist()):
        hops = pairwise(rack_of[host] for host in copies)
        links = [
            column[name]
            for source, target in hops
            if source != target
            for name in (f"{source}:uplink", f"{target}:downlink")
        ]
        result[at] = bool(is_busy[begin[at] : end[at] + 1, links].any())
    return result
