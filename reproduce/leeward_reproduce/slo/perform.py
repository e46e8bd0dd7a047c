"""Runs the experiments that figures of the thesis need, and makes their rows and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.outcomes import outcomes
from leeward_reproduce.rows import Row, missing_row
from leeward_reproduce.slo import (
    admission,
    analyses,
    bottleneck,
    bursts,
    caches,
    held_out,
    misbehaving,
    optimum,
    packing,
    pictures,
    profile,
    schedulers,
    store,
    workloads,
)

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure of the thesis."""

    title: str
    experiment: Callable[[int], Any]
    """Runs it under a seed."""
    rows: Callable[[Sequence[Any]], list[Row]]
    """Makes rows of the runs under all seeds."""
    draw: Callable[[Sequence[Row]], Any] | None = None
    constants: Callable[[], object] = tuple
    """Inputs of outcomes besides traces."""
    most_seeds: int | None = None
    """Greatest number of seeds of a long experiment."""
    released: bool = True
    """True if it needs the released traces."""

    def seeds(self, count: int) -> range:
        """Its seeds, of `count`."""
        return range(1, 1 + min(count, self.most_seeds or count))


def _many() -> object:
    return [
        list(workloads.WAYS),
        packing.MANY,
        packing.WHOLE,
        packing.STAY,
        packing.DEVICES,
        packing.BESIDE,
        packing.TIMED,
    ]


def _one() -> object:
    return [workloads.COUNTS, workloads.RANDOM, list(workloads.WAYS)]


def _drawn() -> object:
    of = caches
    return [of.TRACES, of.SECONDS, of.SEED, of.PACKET, of.SMALL, of.WORKLOADS, of.CLIENTS, of.SERVERS]


def _analysed() -> object:
    of = analyses
    return [_drawn(), of.ON_PATH, of.SEVEN, of.DEPENDENT, of.NINES, of.SIZES, optimum.SCALES]


def _admitted() -> object:
    of = admission
    return [_drawn(), of.STORED, of.SETS, of.LOAD]


FIGURES = {
    "2.3": Figure(
        "profile of an SSD",
        profile.table,
        profile.rows,
        profile.picture,
        profile.constants,
        1,
        released=False,
    ),
    "3.1": Figure(
        "violations over time",
        schedulers.over_time,
        schedulers.rows_over_time,
        None,
        schedulers.constants,
        released=False,
    ),
    "3.2": Figure(
        "one limit or three for a workload that misbehaves",
        misbehaving.limited,
        misbehaving.rows_limited,
        partial(pictures.bars, unit="%", label="seeds with both within their SLO, %"),
        misbehaving.constants,
        released=False,
    ),
    "3.3": Figure(
        "SLOs on a shared disk by scheduler (figure 3.4 too)",
        schedulers.shared,
        schedulers.rows_shared,
        partial(pictures.bars, unit="workloads", label="workloads within their SLO, of three"),
        schedulers.constants,
        released=False,
    ),
    "3.5": Figure(
        "burstiness",
        schedulers.bursts,
        schedulers.rows_bursts,
        partial(
            pictures.bars, unit="ms", label="latency, ms", line=1000 * schedulers.BURSTY_SLO, words="SLO"
        ),
        schedulers.constants,
        released=False,
    ),
    "3.6": Figure(
        "a workload beside one that misbehaves",
        misbehaving.isolated,
        misbehaving.rows_isolated,
        None,
        misbehaving.constants,
        released=False,
    ),
    "3.7": Figure(
        "links that are short",
        bottleneck.bottleneck,
        bottleneck.rows,
        partial(pictures.bars, unit="workloads", label="workloads within their SLO, of four"),
        bottleneck.constants,
        released=False,
    ),
    "3.8": Figure(
        "a poor model of the disk",
        schedulers.poor_model,
        schedulers.rows_poor_model,
        None,
        schedulers.constants,
        released=False,
    ),
    "3.9": Figure(
        "all orders of three SLOs",
        schedulers.orders,
        schedulers.rows_orders,
        partial(pictures.bars, unit="orders", label="orders of six with all within"),
        schedulers.constants,
        released=False,
    ),
    "4.2": Figure(
        "three traces together against the sum of their peaks",
        bursts.together,
        bursts.rows_together,
        None,
        _drawn,
    ),
    "4.7": Figure(
        "the three analyses on one path",
        analyses.methods,
        analyses.rows_methods,
        partial(pictures.bars, unit="x", label="bound over SNC-Meister's"),
        _analysed,
    ),
    "4.8": Figure(
        "workloads that depend on one another",
        analyses.dependence,
        analyses.rows_dependence,
        partial(pictures.bars, unit="x", label="bound over DNC's", line=1.0, words="DNC"),
        _analysed,
    ),
    "4.9": Figure("peaks over means", bursts.ratios, bursts.rows_ratios, None, _drawn, 1),
    "4.10": Figure(
        "workloads admitted on networks (figure 4.4 too)",
        admission.network,
        admission.rows_network,
        partial(pictures.bars, unit="workloads", label="workloads"),
        _admitted,
    ),
    "4.11": Figure(
        "admission against the optimum",
        optimum.optimum,
        optimum.rows_optimum,
        partial(pictures.bars, unit="%", label="admitted of OPT, %"),
        _analysed,
    ),
    "4.12": Figure("small requests beside large ones", optimum.small, optimum.rows_small, None, _analysed),
    "4.13": Figure("bounds by nines of the percentile", analyses.nines, analyses.rows_nines, None, _analysed),
    "4.14": Figure("time of all bounds", analyses.clock, analyses.rows_clock, None, _analysed),
    "4.15": Figure("admission on larger clusters", optimum.scale, optimum.rows_scale, None, _analysed),
    "4.16": Figure(
        "workloads admitted with storage",
        admission.storage,
        admission.rows_storage,
        partial(pictures.bars, unit="workloads", label="workloads"),
        _admitted,
    ),
    "4.17": Figure(
        "workloads admitted with storage, at 99.9 % and 90 % (figure 4.18 too)",
        admission.percentiles,
        admission.rows_percentiles,
        partial(pictures.bars, unit="%", label="%"),
        _admitted,
    ),
    "4.19": Figure(
        "workloads admitted with storage, over sets of SLOs",
        admission.mixtures,
        admission.rows_mixtures,
        None,
        _admitted,
    ),
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
    "5.8": Figure(
        "many workloads with one SLO (figure 5.1 too)", packing.same, packing.rows_same, pictures.ways, _many
    ),
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
}
"""Figures by the names of `--figure`."""

WITHIN = {"3.4": ("3.3",), "4.4": ("4.10",), "4.18": ("4.17",), "5.1": ("5.8", "5.9")}
"""Figures of the thesis that are made with others: of the same runs, or a summary of theirs."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs of the figures."""
    return sum(len(figure.seeds(seeds)) for figure in selection.values())


def check_horizon(horizon: str) -> None:
    """Each trace is replayed once, so that a horizon is an error.

    Raises:
        InputError: Always.
    """
    raise InputError("horizon", None, None, None, f"`{horizon}`: traces are gone through once; leave it out")


def make(
    selection: Mapping[str, Figure],
    by: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs what figures need and makes their rows; see `leeward_reproduce.perform.reproduce`."""
    released = any(figure.released for figure in selection.values())
    absent = workloads.absent() if released else None
    made_of = {name: figure for name, figure in selection.items() if not (figure.released and absent)}
    inputs: list[tuple[str, int]] = []
    if released and not absent:
        # Once, and not by several runs at once.
        workloads.feasible(workloads.SLOS, tuple(workloads.WAYS))
        inputs = workloads.inputs()
    tasks = [(name, seed) for name in made_of for seed in made_of[name].seeds(by.seeds)]

    def outcome(name: str, seed: int) -> Any:
        figure = selection[name]
        of = [inputs if figure.released else [], figure.constants()]
        return store.load_or_make(out / results_folder.SWEEPS, name, seed, of, figure.experiment)

    result = outcomes(tasks, outcome, jobs, progress)
    rows: list[Row] = []
    for name, figure in selection.items():
        if name not in made_of:
            why = f"there is no {absent} in the folder of traces"
            rows.append(missing_row(name, figure.title, "", None, why))
            continue
        results = results_folder.mark_rows(figure.rows(result[name]), by)
        rows += results
        if keep and figure.draw:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, results))
    return rows
