"""Runs the experiments that figures of the thesis need, and makes their rows and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.reproduce import drawing, kept
from leeward.reproduce.outcomes import outcomes
from leeward.reproduce.rows import Row, missing
from leeward.reproduce.slo import admission, held_out, packing, pictures, store, world

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the thesis."""

    title: str
    experiment: Callable[[int], Any]
    """What is run under a seed."""
    rows: Callable[[Sequence[Any]], list[Row]]
    """Of what was run under all seeds."""
    draw: Callable[[Sequence[Row]], Any] | None = None
    constants: Callable[[], object] = tuple
    """What outcomes rest on besides traces."""
    most_seeds: int | None = None
    """For experiments that take long: how many seeds at most."""

    def seeds(self, count: int) -> range:
        """The seeds it is run with, of `count`."""
        return range(1, 1 + min(count, self.most_seeds or count))


def _many() -> object:
    return [
        list(world.WAYS),
        packing.MANY,
        packing.WHOLE,
        packing.STAY,
        packing.DEVICES,
        packing.BESIDE,
        packing.TIMED,
    ]


def _one() -> object:
    return [world.COUNTS, world.RANDOM, list(world.WAYS)]


def _admitted() -> object:
    of = admission
    return [of.WORKLOADS, of.CLIENTS, of.SERVERS, of.STORED, of.LINK]


FIGURES = {
    "5.4": Figure(
        "servers under each way to choose limits",
        packing.same_and_random,
        packing.rows_same_and_random,
        pictures.ways,
        _one,
    ),
    "5.5": Figure(
        "held-out halves of workloads with one SLO, replayed",
        held_out.same,
        held_out.rows_same,
        partial(pictures.bars, unit="%", label="within the SLO, %"),
        _one,
    ),
    "5.6": Figure(
        "held-out halves of workloads with random SLOs, replayed",
        held_out.random,
        held_out.rows_random,
        partial(pictures.bars, unit="%", label="within the SLO, %"),
        _one,
    ),
    "5.7": Figure("first fit and fast first fit", packing.fast, packing.rows_fast, None, _many, 3),
    "5.8": Figure("many workloads with one SLO", packing.same, packing.rows_same, pictures.ways, _many),
    "5.9": Figure(
        "many workloads with random SLOs (figure 5.1 too)",
        packing.random,
        packing.rows_random,
        pictures.ways,
        _many,
    ),
    "5.10": Figure("workloads that come and go", packing.visits, packing.rows_visits, pictures.ways, _many),
    "5.11": Figure(
        "SSDs a server",
        packing.devices,
        packing.rows_devices,
        partial(pictures.bars, unit="servers", label="servers"),
        _many,
    ),
    "5.12": Figure("several limiters a stage", packing.several, packing.rows_several, None, _one),
    "4.10": Figure(
        "workloads admitted on networks (figure 4.4 too)",
        admission.network,
        admission.rows_network,
        partial(pictures.bars, unit="workloads", label="workloads"),
        _admitted,
    ),
    "4.16": Figure(
        "workloads admitted with storage",
        admission.storage,
        admission.rows_storage,
        partial(pictures.bars, unit="workloads", label="workloads"),
        _admitted,
    ),
}
"""By the names that `--figure` takes."""


def runs(chosen: Mapping[str, Figure], seeds: int) -> int:
    """How many runs the figures take."""
    return sum(len(figure.seeds(seeds)) for figure in chosen.values())


def check_horizon(horizon: str) -> None:
    """Traces are gone through once.

    Raises:
        InputError: Always.
    """
    raise InputError("horizon", None, None, None, f"`{horizon}`: traces are gone through once; leave it out")


def make(
    chosen: Mapping[str, Figure],
    by: kept.Made,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs what figures need and makes their rows; see `leeward.reproduce.perform.reproduce`."""
    absent = world.absent()
    if absent:
        why = f"there is no {absent} in the folder of traces"
        return [missing(name, figure.title, "", None, why) for name, figure in chosen.items()]
    # Once, and not by several runs at once.
    world.feasible(world.SLOS, tuple(world.WAYS))
    tasks = [(name, seed) for name in chosen for seed in chosen[name].seeds(by.seeds)]
    inputs = world.inputs()

    def outcome(name: str, seed: int) -> Any:
        figure = chosen[name]
        return store.kept(out / kept.SWEEPS, name, seed, [inputs, figure.constants()], figure.experiment)

    made = outcomes(tasks, outcome, jobs, progress)
    rows: list[Row] = []
    for name, figure in chosen.items():
        found = kept.marked(figure.rows(made[name]), by)
        rows += found
        if keep and figure.draw:
            drawing.write(out / kept.PICTURES, name, partial(figure.draw, found))
    return rows
