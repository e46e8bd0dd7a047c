"""Rows of figure 10 and of section 5: relative speed-ups, app by app.

The relative speed-up of an app is its time under a baseline less its time under Choreo, as a share of its
time under the baseline (section 6.2). It is negative for a slower app.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from leeward_reproduce.choreo import paper
from leeward_reproduce.choreo.experiments import BASELINES, ERRORS, EXACT, OURS, Outcome, within
from leeward_reproduce.rows import Row, measured_row

Floats = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
Range = tuple[float, float]
_SAME = 0.01
"""Speed-ups and slow-downs below this share count as no change."""


AT_ONCE: Mapping[str, Range | float] = {
    "improved": paper.IMPROVED_AT_ONCE,
    "mean": paper.MEAN_AT_ONCE,
    "median": paper.MEDIAN_AT_ONCE,
    "gainers_mean": paper.GAINERS_MEAN_AT_ONCE,
    "gainers_median": paper.GAINERS_MEDIAN_AT_ONCE,
    "best": paper.BEST_AT_ONCE,
    "losers_median": paper.LOSERS_AT_ONCE,
}
"""The paper's values of figure 10a, by quantity."""
IN_SEQUENCE: Mapping[str, Range | float] = {
    "improved": paper.IMPROVED_IN_SEQUENCE,
    "mean": paper.MEAN_IN_SEQUENCE,
    "median": paper.MEDIAN_IN_SEQUENCE,
    "gainers_mean": paper.GAINERS_MEAN_IN_SEQUENCE,
    "gainers_median": paper.GAINERS_MEDIAN_IN_SEQUENCE,
    "best": paper.BEST_IN_SEQUENCE,
    "losers_median": paper.LOSERS_IN_SEQUENCE,
}
"""The paper's values of figure 10b, by quantity."""


def rows_at_once(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 10a."""
    return rows_of("10a", outcomes, AT_ONCE)


def rows_in_sequence(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 10b."""
    return rows_of("10b", outcomes, IN_SEQUENCE)


_QUANTITIES: dict[str, tuple[str, Callable[[Floats], float]]] = {
    "improved": ("apps that gain", lambda gains: 100 * float((gains > _SAME).mean())),
    "lose": ("apps that lose", lambda gains: 100 * float((gains < -_SAME).mean())),
    "mean": ("speed-up, mean", lambda gains: 100 * float(gains.mean())),
    "median": ("speed-up, median", lambda gains: 100 * float(numpy.median(gains))),
    "gainers_mean": (
        "speed-up of those that gain, mean",
        lambda gains: _of(gains > _SAME, gains, numpy.mean),
    ),
    "gainers_median": (
        "speed-up of those that gain, median",
        lambda gains: _of(gains > _SAME, gains, numpy.median),
    ),
    "best": ("largest speed-up", lambda gains: 100 * float(gains.max())),
    "losers_median": (
        "slow-down of those that lose, median",
        lambda gains: _of(gains < -_SAME, -gains, numpy.median),
    ),
}


def _of(mask: Any, values: Floats, reduce: Callable[[Floats], Any]) -> float:
    return 100 * float(reduce(values[mask])) if mask.any() else float("nan")


def rows_of(
    figure: str,
    outcomes: Sequence[Outcome],
    paper_values: Mapping[str, Range | float],
    policies: Sequence[str] = OURS,
    prefix: str = "",
) -> list[Row]:
    """Rows of a figure: each quantity of each of our policies against each baseline.

    Args:
        figure: Name of the figure.
        outcomes: Experiments under all seeds.
        paper_values: Values of the paper for `choreo`, by quantity.
        policies: Our policies.
        prefix: Beginning of the label of each row.
    """
    redrawn = sum(outcome.redrawn for outcome in outcomes)
    result: list[Row] = []
    for ours in policies:
        for key, (words, quantity) in _QUANTITIES.items():
            for baseline in BASELINES:
                values = [quantity(gains(outcome, ours, baseline)) for outcome in outcomes]
                values = [value for value in values if not numpy.isnan(value)]
                reported = paper_values.get(key) if ours == "choreo" else None
                note = ""
                if isinstance(reported, tuple):
                    note = f"the paper: {reported[0]:g} to {reported[1]:g} % over its three baselines"
                elif key == "best" and reported is not None:
                    note = "the paper's is the best of all its apps, ours the mean over seeds of the best"
                if key == "improved" and ours == "choreo":
                    note = f"apps are generated; {redrawn} were drawn again since they did not fit everywhere"
                value = reported if isinstance(reported, float) else None
                result.append(
                    measured_row(
                        figure, f"{prefix}{words}: {ours} against {baseline}", "%", values, value, note
                    )
                )
    return result


def gains(outcome: Outcome, ours: str, baseline: str) -> Floats:
    """Relative speed-up of each app."""
    before = numpy.array([times[baseline] for times in outcome.times])
    after = numpy.array([times[ours] for times in outcome.times])
    speed_ups = numpy.zeros(len(before))
    # An app that takes no time under the baseline gains nothing.
    numpy.divide(before - after, before, out=speed_ups, where=before > 0)
    return speed_ups


def rows_accuracy(outcomes: Sequence[Outcome]) -> list[Row]:
    """Section 7.2: value of accurate rates, which the paper leaves open."""
    result: list[Row] = []
    for ours in OURS:
        for error in ERRORS:
            values = [
                100 * float(gains(outcome, within(ours, error), "random").mean()) for outcome in outcomes
            ]
            label = f"speed-up, mean: {within(ours, error)} of what they are, against random"
            result.append(measured_row("accuracy", label, "%", values))
    return result


def rows_exact(outcomes: Sequence[Outcome]) -> list[Row]:
    """Section 5: greedy against the best placement."""
    count = sum(len(outcome.times) for outcome in outcomes)
    proven = sum(outcome.proven for outcome in outcomes)
    note = f"{count} apps, {proven} of them proven best; apps that no link carries anything of count as 0"
    result: list[Row] = []
    for ours in OURS:
        extra = [_extra(outcome, ours) for outcome in outcomes]
        paper_value = paper.GREEDY_OVER_EXACT if ours == "choreo" else None
        for words, reduce in (("median", numpy.median), ("mean", numpy.mean)):
            values = [100 * float(reduce(one)) for one in extra]
            reported = paper_value if words == "median" else None
            label = f"completion time over the best placement's, {words}: {ours}"
            result.append(measured_row("exact", label, "% more", values, reported, note if reported else ""))
        best = [100 * float((one < 1e-6).mean()) for one in extra]
        result.append(measured_row("exact", f"apps placed as well as can be: {ours}", "%", best))
    return result


def _extra(outcome: Outcome, ours: str) -> Floats:
    """Excess of an app's time over that of the best placement, as a share."""
    best = numpy.array([times[EXACT] for times in outcome.times])
    after = numpy.array([times[ours] for times in outcome.times])
    extra = numpy.zeros(len(best))
    numpy.divide(after - best, best, out=extra, where=best > 0)
    # If the best time is 0, a greater time would be an infinite excess, and so would the mean.
    assert not ((best == 0) & (after > 0)).any()
    return extra
