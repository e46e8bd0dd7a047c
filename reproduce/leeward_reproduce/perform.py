"""Runs a reproduction: what the wanted figures of a paper need, their rows, their pictures.

Each paper is a module of one shape: its figures by name, how many runs they take, and what makes their rows.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from leeward.errors import InputError, names, whole_number
from leeward.simulation import runs_at_once
from leeward_reproduce import kept
from leeward_reproduce.choreo import perform as choreo
from leeward_reproduce.etalon import perform as etalon
from leeward_reproduce.hotspots import perform as hotspots
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad import perform as sinbad
from leeward_reproduce.slo import perform as slo


class Titled(Protocol):
    """A figure of any paper."""

    @property
    def title(self) -> str:
        """What it shows."""


PAPERS: dict[str, Any] = {
    "sinbad": sinbad,
    "choreo": choreo,
    "hotspots": hotspots,
    "slo": slo,
    "etalon": etalon,
}
"""What can be reproduced."""


def reproduce(
    paper: str,
    figures: Sequence[str] | str | None = None,
    *,
    seeds: int = kept.SEEDS,
    jobs: int | None = None,
    out: str | PathLike[str] | None = None,
    horizon: str | None = None,
    progress: Callable[[float], object] | None = None,
) -> list[Row]:
    """Measures what a paper reports.

    Args:
        paper: One of `PAPERS`.
        figures: Which of its figures; by default all. A text is one name.
        seeds: How many, from 1 on; all policies of a seed see the same arrivals.
        jobs: Runs at once; by default one a processor.
        out: Folder for `rows.json`, `results.md` (the same as tables), `run.json` (what they were made with),
            `pictures/`, and `sweeps/`, which another call goes on from; by default nothing is kept. Another
            call adds its figures to those that are there, if it is of the same seeds and horizon.
        horizon: How long every run is, such as `5min`, for a first look, as notes of rows then say; they are
            not the paper's.
        progress: Called with the share of all runs that is done, from several threads.

    Raises:
        InputError: There is no such paper or figure, or an argument is not right; or another reproduction
            writes to `out`, or it holds something else, or figures of another. Nothing was run then.
    """
    by = check(paper, figures, seeds, jobs, out, horizon)
    chosen = _chosen(paper, figures)
    with nullcontext(out) if out is not None else tempfile.TemporaryDirectory(prefix="leeward-") as folder:
        place = Path(folder)
        rows: list[Row] = PAPERS[paper].make(chosen, by, jobs, place, out is not None, progress)
        if out is not None:
            kept.write(
                place, by, {name: figure.title for name, figure in PAPERS[paper].FIGURES.items()}, rows
            )
    return rows


def check(
    paper: str,
    figures: Sequence[str] | str | None,
    seeds: int,
    jobs: int | None,
    out: str | PathLike[str] | None,
    horizon: str | None,
) -> kept.Made:
    """Checks the arguments of `reproduce`, and says what it makes rows with.

    Raises:
        InputError: One is not right.
    """
    _chosen(paper, figures)
    whole_number("seeds", seeds, 1)
    runs_at_once(jobs)
    if horizon is not None:
        PAPERS[paper].check_horizon(horizon)
    by = kept.making(paper, seeds, horizon)
    if out is not None:
        kept.earlier(Path(out), by)
    return by


def runs(paper: str, figures: Sequence[str] | str | None, seeds: int) -> int:
    """How many runs the figures take.

    Raises:
        InputError: There is no such paper or figure.
    """
    chosen = _chosen(paper, figures)
    return int(PAPERS[paper].runs(chosen, seeds))


def figure_names(paper: str) -> list[str]:
    """All names of figures of a paper."""
    return [*PAPERS[paper].FIGURES, *_within(paper)]


def _within(paper: str) -> Mapping[str, Sequence[str]]:
    """Figures without runs of their own, each with those that show it."""
    return getattr(PAPERS[paper], "WITHIN", {})


def _chosen(paper: str, figures: Sequence[str] | str | None) -> Mapping[str, Titled]:
    if paper not in PAPERS:
        message = f"unknown paper `{paper}`; there are: {', '.join(PAPERS)}"
        raise InputError("paper", None, None, None, message)
    known: Mapping[str, Titled] = PAPERS[paper].FIGURES
    wanted = None if figures is None else names(figures)
    if wanted == []:
        raise InputError("figures", None, None, None, "expected at least one")
    within = _within(paper)
    if wanted is not None:
        for name in wanted:
            if name not in known and name not in within:
                message = f"unknown figure `{name}`; there are: {', '.join(figure_names(paper))}"
                raise InputError("figures", None, None, None, message)
        wanted = [of for name in wanted for of in within.get(name, (name,))]
    return {name: known[name] for name in known if wanted is None or name in wanted}
