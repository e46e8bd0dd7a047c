"""Figures that are made of sweeps: runs what the wanted ones need, and makes their rows and pictures."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from leeward import data
from leeward.demo import TRACES
from leeward.errors import InputError
from leeward.reproduce import drawing, kept
from leeward.reproduce.rows import Row, missing
from leeward.reproduce.sweeps import Cells, Sweep, perform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

Results = Mapping[Sweep, Cells]
"""The finished cells of all sweeps that were run."""
Draw = Callable[[Results, list[Row]], "Picture"]


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, a section of its text, or what it did not ask."""

    title: str
    sweeps: tuple[Sweep, ...]
    rows: Callable[[Results], list[Row]]
    draw: Draw | None = None


def runs(chosen: Mapping[str, Figure], seeds: int) -> int:
    """How many runs the figures take."""
    return sum(sweep.cells(seeds) for sweep in _sweeps(chosen))


def _sweeps(chosen: Mapping[str, Figure]) -> list[Sweep]:
    """What the figures need, each once, as far as there are traces for it."""
    wanted = dict.fromkeys(sweep for figure in chosen.values() for sweep in figure.sweeps)
    return [sweep for sweep in wanted if not (sweep.traces and _absent_trace())]


def _absent_trace() -> str | None:
    """The first of the public traces that is not here."""
    folder = data.found()
    absent = [name for name in TRACES if folder is None or not (folder / name).is_file()]
    return absent[0] if absent else None


def make(
    chosen: Mapping[str, Figure],
    by: kept.Made,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs what figures need and makes their rows; see `leeward.reproduce.perform.reproduce`."""
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
            draw = (
                partial(figure.draw, results, found) if any(row.ours is not None for row in found) else None
            )
            drawing.write(out / kept.PICTURES, name, draw)
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
