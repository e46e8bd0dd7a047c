"""The figures of the thesis: runs their experiments and makes their rows and pictures."""

from collections.abc import Callable, Mapping
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
    bursts,
    caches,
    chapter3,
    held_out,
    optimum,
    packing,
    pictures,
    profile,
    store,
    workloads,
)
from leeward_reproduce.slo.figure import Figure
from leeward_reproduce.summary import MainResult

__all__ = ["FIGURES", "MAIN", "Figure", "check_horizon", "make", "runs"]


def _packing_constants() -> object:
    return [
        list(workloads.WAYS),
        packing.MANY,
        packing.WHOLE,
        packing.STAY,
        packing.DEVICES,
        packing.BESIDE,
        packing.TIMED,
    ]


def _limit_constants() -> object:
    return [workloads.COUNTS, workloads.RANDOM, list(workloads.WAYS)]


def _held_out_constants() -> object:
    return [_limit_constants(), held_out.MARGINS, held_out.OVERRUNS]


def _heuristic_constants() -> object:
    return [workloads.RANDOM, list(packing.ORDERS)]


def _average_constants() -> object:
    return [workloads.MULTIPLES, workloads.RANDOM]


def _cache_constants() -> object:
    return [
        caches.TRACES,
        caches.SECONDS,
        caches.SEED,
        caches.PACKET,
        caches.SMALL,
        caches.WORKLOADS,
        caches.CLIENTS,
        caches.SERVERS,
    ]


def _analysis_constants() -> object:
    return [
        _cache_constants(),
        caches.FIT,
        analyses.ON_PATH,
        analyses.SEVEN,
        analyses.DEPENDENT,
        analyses.NINES,
        analyses.SIZES,
        optimum.SCALES,
    ]


def _length_constants() -> object:
    return [_analysis_constants(), optimum.LENGTHS]


def _admission_constants() -> object:
    return [
        _cache_constants(),
        caches.FIT,
        list(admission.POLICIES),
        admission.STORED,
        admission.SETS,
        admission.LOAD,
    ]


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
    **chapter3.FIGURES,
    "4.2": Figure(
        "three traces together against the sum of their peaks",
        bursts.together,
        bursts.rows_together,
        None,
        _cache_constants,
    ),
    "4.7": Figure(
        "the three analyses on one path",
        analyses.methods,
        analyses.rows_methods,
        partial(pictures.bars, unit="x", label="bound over SNC-Meister's"),
        _analysis_constants,
    ),
    "4.8": Figure(
        "workloads that depend on one another",
        analyses.dependence,
        analyses.rows_dependence,
        partial(pictures.bars, unit="x", label="bound over DNC's", line=1.0, words="DNC"),
        _analysis_constants,
    ),
    "4.9": Figure("ratios of peak to mean", bursts.ratios, bursts.rows_ratios, None, _cache_constants, 1),
    "4.10": Figure(
        "workloads admitted on networks (figure 4.4 too)",
        admission.network,
        admission.rows_network,
        partial(pictures.bars, unit="workloads", label="workloads"),
        _admission_constants,
    ),
    "4.11": Figure(
        "admission against the optimum",
        optimum.optimum,
        optimum.rows_optimum,
        partial(pictures.bars, unit="%", label="admitted of OPT, %"),
        _analysis_constants,
    ),
    "4.12": Figure(
        "small requests beside large ones", optimum.small, optimum.rows_small, None, _analysis_constants
    ),
    optimum.LONGER: Figure(
        "small requests beside large ones, with longer traces",
        optimum.small_longer,
        optimum.rows_longer,
        None,
        _length_constants,
    ),
    "4.13": Figure(
        "bounds by nines of the percentile", analyses.nines, analyses.rows_nines, None, _analysis_constants
    ),
    "4.14": Figure(
        "computation time of all bounds", analyses.clock, analyses.rows_clock, None, _analysis_constants
    ),
    "4.15": Figure(
        "admission on larger clusters", optimum.scale, optimum.rows_scale, None, _analysis_constants
    ),
    "4.16": Figure(
        "workloads admitted with storage",
        admission.storage,
        admission.rows_storage,
        partial(pictures.bars, unit="workloads", label="workloads"),
        _admission_constants,
    ),
    "4.17": Figure(
        "workloads admitted with storage, at 99.9 % and 90 % (figure 4.18 too)",
        admission.percentiles,
        admission.rows_percentiles,
        partial(pictures.bars, unit="%", label="%"),
        _admission_constants,
    ),
    "4.19": Figure(
        "workloads admitted with storage, over sets of SLOs",
        admission.mixtures,
        admission.rows_mixtures,
        None,
        _admission_constants,
    ),
    "5.4": Figure(
        "servers under each method of choosing limits",
        packing.same_and_random,
        packing.rows_same_and_random,
        pictures.ways,
        _limit_constants,
    ),
    "5.4-average": Figure(
        "rates at multiples of the average from 1.25 to 20",
        packing.averages,
        packing.rows_averages,
        None,
        _average_constants,
    ),
    "5.5": Figure(
        "held-out halves of workloads with one SLO, replayed",
        held_out.same,
        held_out.rows_same,
        partial(pictures.bars, unit="%", label="within the SLO, %"),
        _held_out_constants,
    ),
    "5.6": Figure(
        "held-out halves of workloads with random SLOs, replayed",
        held_out.random,
        held_out.rows_random,
        partial(pictures.bars, unit="%", label="within the SLO, %"),
        _held_out_constants,
    ),
    "5.7": Figure(
        "first fit and fast first fit", packing.fast, packing.rows_fast, None, _packing_constants, 3
    ),
    "5.8": Figure(
        "many workloads with one SLO (figure 5.1 too)",
        packing.same,
        packing.rows_same,
        pictures.ways,
        _packing_constants,
    ),
    "5.9": Figure(
        "many workloads with random SLOs (figure 5.1 too)",
        packing.random,
        packing.rows_random,
        pictures.ways,
        _packing_constants,
    ),
    "5.10": Figure(
        "workloads that come and go", packing.visits, packing.rows_visits, pictures.ways, _packing_constants
    ),
    "5.11": Figure(
        "SSDs per server",
        packing.devices,
        packing.rows_devices,
        partial(pictures.bars, unit="servers", label="servers"),
        _packing_constants,
    ),
    "5.12": Figure(
        "several rate limiters per stage", packing.several, packing.rows_several, None, _limit_constants
    ),
    "heuristics": Figure(
        "orders in which servers are tried",
        packing.heuristics,
        packing.rows_heuristics,
        None,
        _heuristic_constants,
    ),
}
"""Figures by the names of `--figure`."""

ALIASES = {"3.4": ("3.3",), "4.4": ("4.10",), "4.18": ("4.17",), "5.1": ("5.8", "5.9")}
"""Figures of the thesis without runs of their own, each with the figures that show it."""
MAIN = (
    MainResult("main", "4.10", "released: SNC over the best as published: workloads"),
    MainResult("less favourable", "4.10", "drawn: SNC over the best as published: workloads"),
)
"""Results that matter most."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs of the figures."""
    return sum(len(figure.seeds(seeds)) for figure in selection.values())


def check_horizon(horizon: str) -> None:
    """Rejects every horizon: each trace is replayed once, to its end.

    Raises:
        InputError: Always.
    """
    message = f"`{horizon}`: each trace is replayed to its end; leave the horizon out"
    raise InputError.about("horizon", message)


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the experiments of figures and makes their rows; see `leeward_reproduce.perform.reproduce`."""
    released = any(figure.released for figure in selection.values())
    absent = workloads.absent() if released else None
    possible = {name: figure for name, figure in selection.items() if not (figure.released and absent)}
    trace_files: list[tuple[str, int]] = []
    if released and not absent:
        # Fills a cache before experiments run in parallel, so that they do not compute the same values.
        workloads.feasible(workloads.SLOS, tuple(workloads.WAYS))
        trace_files = workloads.inputs()
    tasks = [(name, seed) for name, figure in possible.items() for seed in figure.seeds(inputs.seeds)]

    def outcome(name: str, seed: int) -> Any:
        figure = selection[name]
        all_inputs = [trace_files if figure.released else [], figure.constants()]
        return store.load_or_make(out / results_folder.SWEEPS, name, seed, all_inputs, figure.experiment)

    result = outcomes(tasks, outcome, jobs, progress)
    rows: list[Row] = []
    for name, figure in selection.items():
        if name not in possible:
            why = f"there is no {absent} in the folder of traces"
            rows.append(missing_row(name, figure.title, "", None, why))
            continue
        results = results_folder.mark_rows(figure.rows(result[name]), inputs)
        rows += results
        if keep and figure.draw:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, results))
    return rows
