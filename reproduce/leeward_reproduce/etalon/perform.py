"""Runs the experiments of Etalon's figures and makes the rows of results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from leeward import _native
from leeward.errors import InputError
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.etalon import (
    comparison,
    experiments,
    extensions,
    files,
    files_rows,
    hosts,
    paper,
    pictures,
)
from leeward_reproduce.outcomes import outcomes
from leeward_reproduce.rows import Row
from leeward_reproduce.summary import MainResult

__all__ = ["FIGURES", "MAIN", "Figure", "check_horizon", "make", "runs"]


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper."""

    title: str
    experiment: Callable[[int, str], Any]
    """Runs the experiment with a seed, for a horizon."""
    rows: Callable[[Sequence[Any]], list[Row]]
    """Makes rows from the results of all seeds."""
    draw: Callable[[Sequence[Any]], Any] | None = None
    max_seeds: int | None = None
    """Maximum number of seeds; `None` without a limit."""

    def seeds(self, seeds: int) -> int:
        """Number of seeds to run if `seeds` are requested."""
        return seeds if self.max_seeds is None else min(seeds, self.max_seeds)


def _static(seed: int, horizon: str) -> list[experiments.LongFlowRun]:
    return [experiments.long(seed, horizon, voq) for voq in paper.VOQ]


def _sequences(seed: int, horizon: str) -> list[experiments.LongFlowRun]:
    """Static queues, and then queues that grow, as in figure 5b."""
    return [experiments.long(seed, horizon, 16), *_resized(seed, horizon)[1:]]


def _resized(seed: int, horizon: str) -> list[experiments.LongFlowRun]:
    return [experiments.long(seed, horizon, 16, tau) for tau in paper.TAU]


def _retcp(seed: int, horizon: str, ece: str = experiments.EARLY) -> list[experiments.LongFlowRun]:
    """Runs reTCP with static queues, and then with queues that grow."""
    first = experiments.long(seed, horizon, 16, None, ece)
    return [first, *(experiments.long(seed, horizon, 16, tau, ece) for tau in paper.TAU[1:])]


def _retcp_by_ece(seed: int, horizon: str) -> dict[str, list[experiments.LongFlowRun]]:
    return {ece: _retcp(seed, horizon, ece) for ece in (experiments.EARLY, experiments.AT)}


def _tails(seed: int, horizon: str) -> dict[str, list[experiments.LongFlowRun]]:
    return {
        "static": _static(seed, horizon),
        "resized": _resized(seed, horizon)[1:],
        "told": _retcp(seed, horizon),
    }


def _ring(seed: int, horizon: str) -> dict[str, experiments.Rings]:
    return {system: experiments.rings(seed, horizon, 1, system) for system in ("ToR VOQ", "ADU")}


def _two_rings(seed: int, horizon: str) -> dict[str, experiments.Rings]:
    return {system: experiments.rings(seed, horizon, 2, system) for system in paper.SYSTEMS}


_VOQ, _EARLY = "queues of {} packets", "queues grow {} us early"
_X_VOQ, _X_EARLY = "packets of a queue", "queues grow this early, us"
FIGURES = {
    "1": Figure("the network keeps its times and rates", experiments.check, comparison.checks),
    "5a": Figure(
        "sequence plots by queues that stay",
        _static,
        comparison.sequences("5a", paper.VOQ, _VOQ),
        pictures.sequences(paper.VOQ, "{} packets"),
    ),
    "5b": Figure(
        "sequence plots by queues that grow",
        _sequences,
        comparison.sequences("5b", paper.TAU, _EARLY),
        pictures.sequences(paper.TAU, "{} us early"),
    ),
    "6a": Figure(
        "circuit utilization by queues that stay",
        _static,
        comparison.utilization("6a", paper.VOQ, _VOQ, paper.STATIC_USED),
        pictures.utilization(paper.VOQ, _X_VOQ, paper.STATIC_USED),
    ),
    "6b": Figure(
        "circuit utilization by queues that grow",
        _resized,
        comparison.utilization("6b", paper.TAU, _EARLY, paper.RESIZED_USED),
        pictures.utilization(paper.TAU, _X_EARLY, paper.RESIZED_USED),
    ),
    "7a": Figure(
        "median latency by queues that stay",
        _static,
        comparison.medians("7a", paper.VOQ, _VOQ, paper.STATIC_MEDIANS),
        pictures.medians(paper.VOQ, _X_VOQ, paper.STATIC_MEDIANS),
    ),
    "7b": Figure(
        "median latency by queues that grow",
        _resized,
        comparison.medians("7b", paper.TAU, _EARLY, paper.RESIZED_MEDIANS),
        pictures.medians(paper.TAU, _X_EARLY, paper.RESIZED_MEDIANS),
    ),
    "8": Figure("reTCP: utilization and median latency", _retcp_by_ece, comparison.retcp, pictures.retcp),
    "9": Figure("99th percentiles of latency", _tails, comparison.tails, pictures.tails),
    "10": Figure(
        "improvement by round trips in a day",
        experiments.improvements,
        comparison.improvement,
        pictures.improvement,
    ),
    "12": Figure("a ring: demand of ADUs and of queues", _ring, comparison.ring, pictures.completion),
    "16": Figure(
        "two rings: completion and bytes by switch", _two_rings, comparison.two_rings, pictures.by_switch
    ),
    "hosts": Figure(
        "a reason tested, under three seeds: table 2 with a time of hosts that is fitted on Packet80",
        hosts.host_time,
        hosts.rows,
        None,
        hosts.SEEDS,
    ),
    "19": Figure(
        "files of HDFS: writes, throughput and bytes by switch",
        files.systems,
        files_rows.files,
        files_rows.picture,
    ),
    "leeward": Figure(
        "reHDFS and leeward with circuits",
        files.compare_leeward,
        files_rows.leeward_rows,
        files_rows.picture_beside,
    ),
    "scale": Figure(
        "beyond the paper, under three seeds: schedulers at up to 128 racks",
        extensions.scale,
        extensions.scale_rows,
        extensions.scale_picture,
        extensions.SEEDS,
    ),
    "rotor": Figure(
        "beyond the paper, under three seeds: rotors and their routing",
        extensions.rotors,
        extensions.rotor_rows,
        extensions.rotor_picture,
        extensions.SEEDS,
    ),
    "transport": Figure(
        "beyond the paper, under three seeds: transports on section 4's flows",
        extensions.transports,
        extensions.transport_rows,
        extensions.transport_picture,
        extensions.SEEDS,
    ),
}
"""Figures by their names in `--figure`; `ALIASES` has more names.

Figure 12 includes figures 13 to 15. Figure 16 includes table 2. Figure 19 includes figures 20 to 22.
"""
ALIASES = {
    **{name: [f"{name}a", f"{name}b"] for name in ("5", "6", "7")},
    **{name: ["12"] for name in ("13", "14", "15")},
    "2": ["16"],
    **{name: ["19"] for name in ("20", "21", "22")},
    "beyond": ["scale", "rotor", "transport"],
}
MAIN = (
    MainResult("main", "10", "lower median at equal utilization: 3 round trips a day"),
    MainResult("less favourable", "10", "lower median at equal utilization: 0.75 round trips a day"),
)
"""Results that matter most."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of runs of the figures."""
    return sum(figure.seeds(seeds) for figure in selection.values())


def check_horizon(horizon: str) -> None:
    """Checks the length of runs.

    Raises:
        InputError: The text is not a time, or the time is too short for two weeks of circuits.
    """
    try:
        seconds = _native.seconds(horizon)
    except InputError as error:
        raise InputError.about("horizon", error.message) from None
    if seconds < 0.01:
        raise InputError.about("horizon", f"`{horizon}`: expected at least 10ms")


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the experiments of figures and makes their rows; see `leeward_reproduce.perform.reproduce`."""
    horizon = inputs.horizon or experiments.HORIZON
    tasks = [
        (name, seed)
        for seed in range(1, inputs.seeds + 1)
        for name, figure in selection.items()
        if seed <= figure.seeds(inputs.seeds)
    ]
    result = outcomes(tasks, lambda name, seed: selection[name].experiment(seed, horizon), jobs, progress)
    for name, figure in selection.items():
        if keep and figure.draw:
            drawing.write(out / results_folder.PICTURES, name, partial(figure.draw, result[name]))
    return [
        row
        for name in selection
        for row in results_folder.mark_rows(selection[name].rows(result[name]), inputs)
    ]
