"""Figure 10 by the wall clock: rows and pictures of apps that ran in the lab, beside their simulation.

The module has the members of a paper's module in `leeward_reproduce.perform`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from leeward.report.style import COLOURS, OTHER
from leeward_reproduce import drawing, results_folder
from leeward_reproduce.choreo import comparison, lab_runs
from leeward_reproduce.choreo.comparison import gains
from leeward_reproduce.choreo.experiments import BASELINES
from leeward_reproduce.choreo.lab_runs import LabOutcome
from leeward_reproduce.choreo.namespaces import UnableError
from leeward_reproduce.choreo.perform import check_horizon
from leeward_reproduce.rows import Paper, Row, change_row, measured_row, missing_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

__all__ = ["FIGURES", "Figure", "check_horizon", "make", "runs"]

OURS = "choreo"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper that runs in the lab."""

    title: str
    paper: Mapping[str, Paper]
    """The paper's values, by the names of quantities; none for a variant, which tests a reason."""
    even: str = ""
    """Figure with apps of equal transfers, which test a reason; empty without one."""


FIGURES = {
    "10a": Figure("apps placed at once, by the wall clock", comparison.AT_ONCE, "even"),
    "10b": Figure("apps placed in sequence, by the wall clock", comparison.IN_SEQUENCE),
    "even": Figure("apps of equal transfers placed at once, by the wall clock", {}),
}
"""Figures by the names of `--figure`."""


def runs(selection: Mapping[str, Figure], seeds: int) -> int:
    """Number of topologies, one for each seed; all figures run in each."""
    return seeds


def make(
    selection: Mapping[str, Figure],
    inputs: results_folder.Inputs,
    jobs: int | None,
    out: Path,
    keep: bool,
    progress: Callable[[float], object] | None,
) -> list[Row]:
    """Runs the lab under all seeds, one after another, and makes the rows of its figures.

    Runs in parallel would disturb each other, so `jobs` has no effect.
    """
    outcomes: dict[str, list[LabOutcome]] = {name: [] for name in selection}
    try:
        for seed in range(1, inputs.seeds + 1):
            for name, outcome in lab_runs.run_seed(seed, list(selection)).items():
                outcomes[name].append(outcome)
            if progress:
                progress(seed / inputs.seeds)
    except UnableError as error:
        return [missing_row(name, "speed-up, mean: choreo", "%", None, str(error)) for name in selection]
    rows = []
    for name, figure in selection.items():
        rows += results_folder.mark_rows(_rows(name, figure, outcomes[name]), inputs)
        if keep:
            drawing.write(out / results_folder.PICTURES, name, partial(draw, outcomes[name]))
    return rows


def _rows(name: str, figure: Figure, outcomes: Sequence[LabOutcome]) -> list[Row]:
    real = [one.outcome("real") for one in outcomes]
    simulated = [one.outcome("simulated") for one in outcomes]
    beside = comparison.rows_of(name, simulated, {}, (OURS,), "simulated on the true rates: ")
    measured = comparison.rows_of(name, real, figure.paper, (OURS,), even=figure.even)
    return [*measured, *beside, *_accuracy(name, outcomes)]


def _accuracy(name: str, outcomes: Sequence[LabOutcome]) -> list[Row]:
    """How near the measurements and the simulation are to what happened."""
    count = sum(len(one.real) for one in outcomes)
    same = [100 * one.same_hosts / one.apps for one in outcomes]
    note = f"{count} experiments under {len(lab_runs.POLICIES)} policies"
    differences = [_differences(one) for one in outcomes]
    absolute = [numpy.abs(one) for one in differences]
    rates = [numpy.abs(one.errors) for one in outcomes]
    medians = [float(numpy.median(one)) for one in absolute]
    more = "time by the wall clock over the simulated one, mean"
    return [
        change_row(name, more, [float(one.mean()) for one in differences], unit="% more"),
        measured_row(name, "difference of these times, median", "%", medians),
        measured_row(name, "difference of these times, largest", "%", [float(one.max()) for one in absolute]),
        measured_row(name, "apps with the same hosts in the simulation", "%", same, None, note),
        measured_row(name, "error of measured rates, mean", "%", [100 * float(one.mean()) for one in rates]),
        measured_row(name, "time to measure 90 paths", "s", [one.survey_s for one in outcomes]),
        measured_row(name, "bytes to measure 90 paths", "MB", [one.survey_bytes / 1e6 for one in outcomes]),
    ]


def _differences(outcome: LabOutcome) -> Any:
    """Difference in percent of each time by the wall clock from its simulated one, unless that is 0."""
    pairs = [
        (real[policy], simulated[policy])
        for real, simulated in zip(outcome.real, outcome.simulated, strict=True)
        for policy in lab_runs.POLICIES
        if simulated[policy] > 0
    ]
    return numpy.array([100 * (real / simulated - 1) for real, simulated in pairs])


def draw(outcomes: Sequence[LabOutcome]) -> "Picture":
    """A panel for each baseline: share of apps up to each speed-up, by the wall clock and simulated."""
    from matplotlib import pyplot

    picture, panels = pyplot.subplots(
        1, len(BASELINES), figsize=(9.6, 3.4), sharey=True, layout="constrained"
    )
    for axes, baseline in zip(panels, BASELINES, strict=True):
        for times, colour, line in (("real", COLOURS.get(OURS, OTHER), "-"), ("simulated", OTHER, "--")):
            parts = [gains(one.outcome(times), OURS, baseline) for one in outcomes]
            values = numpy.sort(numpy.concatenate(parts))
            share = 100 * numpy.arange(1, len(values) + 1) / len(values)
            label = "wall clock" if times == "real" else times
            axes.plot(100 * values, share, line, color=colour, label=label)
        axes.axvline(0, color="#111111", linewidth=0.8)
        axes.set_xlim(-100, 100)
        axes.set_xlabel(f"speed-up against {baseline}, %")
        axes.legend(loc="upper left", fontsize=8)
    panels[0].set_ylabel("apps with at most this, %")
    return picture
