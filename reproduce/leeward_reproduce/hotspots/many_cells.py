"""The paper's comparison of two windows, with enough cells for narrow intervals.

A cell carries more in one window than in the next, because few jobs carry most of its traffic. So the change
in one cell says little, and neither does the mean of the changes in ten: a cell that happened to be cold
before changes by many times its value. The rows here have ten times the seeds. Beside the mean of changes
they have the change of the mean, in which a cold cell counts little.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy

from leeward.sweep import interval
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.sweeps import PILOT_MANY
from leeward_reproduce.hotspots.tasks import LOADS, METRIC_WORDS, windows
from leeward_reproduce.hotspots.windows import change_of
from leeward_reproduce.rows import Row, change_row, computed_row, missing_row, with_reason

SWEEPS = (PILOT_MANY,)
Pairs = Sequence[tuple[float, float]]
"""For each cell the values before and after."""
_FIGURE = "windows"
_NARROW = 20.0
"""Half of a narrow interval, in percent: less than half of most changes that the paper reports."""
_CHANGES = (
    ("hot", "borg", "utp", paper.HOT_TORS),
    ("p98", "borg", "utp", paper.P98),
    ("utilization", "borg", "utp", paper.UTILIZATION),
    ("moves", "utp-reactive", "utp", paper.MOVES),
    ("violations", "utp-reactive", "utp", paper.VIOLATIONS),
)


def rows(results: Results) -> list[Row]:
    """Tables 2 and 3 by the paper's windows."""
    cells, result = results[PILOT_MANY], []
    for metric, before, after, reported in _CHANGES:
        pairs = [
            (_median(first.samples(metric)), _median(second.samples(metric)))
            for first, second in windows(cells, before, after)
        ]
        label = f"{METRIC_WORDS[metric]}: {{}}, {before} to {after}"
        each = [value for pair in pairs for value in change_of(*pair)]
        quantity = label.format("mean of the cells' changes")
        result.append(change_row(_FIGURE, quantity, each, reported, "as in tables 2 and 3", LOADS))
        row = _of_mean(label.format("change of the cells' mean"), pairs, reported)
        result.append(row)
        result.append(_needed(label.format(f"cells for an interval of ± {_NARROW:g} %"), row, len(pairs)))
    return result


def change_of_mean(pairs: Pairs) -> tuple[float, list[float]] | None:
    """The change of a mean in percent, and the pseudo-values of the jackknife, which have its interval.

    None if the mean before is zero, or would be without one of the pairs.
    """
    before, after = numpy.array(pairs, dtype=float).reshape(-1, 2).T
    count = len(before)
    others = before.sum() - before
    if before.sum() <= 0 or (count > 1 and (others <= 0).any()):
        return None
    change = 100 * float(after.sum() / before.sum() - 1)
    if count == 1:
        return change, []
    without = 100 * ((after.sum() - after) / others - 1)
    return change, [float(value) for value in count * change - (count - 1) * without]


def _of_mean(quantity: str, pairs: Pairs, reported: float) -> Row:
    found = change_of_mean(pairs)
    if found is None:
        return missing_row(_FIGURE, quantity, "%", reported, "nothing of this kind before")
    change, pseudo_values = found
    note = f"of the medians of windows, over {len(pairs)} cells; interval by the jackknife"
    row = change_row(_FIGURE, quantity, [change], reported, note)
    low, high = interval(pseudo_values) or (None, None)
    if low is None or high is None:
        return row
    half = (high - low) / 2
    return with_reason(replace(row, ci_low=change - half, ci_high=change + half), LOADS)


def _median(samples: numpy.ndarray) -> float:
    """Median of samples; zero without any, as for a window without moves."""
    return float(numpy.median(samples)) if len(samples) else 0.0


def _needed(label: str, row: Row, cells: int) -> Row:
    """The number of cells with which the interval of a row would be narrow.

    An interval shrinks with the root of the number.
    """
    if row.ci_low is None or row.ci_high is None:
        return missing_row(_FIGURE, label, "cells", None, "one seed has no interval")
    half = (row.ci_high - row.ci_low) / 2
    return computed_row(_FIGURE, label, "cells", math.ceil(cells * (half / _NARROW) ** 2))
