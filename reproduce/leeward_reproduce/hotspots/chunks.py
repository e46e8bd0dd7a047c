"""CCP: figure 14, the share of chunk requests that went to each class of uplink, by the ToR's utilization."""

import math
from collections.abc import Callable, Iterable

import numpy

from leeward._arrays import Floats
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots.requests import CLASSES, Requests, reads, writes
from leeward_reproduce.hotspots.sweeps import CHUNKS, CHUNKS_LOADS, STORAGE
from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.sweeps import Cells

SWEEPS = (CHUNKS,)
BUCKET = 0.05
BUCKETS = 20
LOW, HOT = 0.2, 0.75
"""Utilization below which a ToR is lightly loaded, and utilization above which it is hot."""
KINDS: dict[str, Callable[..., Requests]] = {"reads": reads, "writes": writes}
_NO_NUMBERS = "the paper: nearly all, in a figure without numbers"


def shares(cells: Cells, policy: str, kind: str) -> Floats:
    """Percent of the requests of each bucket that went to each class; NaN in buckets without requests.

    Returns:
        Shape (buckets, classes), over all seeds and loads.
    """
    return bucket_shares(
        KINDS[kind](cells, STORAGE, policy, seed, load) for seed in cells.seeds for load in CHUNKS_LOADS
    )


def bucket_shares(runs: Iterable[Requests]) -> Floats:
    """Percent of the requests of each bucket that went to each class, over all runs; NaN without requests.

    Returns:
        Shape (buckets, classes).
    """
    counts = numpy.zeros((BUCKETS, len(CLASSES)))
    for results in runs:
        bucket = numpy.minimum((results.utilization / BUCKET).astype(int), BUCKETS - 1)
        numpy.add.at(counts, (bucket, results.kind), 1)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        result: Floats = 100 * counts / counts.sum(axis=1, keepdims=True)
    return result


def rows(results: Results) -> list[Row]:
    """Figure 14, before and after CCP, and the effect of CCP on hot ToRs and on stored bytes."""
    cells, result = results[CHUNKS], []
    for policy in ("uniform", "ccp", "leeward"):
        for kind, find in KINDS.items():
            by_seed = [_pooled(cells, policy, seed, find) for seed in cells.seeds]
            for words, least, most, at in (
                (f"at ToRs below {LOW:.0%} that went to High", 0.0, LOW, 0),
                (f"at ToRs over {HOT:.0%} that went to Low", HOT, math.inf, 2),
            ):
                selection = [
                    one.kind[(one.utilization >= least) & (one.utilization < most)] for one in by_seed
                ]
                values = [100 * float((one == at).mean()) for one in selection if len(one)]
                note = _NO_NUMBERS if policy == "uniform" else ""
                result.append(measured_row("14", f"{kind} {words}, {policy}", "%", values, None, note))
            values = [100 * float((one.utilization > HOT).mean()) for one in by_seed if len(one.kind)]
            result.append(measured_row("14", f"{kind} at ToRs over {HOT:.0%}, {policy}", "%", values))
    for policy in ("uniform", "ccp", "leeward"):
        values = [cells.by_seed("rack_storage_cv", policy, CHUNKS_LOADS[-1])[seed] for seed in cells.seeds]
        note = "a rule by capacity alone makes stored bytes less even" if policy == "ccp" else ""
        label = f"Cv of bytes stored over racks at the end, all racks, {policy}"
        result.append(measured_row("14", label, "", values, None, note))
    return result


def _pooled(cells: Cells, policy: str, seed: int, find: Callable[..., Requests]) -> Requests:
    """Requests of one seed under all loads."""
    results = [find(cells, STORAGE, policy, seed, load) for load in CHUNKS_LOADS]
    columns = [(one.utilization, one.kind) for one in results]
    return Requests(*(numpy.concatenate(several) for several in zip(*columns, strict=True)))
