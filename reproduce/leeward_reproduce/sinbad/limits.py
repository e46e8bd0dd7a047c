"""Limits of a full block: its disk alone, a disk that others write to, or a busy link.

The limits are counted in the tables of runs; the counts explain differences from the paper. The limit of a
block is `the disk alone` if the block took at most 1 % longer than a disk takes for it. Otherwise the limit
is the first of these conditions that is true:

* A link into a rack of its copies was busy while the block was written.
* The link out of the writer's rack was busy while the block was written.
* Another block was written at the same time to a disk of its copies.
* Another block was written at the same time to the writer's own disk.

A link is busy in an interval if all its traffic, including the block, leaves less than a disk's rate free.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy
import pyarrow
from pyarrow import compute

from leeward._arrays import Floats, Ints
from leeward.sweep.cell import SAME_WITHIN
from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.sinbad.sweeps import (
    DISK_BPS,
    HOUR,
    OPT,
    RACK_LINK_BPS,
    REMOTE_RACKS,
    WARMUP_S,
    policy,
    short,
)
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (HOUR,)
REASONS = (
    "the disk alone",
    "a busy link into a rack of its copies",
    "a busy link out of the writer's rack",
    "another block on a disk of its copies",
    "another block on the writer's disk",
    "something else",
)
_BUSY = 1 - DISK_BPS / RACK_LINK_BPS
_TOUCH = 0.05
"""Least overlap with another block that counts, as a share of the time that a disk takes for the block."""


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Frequency of each limit of a full block."""
    hour, result = results[HOUR], []
    for remote in REMOTE_RACKS:
        for name in ("uniform", "sinbad", OPT, "leeward"):
            outcome = [held_back(hour, policy(name, remote), seed) for seed in hour.seeds]
            result += _rows(f"full blocks, {short(name)}, {remote} remote", [one.reason for one in outcome])
        for name in (OPT, "leeward"):
            uniform = policy("uniform", remote)
            changed = [
                _changed(held_back(hour, policy(name, remote), seed), held_back(hour, uniform, seed))
                for seed in hour.seeds
            ]
            against = f"{short(name)} against uniform, {remote} remote"
            result += _rows(f"blocks that are slower, {against}: held back now", [one for one, _ in changed])
            result += _rows(
                f"blocks that are faster, {against}: held back before", [one for _, one in changed]
            )
    return result


COUNTED = "a count of the limits of blocks (`limits`)"
"""Test of reasons that follow from limits of blocks."""


def words(hour: Cells) -> Reason | None:
    """Reason of factors smaller than the paper's, with numbers; None without full blocks."""
    uniform = policy("uniform", 1)
    results = [one for seed in hour.seeds if len((one := held_back(hour, uniform, seed)).reason)]
    if not results:
        return None
    alone = numpy.mean([(one.reason == 0).mean() for one in results])
    into = numpy.mean([(one.reason == 1).mean() for one in results])
    most = numpy.mean([one.time.mean() / one.least.mean() for one in results])
    text = (
        f"under uniform {100 * alone:.0f} % of full blocks go at the disk's rate already, and"
        f" {100 * into:.1f} % meet a busy link into a rack; were all as fast as the disk: {most:.2f}x"
    )
    return Reason(text, "more arrivals (`7.2-load`) and more flows on hot links (`7.2-flows`)")


def share_reasons(cells: Cells, ours: str, base: Cells, uniform: str) -> dict[str, Reason]:
    """Reasons with numbers for the shares of blocks that are faster, as fast and slower than by default.

    Args:
        cells: The sweep of the policy.
        ours: The policy.
        base: The sweep of the default policy, with the same files arriving.
        uniform: The default policy.
    """
    alone, slower = [], []
    for seed in cells.seeds:
        before = held_back(base, uniform, seed)
        if len(before.reason):
            alone.append((before.reason == 0).mean())
            slower.append(_changed(held_back(cells, ours, seed), before)[0])
    reasons = numpy.concatenate(slower) if slower else numpy.array([], dtype=numpy.int64)
    if not len(reasons):
        return {}
    already = f"{100 * numpy.mean(alone):.0f} % of these blocks have the rate of a disk under uniform already"
    at_disk = Reason(already, COUNTED)
    disks = 100 * numpy.isin(reasons, (3, 4)).mean()
    why = Reason(
        f"{disks:.0f} % of them meet another block on a disk, and Sinbad does not consider disks", COUNTED
    )
    return {"faster": at_disk, "same": at_disk, "twice": at_disk, "slower": why}


def _changed(ours: "HeldBack", base: "HeldBack") -> tuple[Ints, Ints]:
    """Limits in `ours` of blocks that are slower there, and in `base` of blocks that are faster in `ours`."""
    _, at, before = numpy.intersect1d(ours.key, base.key, return_indices=True)
    after_s, before_s = ours.time[at], base.time[before]
    slower = ours.reason[at][after_s > before_s * (1 + SAME_WITHIN)]
    return slower, base.reason[before][after_s < before_s * (1 - SAME_WITHIN)]


class HeldBack:
    """Full blocks of a run that were written and whose files began after the warm-up."""

    def __init__(self, cells: Cells, policy: str, seed: int) -> None:
        """Reads the tables of a run and finds the limit of each block."""
        blocks, files = cells.table("blocks", policy, seed), cells.table("files", policy, seed)
        done = blocks.filter(compute.is_valid(blocks["finished_s"]))
        placed, finished = done["placed_s"].to_numpy(), done["finished_s"].to_numpy()
        copies = done["hosts"].combine_chunks()
        hosts = copies.values.dictionary_encode()
        names = hosts.dictionary.to_pylist()
        host: Ints = hosts.indices.to_numpy().astype(numpy.int64)
        block: Ints = numpy.repeat(numpy.arange(len(done)), numpy.diff(copies.offsets.to_numpy()))
        least = done["bytes"].to_numpy() * 8 / DISK_BPS
        busy = shared(host, placed[block], finished[block]) > _TOUCH * least[block]
        first = numpy.concatenate([[True], block[1:] != block[:-1]])
        on_copies, on_writers = numpy.zeros(len(done), dtype=bool), numpy.zeros(len(done), dtype=bool)
        on_copies[block[busy & ~first]] = True
        on_writers[block[busy & first]] = True
        rack = numpy.array([name.partition("h")[0] for name in names])[host]
        links = _Links(cells.table("links", policy, seed))
        into, out = numpy.zeros(len(done), dtype=bool), numpy.zeros(len(done), dtype=bool)
        out[block[first]] = links.busy(rack[first], ":uplink", placed, finished)
        remote = ~first & (rack != rack[first][block])
        remote_block = block[remote]
        start, end = placed[remote_block], finished[remote_block]
        into[remote_block[links.busy(rack[remote], ":downlink", start, end)]] = True
        alone = finished - placed <= (1 + SAME_WITHIN) * least
        reason = numpy.select([alone, into, out, on_copies, on_writers], range(5), 5)
        start = files["start_s"].to_numpy()[done["file"].to_numpy()]
        counted = done["full"].to_numpy(zero_copy_only=False) & (start >= WARMUP_S)
        number = done["file"].to_numpy().astype(numpy.int64) << 32 | done["block"].to_numpy()
        self.key: Ints = number[counted]
        """Identity of a block in every run on the same arrivals."""
        self.time: Floats = (finished - placed)[counted]
        """Seconds from placing to the last copy on disk."""
        self.least: Floats = least[counted]
        """Seconds that a disk takes for the block."""
        self.reason: Ints = reason[counted]
        """Limit of the block, as its position in `REASONS`."""


_KEPT: WeakKeyDictionary[Cells, dict[tuple[str, int], HeldBack]] = WeakKeyDictionary()


def held_back(cells: Cells, policy: str, seed: int) -> HeldBack:
    """Limits of the full blocks of a run; cached for the lifetime of the cells."""
    kept = _KEPT.setdefault(cells, {})
    if (policy, seed) not in kept:
        kept[policy, seed] = HeldBack(cells, policy, seed)
    return kept[policy, seed]


class _Links:
    """Utilization of racks' links, by interval."""

    def __init__(self, links: pyarrow.Table) -> None:
        names = links["link"].to_numpy(zero_copy_only=False)
        start = links["start_s"].to_numpy()
        self.first = float(start[0]) if len(start) else 0.0
        count = int((start == self.first).sum())
        self.length = float(start[count] - self.first) if count < len(start) else 1.0
        self.column = {name: at for at, name in enumerate(names[:count])}
        self.loads: Floats = links["utilization"].to_numpy().reshape(-1, max(count, 1))

    def busy(self, racks: Any, side: str, start: Floats, end: Floats) -> Any:
        """For each rack's link: true if it was busy in any interval between its `start` and `end`."""
        column = numpy.array([self.column[rack + side] for rack in racks], dtype=numpy.int64)
        last = len(self.loads) - 1
        begin = numpy.clip((start - self.first) // self.length, 0, last).astype(numpy.int64)
        stop = numpy.clip((end - self.first) // self.length, 0, last).astype(numpy.int64)
        results = numpy.zeros(len(column), dtype=bool)
        for step in range(int((stop - begin).max(initial=0)) + 1):
            results |= self.loads[numpy.minimum(begin + step, stop), column] > _BUSY
        return results


def shared(host: Ints, start: Floats, end: Floats) -> Floats:
    """For each copy, the sum of the seconds in which each other copy is written to the same host."""
    order = numpy.lexsort((start, host))
    result = numpy.zeros(len(host))
    bounds = numpy.flatnonzero(numpy.diff(host[order])) + 1
    for group in numpy.split(order, bounds):
        begin, stop = start[group], end[group]
        both = numpy.minimum(stop[:, None], stop) - numpy.maximum(begin[:, None], begin)
        numpy.fill_diagonal(both, 0)
        result[group] = numpy.maximum(both, 0).sum(axis=1)
    return result


def _rows(what: str, reasons: list[Ints]) -> list[Row]:
    shares = [numpy.bincount(one, minlength=len(REASONS)) / len(one) for one in reasons if len(one)]
    return [
        measured_row("limits", f"{what} by {reason}", "%", [100 * float(one[at]) for one in shares])
        for at, reason in enumerate(REASONS)
    ]
