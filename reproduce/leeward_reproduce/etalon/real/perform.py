"""Runs Etalon's files of HDFS with Hadoop in the lab, and makes the rows of results."""

from collections.abc import Callable, Mapping
from pathlib import Path

from leeward.errors import InputError
from leeward_reproduce import results_folder
from leeward_reproduce.etalon.files import KINDS
from leeward_reproduce.etalon.real import figures
from leeward_reproduce.etalon.real.bench import SYSTEMS, Bench
from leeward_reproduce.real.figures import ResultsFigure, make_rows
from leeward_reproduce.rows import Row

__all__ = ["ALIASES", "FIGURES", "SEEDS", "Figure", "check_horizon", "make", "runs"]

SIZE = "100MiB"
"""Size of each file. It is less than the paper's 400 MiB, because a virtual second takes ten minutes."""
SEEDS = 1
"""Number of seeds: real kernels repeat no run."""


Figure = ResultsFigure[figures.Runs]
"""A figure of the paper, of the runs of all systems."""

FIGURES = {"19": Figure("files of HDFS, by TestDFSIO", figures.writes)}
"""Figures by their names in `--figure`; `ALIASES` has more names."""
ALIASES = {name: ["19"] for name in ("20", "21", "22")}


def check_horizon(horizon: str) -> None:
    """Rejects any length of runs.

    Raises:
        InputError: In all cases.
    """
    raise InputError.about(
        "horizon", f"`{horizon}`: these runs end when their files are written; leave it out"
    )


def runs(_selection: Mapping[str, Figure], _seeds: int) -> int:
    """Number of runs with HDFS; all figures share them."""
    return len(SYSTEMS) * len(KINDS)


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the systems that the folder does not have; see `leeward_reproduce.perform.reproduce`.

    Raises:
        InputError: `jobs` or the number of seeds is not 1.
        OSError: A run is absent, and HDFS cannot run in a lab on this machine.
    """
    for name, value in (("jobs", jobs), ("seeds", inputs.seeds)):
        if value not in (None, 1):
            raise InputError.about(name, f"{value}: the lab makes one run at a time, and each once")
    results = Bench(out / results_folder.SWEEPS, SIZE, progress or (lambda _: None)).runs()
    return make_rows(selection, results, inputs, out, keep)
