"""Rows of figure 10 and of section 5: relative speed-ups, app by app.

The relative speed-up of an app is its time under a baseline less its time under Choreo, as a share of its
time under the baseline (section 6.2). It is negative for a slower app. Speed-ups are changes, so they are
compared with the paper in percentage points; shares of apps are not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from leeward_reproduce.choreo import paper
from leeward_reproduce.choreo.experiments import BASELINES, ERRORS, EXACT, OURS, Outcome, within
from leeward_reproduce.rows import (
    Paper,
    Reason,
    Row,
    change_row,
    measured_row,
    reference_row,
    row_key,
)

Floats = numpy.ndarray[Any, numpy.dtype[numpy.float64]]
_SAME = 0.01
"""Speed-ups and slow-downs below this share count as no change."""


AT_ONCE: Mapping[str, Paper] = {
    "improved": paper.IMPROVED_AT_ONCE,
    "mean": paper.MEAN_AT_ONCE,
    "median": paper.MEDIAN_AT_ONCE,
    "gainers_mean": paper.GAINERS_MEAN_AT_ONCE,
    "gainers_median": paper.GAINERS_MEDIAN_AT_ONCE,
    "best": paper.BEST_AT_ONCE,
    "losers_median": paper.LOSERS_AT_ONCE,
}
"""The paper's values of figure 10a, by quantity."""
IN_SEQUENCE: Mapping[str, Paper] = {
    "improved": paper.IMPROVED_IN_SEQUENCE,
    "mean": paper.MEAN_IN_SEQUENCE,
    "median": paper.MEDIAN_IN_SEQUENCE,
    "gainers_mean": paper.GAINERS_MEAN_IN_SEQUENCE,
    "gainers_median": paper.GAINERS_MEDIAN_IN_SEQUENCE,
    "best": paper.BEST_IN_SEQUENCE,
    "losers_median": paper.LOSERS_IN_SEQUENCE,
}
"""The paper's values of figure 10b, by quantity."""
EVEN = "10a-even"
"""Figure whose apps have equal transfers; its rows have the labels of figure 10a."""
LARGE = "exact-large"
"""Figure with large apps; its rows have the labels of `exact`."""
SKEW = "few transfers have most of the bytes of generated apps; the paper's matrices are private"
"""Reason of larger gains than the paper's; apps of equal transfers test it."""
SMALL = "apps have few tasks, so that greedy finds the best placement of most"
"""Reason of smaller excesses over the best placement than the paper's; large apps test it."""
PRIVATE = "the paper's matrices are private; the shapes and sizes of transfers are ours"
"""Reason of other excesses of large apps."""
_BEST = "not compared: the paper's is the best of all its apps, and ours the mean over seeds of the best"


@dataclass(frozen=True)
class _Quantity:
    """A statistic of the speed-ups of apps, in percent."""

    words: str
    value: Callable[[Floats], float]
    is_change: bool = True
    """False for a share of apps."""


def rows_at_once(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 10a."""
    return rows_of("10a", outcomes, AT_ONCE, even=EVEN)


def rows_in_sequence(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 10b."""
    return rows_of("10b", outcomes, IN_SEQUENCE)


def rows_of_variant(figure: str) -> Callable[[Sequence[Outcome]], list[Row]]:
    """Makes the rows of a variant of figure 10, which test a reason and are not compared with the paper."""
    return lambda outcomes: rows_of(figure, outcomes, {}, OURS[:1])


def _of(mask: Any, values: Floats, reduce: Callable[[Floats], Any]) -> float:
    return 100 * float(reduce(values[mask])) if mask.any() else float("nan")


_QUANTITIES = {
    "improved": _Quantity("apps that gain", lambda gains: 100 * float((gains > _SAME).mean()), False),
    "lose": _Quantity("apps that lose", lambda gains: 100 * float((gains < -_SAME).mean()), False),
    "mean": _Quantity("speed-up, mean", lambda gains: 100 * float(gains.mean())),
    "median": _Quantity("speed-up, median", lambda gains: 100 * float(numpy.median(gains))),
    "gainers_mean": _Quantity(
        "speed-up of those that gain, mean", lambda gains: _of(gains > _SAME, gains, numpy.mean)
    ),
    "gainers_median": _Quantity(
        "speed-up of those that gain, median", lambda gains: _of(gains > _SAME, gains, numpy.median)
    ),
    "best": _Quantity("largest speed-up", lambda gains: 100 * float(gains.max())),
    "losers_median": _Quantity(
        "slow-down of those that lose, median", lambda gains: _of(gains < -_SAME, -gains, numpy.median)
    ),
}


def rows_of(
    figure: str,
    outcomes: Sequence[Outcome],
    paper_values: Mapping[str, Paper],
    policies: Sequence[str] = OURS,
    prefix: str = "",
    even: str = "",
) -> list[Row]:
    """Rows of a figure: each quantity of each of our policies against each baseline.

    Args:
        figure: Name of the figure.
        outcomes: Experiments under all seeds.
        paper_values: Values of the paper for `choreo`, by quantity. A range is over its three baselines.
        policies: Our policies.
        prefix: Beginning of the label of each row.
        even: Figure of the same experiments with apps of equal transfers, which test a reason; empty without.
    """
    redrawn = sum(outcome.redrawn for outcome in outcomes)
    result: list[Row] = []
    for ours in policies:
        for key, quantity in _QUANTITIES.items():
            reported = paper_values.get(key) if ours == "choreo" else None
            note = "the paper's range is over its three baselines" if isinstance(reported, tuple) else ""
            if key == "improved" and ours == "choreo":
                note = f"apps are generated; {redrawn} were drawn again since they did not fit everywhere"
            for baseline in BASELINES:
                values = [quantity.value(gains(outcome, ours, baseline)) for outcome in outcomes]
                values = [value for value in values if not numpy.isnan(value)]
                label = f"{prefix}{quantity.words}: {ours} against {baseline}"
                reason = Reason(SKEW, variant=row_key(even, label) if even else "")
                if key == "best" and reported is not None:
                    row = reference_row(figure, label, "%", values, reported, _BEST)
                elif quantity.is_change:
                    row = change_row(figure, label, values, reported, note, reason)
                else:
                    row = measured_row(figure, label, "%", values, reported, note, reason)
                result.append(row)
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
            result.append(change_row("accuracy", label, values))
    return result


def rows_exact(figure: str, reason: str | None, large: str = "") -> Callable[[Sequence[Outcome]], list[Row]]:
    """Makes the rows of section 5: greedy against the best placement.

    Args:
        figure: Name of the figure.
        reason: Reason of a difference from the paper; None for a variant, which is not compared.
        large: Figure of the same experiments with large apps, which test the reason; empty without.
    """
    return lambda outcomes: _rows_exact(figure, outcomes, reason, large)


def _rows_exact(figure: str, outcomes: Sequence[Outcome], why: str | None, large: str) -> list[Row]:
    reported = paper.GREEDY_OVER_EXACT if why else None
    every = [gap for outcome in outcomes for gap in outcome.gaps]
    note = (
        f"{len(every)} apps, {sum(gap == 0 for gap in every)} of them proven best; apps that no link carries"
        " anything of count as 0"
    )
    unit = "% more"
    result: list[Row] = []
    for ours in OURS:
        value = reported if ours == "choreo" else None
        extra = [_extra(outcome, ours) for outcome in outcomes]
        at_most = [_extra(outcome, ours, bound=True) for outcome in outcomes]
        ratios = [_excess_of_median(outcome, ours) for outcome in outcomes]
        means, left_out = _means(extra)
        label = f"completion time over the best placement's, {{}}: {ours}"
        variant = row_key(large, label.format("median")) if large else ""
        reason = Reason(why, variant=variant) if why else None
        result += [
            change_row(figure, label.format("median"), _medians(extra), value, note, reason, unit),
            reference_row(
                figure,
                label.format("ratio of the medians"),
                unit,
                [one for one in ratios if one is not None],
                value,
                "another reading of the paper's sentence" if value else "",
            ),
            change_row(figure, label.format("mean"), means, None, left_out, unit=unit),
        ]
        if any(every):
            label = f"completion time over the solver's bound, median: {ours}"
            note_bound = "no placement is faster than this bound, so the excess is at most that"
            result.append(change_row(figure, label, _medians(at_most), None, note_bound, unit=unit))
        best = [100 * float((one < 1e-6).mean()) for one in extra]
        result.append(measured_row(figure, f"apps placed as well as can be: {ours}", "%", best))
    return result


def _medians(extra: Sequence[Floats]) -> list[float]:
    """Median excess in percent, of the seeds in which it is finite."""
    return [100 * median for one in extra if numpy.isfinite(median := float(numpy.median(one)))]


def _means(extra: Sequence[Floats]) -> tuple[list[float], str]:
    """Mean of the finite excesses in percent, and a note on apps that are left out."""
    infinite = sum(int(numpy.isinf(one).sum()) for one in extra)
    means = [100 * float(finite.mean()) for one in extra if len(finite := one[numpy.isfinite(one)])]
    return means, f"without {infinite} apps whose best placement takes no time" if infinite else ""


def _extra(outcome: Outcome, ours: str, bound: bool = False) -> Floats:
    """Excess of an app's time over that of the best known placement, or over the solver's bound, as a share.

    It is 0 for an app without a time. It is infinite if the best time or the bound is 0, and the time is not.
    """
    best = numpy.array([times[EXACT] for times in outcome.times])
    after = numpy.array([times[ours] for times in outcome.times])
    least = best * (1 - numpy.array(outcome.gaps)) if bound else best
    extra = numpy.where(after > least, numpy.inf, 0.0)
    numpy.divide(after - least, least, out=extra, where=least > 0)
    return numpy.maximum(extra, 0.0)


def _excess_of_median(outcome: Outcome, ours: str) -> float | None:
    """Median time over the median of the best placements' times, in percent more; None if the latter is 0."""
    best = float(numpy.median([times[EXACT] for times in outcome.times]))
    after = float(numpy.median([times[ours] for times in outcome.times]))
    return 100 * (after / best - 1) if best > 0 else None
