"""Figures of papers: this module runs their sweeps and experiments, and makes their rows and pictures."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward import data
from leeward.demo import TRACES
from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.outcomes import outcomes
from leeward_reproduce.rows import Row, missing_row
from leeward_reproduce.sweeps import Cells, Sweep, perform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True)
class Experiment:
    """An experiment that is not a sweep of a scenario, run once for each seed."""

    name: str
    run: Callable[[int, bool], Any]
    """Runs the experiment with a seed. The flag is True for a short run. Several seeds may run at once."""


class Results(dict[Sweep, Cells]):
    """Finished cells of all sweeps, and results of experiments."""

    def __init__(self) -> None:
        """Starts without results."""
        self.outcomes: dict[Experiment, list[Any]] = {}
        """Results of each experiment, seed by seed."""


Draw = Callable[[Results, list[Row]], "Picture"]


@dataclass(frozen=True)
class Figure:
    """A figure of a paper, a section of its text, or an experiment beyond it."""

    title: str
    sweeps: tuple[Sweep, ...]
    rows: Callable[[Results], list[Row]]
    draw: Draw | None = None
    experiments: tuple[Experiment, ...] = ()


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs of the figures."""
    return sum(sweep.cells(seeds) for sweep in _sweeps(selection)) + seeds * len(_experiments(selection))


def _sweeps(selection: Mapping[str, Figure]) -> list[Sweep]:
    """Sweeps of the figures without duplicates; sweeps with missing traces are left out."""
    needed = dict.fromkeys(sweep for figure in selection.values() for sweep in figure.sweeps)
    return [sweep for sweep in needed if not (sweep.traces and _absent_trace())]


def _experiments(selection: Mapping[str, Figure]) -> list[Experiment]:
    """Experiments of the figures without duplicates."""
    return list(dict.fromkeys(one for figure in selection.values() for one in figure.experiments))


def _absent_trace() -> str | None:
    """First missing public trace; None if all are present."""
    folder = data.data_folder()
    absent = [name for name in TRACES if folder is None or not (folder / name).is_file()]
    return absent[0] if absent else None


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs sweeps and experiments of figures, and makes rows; see `leeward_reproduce.perform.reproduce`."""
    sweeps, experiments = _sweeps(selection), {one.name: one for one in _experiments(selection)}
    total = runs(selection, inputs.seeds)
    results = Results()
    done = 0
    for sweep in sweeps:
        shares: dict[int, float] = {}
        before = done

        def report(cell: int, share: float, shares: dict[int, float] = shares, before: int = before) -> None:
            shares[cell] = share
            if progress:
                progress((before + sum(list(shares.values()))) / total)

        with _horizon_errors(inputs.horizon):
            results[sweep] = perform(
                sweep, inputs.seeds, jobs, out / results_folder.SWEEPS, inputs.horizon, report
            )
        done += sweep.cells(inputs.seeds)
    tasks = [(name, seed) for name in experiments for seed in range(1, inputs.seeds + 1)]
    outcomes_by_name = outcomes(
        tasks,
        lambda name, seed: experiments[name].run(seed, inputs.horizon is not None),
        jobs,
        None if progress is None else lambda share: progress((done + share * len(tasks)) / total),
    )
    results.outcomes = {one: outcomes_by_name[name] for name, one in experiments.items()}
    rows: list[Row] = []
    for name, figure in selection.items():
        if any(sweep not in results for sweep in figure.sweeps):
            why = f"there is no {_absent_trace()} in the folder of traces"
            rows.append(missing_row(name, figure.title, "", None, why))
            continue
        new_rows = figure.rows(results)
        has_runs = bool(figure.sweeps or figure.experiments)
        rows += results_folder.mark_rows(new_rows, inputs) if has_runs else new_rows
        if keep and figure.draw:
            draw = (
                partial(figure.draw, results, new_rows)
                if any(row.ours is not None for row in new_rows)
                else None
            )
            drawing.write(out / results_folder.PICTURES, name, draw)
    return rows


@contextmanager
def _horizon_errors(horizon: str | None) -> Iterator[None]:
    """Reports an invalid horizon as an error of the argument `horizon`, not of a setting of a scenario."""
    try:
        yield
    except InputError as error:
        # All other settings are valid constants.
        if horizon is None or not error.file.startswith("settings "):
            raise
        raise InputError.about("horizon", f"`{horizon}`: {error.message}") from None
