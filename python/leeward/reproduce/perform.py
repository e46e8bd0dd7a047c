"""Runs a reproduction: the sweeps that the wanted figures need, their rows, their pictures."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path

from leeward import data
from leeward.demo import TRACES
from leeward.errors import InputError, names, whole_number
from leeward.files import whole_file
from leeward.reproduce import kept, sinbad
from leeward.reproduce.rows import Row, missing
from leeward.reproduce.sinbad.pictures import saved, settings
from leeward.reproduce.sinbad.sweeps import Cells, Sweep, check_horizon, perform
from leeward.simulation import runs_at_once

PAPERS = {"sinbad": sinbad.FIGURES}
"""What can be reproduced: for each paper its figures."""


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
        rows = _reproduce(chosen, by, jobs, place, out is not None, progress)
        if out is not None:
            kept.write(place, by, {name: figure.title for name, figure in PAPERS[paper].items()}, rows)
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
        check_horizon(horizon)
    by = kept.making(paper, seeds, horizon)
    if out is not None:
        kept.earlier(Path(out), by)
    return by


def runs(paper: str, figures: Sequence[str] | str | None, seeds: int) -> int:
    """How many runs the figures take.

    Raises:
        InputError: There is no such paper or figure.
    """
    return sum(sweep.cells(seeds) for sweep in _sweeps(_chosen(paper, figures)))


def _chosen(paper: str, figures: Sequence[str] | str | None) -> dict[str, sinbad.Figure]:
    known = PAPERS.get(paper)
    if known is None:
        message = f"unknown paper `{paper}`; there is: {', '.join(PAPERS)}"
        raise InputError("paper", None, None, None, message)
    wanted = None if figures is None else names(figures)
    if wanted == []:
        raise InputError("figures", None, None, None, "expected at least one")
    for name in wanted or []:
        if name not in known:
            message = f"unknown figure `{name}`; there are: {', '.join(known)}"
            raise InputError("figures", None, None, None, message)
    return {name: known[name] for name in known if wanted is None or name in wanted}


def _sweeps(chosen: Mapping[str, sinbad.Figure]) -> list[Sweep]:
    """What the figures need, each once, as far as there are traces for it."""
    wanted = dict.fromkeys(sweep for figure in chosen.values() for sweep in figure.sweeps)
    return [sweep for sweep in wanted if not (sweep.traces and _absent_trace())]


def _absent_trace() -> str | None:
    """The first of the public traces that is not here."""
    folder = data.found()
    absent = [name for name in TRACES if folder is None or not (folder / name).is_file()]
    return absent[0] if absent else None


def _reproduce(
    chosen: Mapping[str, sinbad.Figure],
    by: kept.Made,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    sweeps = _sweeps(chosen)
    total = sum(sweep.cells(by.seeds) for sweep in sweeps)
    results: dict[Sweep, Cells] = {}
    done = 0
    for sweep in sweeps:
        shares: dict[int, float] = {}
        before = done

        def tell(cell: int, share: float, shares: dict[int, float] = shares, before: int = before) -> None:
            shares[cell] = share
            if progress:
                progress((before + sum(list(shares.values()))) / total)

        with _of_horizon(by.horizon):
            results[sweep] = perform(sweep, by.seeds, jobs, out / kept.SWEEPS, by.horizon, tell)
        done += sweep.cells(by.seeds)
    rows: list[Row] = []
    for name, figure in chosen.items():
        if any(sweep not in results for sweep in figure.sweeps):
            why = f"there is no {_absent_trace()} in the folder of traces"
            rows.append(missing(name, figure.title, "", None, why))
            continue
        found = figure.rows(results)
        rows += kept.marked(found, by) if figure.sweeps else found
        if keep and figure.draw:
            _draw(figure, name, results, found, out / kept.PICTURES)
    return rows


@contextmanager
def _of_horizon(horizon: str | None) -> Iterator[None]:
    """Lets what is wrong with the horizon be wrong with that argument, and not with a scenario of ours."""
    try:
        yield
    except InputError as error:
        # All else that is set is ours, and right.
        if horizon is None or not error.file.startswith("settings "):
            raise
        raise InputError("horizon", None, None, None, f"`{horizon}`: {error.message}") from None


def _draw(
    figure: sinbad.Figure, name: str, results: Mapping[Sweep, Cells], rows: Sequence[Row], folder: Path
) -> None:
    """Draws a figure of which there is anything to draw; one of an earlier call does not stay beside it."""
    assert figure.draw is not None
    pictures: Mapping[str, bytes] = {}
    if any(row.ours is not None for row in rows):
        with settings():
            pictures = saved(figure.draw(results, rows))
        folder.mkdir(parents=True, exist_ok=True)
    for kind in ("svg", "png"):
        path = folder / f"{name}.{kind}"
        if kind not in pictures:
            path.unlink(missing_ok=True)
            continue
        with whole_file(path) as temporary:
            temporary.write_bytes(pictures[kind])
