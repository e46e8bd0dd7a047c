"""Figure 4: share of tasks' time in writing.

A reducer fetches its share of the shuffle and then writes; its write phase begins when it has fetched all,
and ends with the reducer (section 4.2). Other writers of the generator fetch nothing and write all the time.
"""

from collections.abc import Mapping

import numpy

from leeward._arrays import Floats
from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.sweeps import TASKS, WARMUP_S, policy
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (TASKS,)
_FETCHES = Reason(
    "a reducer fetches 4.6 bytes for each that it writes (table 2), at 1 Gb/s against a disk's 0.4"
)


def write_shares(cells: Cells, policy: str, seed: int, reducers: bool) -> Floats:
    """Share of its time that each task of a run spends in writing, sorted."""
    files = cells.table("files", policy, seed)
    start, finished = (files[name].to_numpy(zero_copy_only=False) for name in ("start_s", "finished_s"))
    writing = finished - files["write_start_s"].to_numpy(zero_copy_only=False)
    selection = (files["fetched"].to_numpy() > 0) == reducers
    selection &= (start >= WARMUP_S) & (finished > start)
    return numpy.sort(writing[selection] / (finished - start)[selection])


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 4."""
    result = []
    construction = "by construction: they do nothing but write"
    for reducers, words, reported, note, reason in (
        (True, "reducers", paper.REDUCERS_HALF, "", _FETCHES),
        (False, "other writers", paper.OTHERS_HALF, construction, None),
    ):
        cells = results[TASKS]
        shares = [write_shares(cells, policy("uniform", 1), seed, reducers) for seed in cells.seeds]
        values = [100 * float((one >= 0.5).mean()) for one in shares if len(one)]
        label = f"{words} that spend half of their time in writing or more, uniform, 1 remote"
        result.append(measured_row("4", label, "%", values, reported, note, reason))
    return result
