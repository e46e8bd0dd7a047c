"""Rows of figures 6, 7 and 8 in small: the paper, the simulator and the cluster beside each other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy

from leeward_reproduce.etalon.kernels.expected import agreement
from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.real.pairs import Measures, Pair
from leeward_reproduce.sinbad.real.scenario import SIZES

Runs = dict[str, Measures]
_TEXTS = {"downlink": "links into racks", "uplink": "links out of racks"}
_CV = {"downlink": "rack_downlink_cv", "uplink": "rack_uplink_cv"}
_ONE = "files of one block"
_FILES = "files of one to four blocks; the paper's are all writes of a job"


def blocks(pairs: Sequence[Pair]) -> list[Row]:
    """Figure 6."""
    rows = [
        _row(
            "6", "blocks, mean: default / sinbad", "x", pairs, _ratio(_mean, 1), paper.MACHINES_BLOCKS, _ONE
        ),
        _row("6", "files, mean: default / sinbad", "x", pairs, _ratio(_mean), paper.MACHINES_WRITES, _FILES),
        _row("6", "files, median: default / sinbad", "x", pairs, _ratio(numpy.median)),
        _row("6", "files, 90th percentile: default / sinbad", "x", pairs, _ratio(_tail)),
    ]
    times = [
        _row("6", f"time of a file, mean: {policy}", "s", pairs, _time(policy))
        for policy in ("default", "sinbad")
    ]
    return [*rows, *times, _agreement("6", "time of a file", times)]


def sizes(pairs: Sequence[Pair]) -> list[Row]:
    """Figure 7."""
    note = "the paper: no significant difference between sizes"
    rows = []
    for size in SIZES:
        text = f"files of {size} block{'s' * (size > 1)}, mean: default / sinbad"
        rows.append(_row("7", text, "x", pairs, _ratio(_mean, size), note=note))
    return rows


def imbalance(pairs: Sequence[Pair]) -> list[Row]:
    """Figure 8."""
    rows = []
    for way, words in _TEXTS.items():
        text = f"decrease of the median Cv, {words}: default - sinbad"
        why = "writers are not placed, and background comes from outside of racks" if way == "uplink" else ""
        rows.append(_row("8", text, "", pairs, _decrease(way), paper.CV_DECREASE[_CV[way]], why))
    levels = [
        _row("8", f"median Cv, {words}: {policy}", "", pairs, _level(way, policy))
        for way, words in _TEXTS.items()
        for policy in ("default", "sinbad")
    ]
    return [*rows, *levels, _agreement("8", "median Cv", levels)]


def _row(
    figure: str,
    quantity: str,
    unit: str,
    pairs: Sequence[Pair],
    value: Callable[[Runs], float],
    reported: float | None = None,
    note: str = "",
) -> Row:
    """A row with the mean over pairs, and an interval for the cluster. Pairs without a value do not count."""
    real, simulator = (
        [number for number in map(value, runs) if math.isfinite(number)]
        for runs in ([pair.real for pair in pairs], [pair.simulator for pair in pairs])
    )
    row = measured_row(figure, quantity, unit, real, reported, note)
    return replace(row, simulator=math.fsum(simulator) / len(simulator) if simulator else None)


def _agreement(figure: str, quantity: str, rows: Sequence[Row]) -> Row:
    pairs = [(row.simulator, row.ours) for row in rows]
    text = f"{quantity}: largest difference of cluster and simulator"
    return agreement(figure, text, "%", pairs, points=False)


def _seconds(runs: Runs, size: int | None) -> dict[str, list[float]]:
    """Times of the files that are complete under both policies, or of those with a number of blocks."""
    default, sinbad = runs["default"], runs["sinbad"]
    both = [
        (one, other)
        for count, one, other in zip(default.blocks, default.seconds, sinbad.seconds, strict=True)
        if one is not None and other is not None and size in (None, count)
    ]
    return {"default": [one for one, _ in both], "sinbad": [other for _, other in both]}


def _ratio(statistic: Callable[[list[float]], float], size: int | None = None) -> Callable[[Runs], float]:
    def ratio(runs: Runs) -> float:
        times = _seconds(runs, size)
        if not times["default"]:
            return math.nan
        return float(statistic(times["default"])) / float(statistic(times["sinbad"]))

    return ratio


def _time(policy: str) -> Callable[[Runs], float]:
    def time(runs: Runs) -> float:
        return _mean(_seconds(runs, None)[policy])

    return time


def _decrease(way: str) -> Callable[[Runs], float]:
    def decrease(runs: Runs) -> float:
        return runs["default"].cv[way] - runs["sinbad"].cv[way]

    return decrease


def _level(way: str, policy: str) -> Callable[[Runs], float]:
    def level(runs: Runs) -> float:
        return runs[policy].cv[way]

    return level


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _tail(values: list[float]) -> float:
    return float(numpy.quantile(values, 0.9))
