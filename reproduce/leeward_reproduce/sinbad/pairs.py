"""Comparison of two runs on the same arrivals, write by write, by the factors that the paper reports.

A factor of improvement is the default's time over Sinbad's time; a factor above one is better. The paper
prints the formula (section 7.1) as a reciprocal, but not its numbers. A mean factor is a ratio of mean times,
not a mean of ratios.
"""

from collections.abc import Mapping
from typing import Any

import numpy

from leeward._arrays import Floats, Mask
from leeward.sweep.cell import compare
from leeward_reproduce.sinbad.sweeps import WARMUP_S
from leeward_reproduce.sweeps import Cells


def compared(cells: Cells, ours: str, base_cells: Cells, base: str, since: str) -> list[dict[str, Any]]:
    """Comparison of a policy's full blocks with another's, by seed, by `leeward.sweep.cell.compare`.

    Seeds without a full block that was written in both runs are left out.

    Args:
        cells: The sweep of the policy.
        ours: The policy.
        base_cells: The sweep of the baseline, with the same files arriving.
        base: The baseline.
        since: Start of the time of a block: `asked` or `placed`.
    """
    pairs = (
        compare(cells.writes(ours, seed, since), base_cells.writes(base, seed, since))["full_blocks"]
        for seed in cells.seeds
    )
    return [pair for pair in pairs if pair["count"]]


def quotients(before: Mapping[int, float], after: Mapping[int, float]) -> list[float]:
    """Quotients by seed; seeds that lack one of the two values, or have a zero divisor, are left out."""
    return [value / after[seed] for seed, value in before.items() if after.get(seed, 0.0) > 0]


def quotient(before: Floats, after: Floats) -> list[float]:
    """Sum of `before` over the sum of `after`, as a list; empty for a zero divisor."""
    return [float(before.sum() / after.sum())] if after.sum() > 0 else []


def ratios(cells: Cells, quantity: str, ours: str, base: str, value: str | None = None) -> list[float]:
    """A column of the summaries by seed: the value under the baseline over the value under a policy."""
    return quotients(cells.by_seed(quantity, base, value), cells.by_seed(quantity, ours, value))


def differences(cells: Cells, quantity: str, ours: str, base: str, value: str | None = None) -> list[float]:
    """A column of the summaries by seed: the value under the baseline less the value under a policy."""
    before, after = cells.by_seed(quantity, base, value), cells.by_seed(quantity, ours, value)
    return [before[seed] - after[seed] for seed in before if seed in after]


def writer_times(cells: Cells, policy: str, seed: int) -> Floats:
    """Seconds that each writer of a full block spends in writing, by file: the sum of its blocks' times.

    Times of blocks are from placing. Blocks of a file follow each other, so the sum is the writer's time
    without waiting for decisions. It is NaN for files that have no full block, are unfinished, or began
    before the end of the warm-up.
    """
    blocks, files = cells.table("blocks", policy, seed), cells.table("files", policy, seed)
    times = blocks["finished_s"].to_numpy(zero_copy_only=False) - blocks["placed_s"].to_numpy(
        zero_copy_only=False
    )
    file = blocks["file"].to_numpy()
    sums = numpy.bincount(file, times, len(files))
    full = numpy.bincount(file, blocks["full"].to_numpy(zero_copy_only=False), len(files)) > 0
    done = numpy.isfinite(files["finished_s"].to_numpy(zero_copy_only=False))
    return numpy.where(full & done & (files["start_s"].to_numpy() >= WARMUP_S), sums, numpy.nan)


class Jobs:
    """Jobs of one run, in the order of submission. Times are in seconds, NaN for unfinished jobs."""

    def __init__(self, cells: Cells, policy: str, seed: int) -> None:
        """Reads the tables of a run."""
        jobs = cells.table("jobs", policy, seed)

        def column(name: str) -> Floats:
            return numpy.asarray(jobs[name].to_numpy(zero_copy_only=False), dtype=numpy.float64)

        finished, first = column("finished_s"), column("write_start_s")
        self.bin = column("bin")
        """Bin from 1 to 5, by the job's share of time in writing in this run (table 3)."""
        self.bytes = column("bytes")
        """Bytes written."""
        self.time = finished - column("start_s")
        """From submission to the last write."""
        self.writing = finished - first
        """From the first write to the last."""
        self.counted: Mask = (first >= WARMUP_S) & numpy.isfinite(self.time)


def job_pairs(cells: Cells, ours: str, base_cells: Cells, base: str) -> list[tuple[Jobs, Jobs, Mask]]:
    """For each seed: jobs under a policy, jobs under a baseline, and a mask of those that count in both."""
    result = []
    for seed in cells.seeds:
        after, before = Jobs(cells, ours, seed), Jobs(base_cells, base, seed)
        result.append((after, before, after.counted & before.counted))
    return result
