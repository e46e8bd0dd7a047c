"""Runs Etalon's figures in the lab and makes the rows of results, figure after figure."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.bars import bars
from leeward_reproduce.etalon import perform as simulated
from leeward_reproduce.etalon.kernels import figures
from leeward_reproduce.etalon.kernels.bench import Bench
from leeward_reproduce.rows import Row

__all__ = ["ALIASES", "FIGURES", "SEEDS", "Figure", "check_horizon", "make", "runs"]

PAIR_HORIZON, RING_HORIZON, RINGS_HORIZON, FILE_SIZE = "300ms", "600ms", "450ms", "100MiB"
"""Virtual length of runs of section 4, and of section 5 with one ring and with two, and size of the files of
section 6. They are less than the paper's, because a virtual second takes minutes. Flows of section 5 are
stopped after this time, which bounds by how much one system is faster than another."""


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper."""

    title: str
    rows: Callable[[Bench, str], list[Row]]
    """Measures the rows in runs of a length."""
    scenarios: int
    """Number of scenarios, with those that other figures share."""
    horizon: str = PAIR_HORIZON
    """Default length of its runs."""
    of_size: bool = False
    """True if its runs end by themselves, and have a size of files instead of a length."""


FIGURES = {
    "1": Figure("the lab keeps its times and rates", figures.checks, 3),
    "6a": Figure("circuit utilization by queues that stay", figures.static_used, 6),
    "6b": Figure("circuit utilization by queues that grow", figures.grown_used, 9),
    "7": Figure("median latency", figures.medians, 14),
    "8": Figure("reTCP: utilization and median latency", figures.retcp, 17),
    "9": Figure("tails of latency", figures.tails, 8),
    "10": Figure("improvement by round trips in a day", figures.improvement, 7 * len(figures.TRIPS)),
    "12": Figure("a ring: demand of ADUs and of queues", figures.ring, 2, RING_HORIZON),
    "16": Figure(
        "two rings: completion and bytes by switch",
        figures.two_rings,
        len(figures.RING_SYSTEMS),
        RINGS_HORIZON,
    ),
    "19": Figure("files of HDFS, by a writer of chains", figures.writes, 4, FILE_SIZE, of_size=True),
}
"""Figures by their names in `--figure`; `ALIASES` has more names."""
ALIASES = {
    **{name: ["7"] for name in ("7a", "7b")},
    "6": ["6a", "6b"],
    "13": ["12"],
    "2": ["16"],
    **{name: ["19"] for name in ("20", "21", "22")},
}
check_horizon = simulated.check_horizon
SEEDS = 1
"""Number of seeds: real kernels repeat no run."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs in the lab; there is one for each scenario."""
    return sum(figure.scenarios for figure in selection.values())


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the figures that the folder does not have, one after another: two labs would disturb each other.

    Raises:
        InputError: `jobs` or the number of seeds is not 1.
        OSError: The lab cannot run on this machine.
    """
    for name, value in (("jobs", jobs), ("seeds", inputs.seeds)):
        if value not in (None, 1):
            raise InputError.about(name, f"{value}: the lab makes one run at a time, and each once")
    if os.geteuid() != 0:
        raise PermissionError("the lab requires root: run the command with sudo")
    before = results_folder.read_rows(out, inputs) if keep else []
    known = {row.figure for row in before}
    titles = {name: figure.title for name, figure in FIGURES.items()}
    total, done = max(runs(selection, 1), 1), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(min(done / total, 1.0))

    bench = Bench(advance)
    rows: list[Row] = []
    for name, figure in selection.items():
        if name in known:
            rows += [row for row in before if row.figure == name]
            continue
        horizon = figure.horizon if inputs.horizon is None or figure.of_size else inputs.horizon
        mine = results_folder.mark_rows(figure.rows(bench, horizon), inputs)
        rows += mine
        if keep:
            # Each figure takes minutes: a stopped run keeps those that it has.
            drawing.write(out / results_folder.PICTURES, name, partial(bars, mine))
            results_folder.write(out, inputs, titles, mine)
    return rows
