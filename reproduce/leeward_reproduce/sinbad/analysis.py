"""The paper's formulas: equations (2) to (5) compared with the simulation, and figure 12.

A link l has the available capacity AC(l) = min(Cap(l) - U(l), DiskWriteCap). The mean time of a block is::

    (3) under uniform placement   Size / |L| x sum over l of 1 / AC(l)
    (2) under OPT                 Size x sum over l of f(l) / AC(l)

L is the set of the racks' downlinks, and f(l) is the share of the blocks that cross l. The paper prints
equation (4), the improvement, as a reciprocal; here it is (3) over (2). Over several intervals, the
improvement (5) is the sum of (3) over the sum of (2).

U(l) is the background: the load of the link less the blocks themselves, each spread evenly over its time. A
greedy assignment determines f: each block takes the link with the most capacity left, and its rate reduces
the capacity for the next blocks of the interval.
"""

import heapq
from collections.abc import Mapping
from itertools import pairwise
from math import comb

import numpy
from pyarrow import compute

from leeward._arrays import Floats
from leeward_reproduce.rows import Row, computed_row, measured_row
from leeward_reproduce.sinbad.pairs import compared
from leeward_reproduce.sinbad.sweeps import DISK_BPS, HOUR, OPT, RACK_LINK_BPS, WARMUP_S, policy, short
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (HOUR,)
RACKS = 150
CONTENDED = (0.02, 0.04, 0.10, 0.20)
"""Shares of contended links, one for each line of figure 12; the paper's text does not state its shares."""
COPIES = range(1, 11)


def slowdown(contended: int, copies: int, racks: int = RACKS) -> float:
    """Probability that any of the off-rack copies crosses a contended link under uniform placement (A.2)."""
    return 1 - comb(racks - contended, copies) / comb(racks, copies)


def approximation(share: float, copies: int) -> float:
    """Probability that any copy crosses a contended link if copies could share a rack."""
    return 1 - (1 - share) ** copies


def slowdown_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 12, from its formula alone."""
    result = []
    for share in CONTENDED:
        for copies in (1, 2, 3, 10):
            count = round(share * RACKS)
            label = f"slowdown under uniform, {copies} off-rack copies, {count} of {RACKS} links contended"
            result.append(computed_row("12", label, "%", 100 * slowdown(count, copies)))
            label = f"the same by 1 - (1 - {count}/{RACKS})^{copies}"
            result.append(computed_row("12", label, "%", 100 * approximation(count / RACKS, copies)))
    return result


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Results of equations (2) and (3) and their ratio, compared with the simulation."""
    hour, uniform = results[HOUR], policy("uniform", 1)
    by_uniform, by_opt, predicted = [], [], []
    simulated: dict[str, list[float]] = {uniform: [], policy(OPT, 1): []}
    for seed in hour.seeds:
        background = background_of(hour, uniform, seed)
        default, opt = predict(background, arrivals_of(hour, uniform, seed, len(background)))
        # A seed without full blocks has no prediction.
        if opt > 0:
            by_uniform.append(default)
            by_opt.append(opt)
            predicted.append(default / opt)
        for name in simulated:
            simulated[name] += _mean_time(hour, name, seed)
    factors = [pair["factor"] for pair in compared(hour, policy(OPT, 1), hour, uniform, "placed")]
    note = "disks that blocks share, racks' uplinks and changes of the background are not in the equations"
    label = f"simulated, {short(OPT)}, q = 10 s, from placing, 1 remote"
    return [
        _row("mean time of a full block under uniform, by (3)", "s", by_uniform),
        _row("simulated, uniform, 1 remote", "s", simulated[uniform], note),
        _row("mean time of a full block under OPT, by (2)", "s", by_opt),
        _row(label, "s", simulated[policy(OPT, 1)], note),
        _row("improvement, by (3) over (2)", "x", predicted),
        _row("improvement, simulated", "x", factors, note),
    ]


def _row(quantity: str, unit: str, values: list[float], note: str = "") -> Row:
    return measured_row("equations", quantity, unit, values, None, note)


def predict(background: Floats, arrivals: Floats) -> tuple[float, float]:
    """Mean seconds of a full block by equations (3) and (2).

    Args:
        background: Load of each link without the blocks, in bit/s, by interval and link.
        arrivals: Number of full blocks placed in each interval.
    """
    block = 256 * 2**20 * 8
    default, opt, placed = 0.0, 0.0, 0.0
    for used, count in zip(background, arrivals, strict=True):
        available = RACK_LINK_BPS - used
        default += float(count * block * numpy.mean(1 / numpy.minimum(available, DISK_BPS)))
        opt += sum(block / rate for rate in _greedy_rates(available, int(count)))
        placed += float(count)
    return default / max(placed, 1), opt / max(placed, 1)


def _greedy_rates(available: Floats, count: int) -> list[float]:
    """Rates of blocks that are placed one after the other, each on the link with the most capacity left."""
    # The heap returns its smallest item first, so capacities are negated.
    heap = [(-float(capacity), link) for link, capacity in enumerate(available)]
    heapq.heapify(heap)
    rates = []
    for _ in range(count):
        negative, link = heap[0]
        rate = min(-negative, DISK_BPS)
        rates.append(max(rate, 1.0))
        heapq.heapreplace(heap, (negative + rate, link))
    return rates


def background_of(cells: Cells, policy: str, seed: int) -> Floats:
    """Load of the racks' downlinks without the blocks, in bit/s, by interval and rack."""
    links = cells.table("links", policy, seed)
    down = links.filter(compute.equal(links["kind"], "rack_downlink"))
    start = down["start_s"].to_numpy()
    count = int((start == start[0]).sum())
    loads: Floats = down["load_bps"].to_numpy().reshape(-1, count)
    length = float(start[count] - start[0]) if count < len(start) else 10.0
    column = {name: at for at, name in enumerate(down["link"].to_pylist()[:count])}
    own = numpy.zeros_like(loads)
    blocks = cells.table("blocks", policy, seed)
    blocks = blocks.filter(compute.is_valid(blocks["finished_s"]))
    chains, size = blocks["hosts"].to_pylist(), blocks["bytes"].to_numpy() * 8.0
    begin, end = blocks["placed_s"].to_numpy(), blocks["finished_s"].to_numpy()
    for at, chain in enumerate(chains):
        racks = [host.partition("h")[0] for host in chain]
        rate = size[at] / max(end[at] - begin[at], 1e-9)
        for before, rack in pairwise(racks):
            if rack != before:
                _spread(
                    own[:, column[f"{rack}:downlink"]], begin[at] - start[0], end[at] - start[0], rate, length
                )
    return numpy.clip(loads - own, 0.0, 0.95 * RACK_LINK_BPS)


def _spread(into: Floats, begin: float, end: float, rate: float, length: float) -> None:
    """Adds a rate between two times to the mean rates of intervals."""
    first, last = max(int(begin // length), 0), min(int(end // length), len(into) - 1)
    for at in range(first, last + 1):
        into[at] += rate * max(min(end, (at + 1) * length) - max(begin, at * length), 0.0) / length


def arrivals_of(cells: Cells, policy: str, seed: int, intervals: int) -> Floats:
    """Number of full blocks that are placed in each interval."""
    blocks = cells.table("blocks", policy, seed)
    full = blocks.filter(blocks["full"])
    at = (full["placed_s"].to_numpy(zero_copy_only=False) - WARMUP_S) // 10.0
    at = at[(at >= 0) & (at < intervals)].astype(numpy.int64)
    return numpy.bincount(at, minlength=intervals).astype(numpy.float64)


def _mean_time(cells: Cells, policy: str, seed: int) -> list[float]:
    """Mean time of a run's full blocks from their placement, as a list; empty without such blocks."""
    writes = cells.writes(policy, seed, "placed")
    full = writes.filter(writes["full"]).filter(writes["counted"].filter(writes["full"]))
    times = full["time_s"].drop_null().to_numpy()
    return [float(times.mean())] if len(times) else []
