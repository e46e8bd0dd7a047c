"""Rows of Etalon's figures of files: the paper, the simulator, HDFS in the lab, and what is expected."""

from collections.abc import Callable, Mapping

import numpy

from leeward_reproduce.etalon import paper
from leeward_reproduce.etalon.files import WriteRun
from leeward_reproduce.etalon.kernels.bench import Both
from leeward_reproduce.etalon.kernels.expected import Values, row
from leeward_reproduce.etalon.kernels.figures import TAILS, write_rows
from leeward_reproduce.rows import NOT_EXPLAINED, Row

_JOB = (
    "the time of writes alone, from the start of the first one; mappers of different hosts begin up to some"
    " seconds of real time apart; the paper's is of MapReduce's whole job"
)
_LONGEST = (
    "files of 100 MiB; with the paper's 400 MiB the simulator has 4.36x; the rest as there: flows share a"
    " circuit unevenly"
)
_REMARKS = {TAILS: f"that of reHDFS, which is a quarter shorter here on each network; {NOT_EXPLAINED}"}
"""Differences from the simulator whose reasons were not tested."""
Runs = Mapping[str, Both[WriteRun]]


def writes(runs: Runs) -> list[Row]:
    """Figures 19 to 22."""
    longest = _values(runs, lambda one, other: _longest(one) / _longest(other))
    shorter = _values(runs, lambda one, other: 100 * (1 - other.job / one.job))
    rows = [
        *write_rows(runs, "real", _REMARKS),
        row(
            "19",
            "writes faster under reHDFS: longest",
            "x",
            longest,
            paper=paper.FILES_GAINS[2],
            reason=_LONGEST,
        ),
        row("19", "job shorter under reHDFS", "%", shorter, paper=paper.FILES_JOB, note=_JOB),
    ]
    for name, both in runs.items():
        values = Values(both.simulator.racks, both.lab.racks if both.lab else None)
        rows.append(row("19", f"other racks with copies of a rack: {name}", "", values))
    return rows


def _values(runs: Runs, compare: Callable[[WriteRun, WriteRun], float]) -> Values:
    """A comparison of HDFS and reHDFS, in this order."""
    default, ring = runs["HDFS"], runs["reHDFS"]
    measured = compare(default.lab, ring.lab) if default.lab and ring.lab else None
    return Values(compare(default.simulator, ring.simulator), measured)


def _longest(run: WriteRun) -> float:
    return float(numpy.max(run.writes))
