"""Runs a reproduction: the sweeps that the wanted figures need, their rows, their pictures."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path

from leeward import data
from leeward.cli.files import whole_file
from leeward.demo import TRACES
from leeward.errors import InputError
from leeward.reproduce import sinbad
from leeward.reproduce.rows import Row, missing
from leeward.reproduce.sinbad.pictures import saved, settings
from leeward.reproduce.sinbad.sweeps import Cells, Sweep, perform
from leeward.reproduce.table import markdown

PAPERS = {"sinbad": sinbad.FIGURES}
"""What can be reproduced: for each paper its figures."""


def reproduce(
    paper: str,
    figures: Sequence[str] | None = None,
    *,
    seeds: int = 10,
    jobs: int | None = None,
    out: str | PathLike[str] | None = None,
    horizon: str | None = None,
    progress: Callable[[float], object] | None = None,
) -> list[Row]:
    """Measures what a paper reports.

    Args:
        paper: One of `PAPERS`.
        figures: Which of its figures; by default all.
        seeds: How many, from 1 on; all policies of a seed see the same arrivals.
        jobs: Runs at once; by default one a processor.
        out: Folder for `rows.json`, `results.md` (the same as tables), `pictures/`, and `sweeps/`, which
            another call goes on from; by default nothing is kept.
        horizon: How long every run is, such as `5min`, for a first look; figures are then not the paper's.
        progress: Called with the share of all runs that is done, from several threads.

    Raises:
        InputError: There is no such paper or figure; or another reproduction writes to `out`.
    """
    chosen = _chosen(paper, figures)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="leeward-") as folder:
            return _reproduce(chosen, seeds, jobs, Path(folder), False, horizon, progress)
    Path(out).mkdir(parents=True, exist_ok=True)
    return _reproduce(chosen, seeds, jobs, Path(out), True, horizon, progress)


def runs(paper: str, figures: Sequence[str] | None, seeds: int) -> int:
    """How many runs the figures take.

    Raises:
        InputError: There is no such paper or figure.
    """
    return sum(sweep.cells(seeds) for sweep in _sweeps(_chosen(paper, figures)))


def _chosen(paper: str, figures: Sequence[str] | None) -> dict[str, sinbad.Figure]:
    known = PAPERS.get(paper)
    if known is None:
        message = f"unknown paper `{paper}`; there is: {', '.join(PAPERS)}"
        raise InputError("paper", None, None, None, message)
    for name in figures or []:
        if name not in known:
            message = f"unknown figure `{name}`; there are: {', '.join(known)}"
            raise InputError("--figure", None, None, None, message)
    return {name: known[name] for name in known if not figures or name in figures}


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
    seeds: int,
    jobs: int | None,
    out: Path,
    keep: bool,
    horizon: str | None,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    sweeps = _sweeps(chosen)
    total = sum(sweep.cells(seeds) for sweep in sweeps)
    results: dict[Sweep, Cells] = {}
    done = 0
    for sweep in sweeps:
        shares: dict[int, float] = {}
        before = done

        def tell(cell: int, share: float, shares: dict[int, float] = shares, before: int = before) -> None:
            shares[cell] = share
            if progress:
                progress((before + sum(list(shares.values()))) / total)

        results[sweep] = perform(sweep, seeds, jobs, out / "sweeps", horizon, tell)
        done += sweep.cells(seeds)
    by_figure: dict[str, tuple[str, list[Row]]] = {}
    for name, figure in chosen.items():
        if any(sweep not in results for sweep in figure.sweeps):
            why = f"there is no {_absent_trace()} in the folder of traces"
            by_figure[name] = figure.title, [missing(name, figure.title, "", None, why)]
            continue
        rows = figure.rows(results)
        by_figure[name] = figure.title, rows
        if keep and figure.draw:
            _draw(figure, name, results, rows, out / "pictures")
    made = [row for _, rows in by_figure.values() for row in rows]
    if keep:
        _write(out / "rows.json", json.dumps([asdict(row) for row in made], indent=1, allow_nan=False) + "\n")
        _write(out / "results.md", markdown(by_figure))
    return made


def _write(path: Path, text: str) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _draw(
    figure: sinbad.Figure, name: str, results: Mapping[Sweep, Cells], rows: Sequence[Row], folder: Path
) -> None:
    assert figure.draw is not None
    folder.mkdir(exist_ok=True)
    with settings():
        pictures = saved(figure.draw(results, rows))
    for kind, content in pictures.items():
        with whole_file(folder / f"{name}.{kind}") as temporary:
            temporary.write_bytes(content)
