"""The paper's comparison of two windows, with so many cells that its intervals say something.

A cell carries more in one window than in the next, because few jobs carry most of its traffic. So the change
in one cell says little, and neither does the mean of the changes in ten: a cell that happened to be cold
before changes by many times its value. The rows here have ten times the seeds. Beside the mean of changes
they have the change of the mean, in which a cold cell counts little.
"""

import math
from collections.abc import Sequence

import numpy

from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.sweeps import PILOT_MANY
from leeward_reproduce.hotspots.tasks import METRIC_WORDS, windows
from leeward_reproduce.hotspots.windows import change_of
from leeward_reproduce.rows import Row, computed_row, measured_row, missing_row

SWEEPS = (PILOT_MANY,)
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
        result.append(
            measured_row(
                _FIGURE,
                label.format("mean of the cells' changes"),
                "%",
                each,
                reported,
                "as in tables 2 and 3",
            )
        )
        note = f"of the medians of windows, over {len(pairs)} cells; interval by the jackknife"
        row = measured_row(
            _FIGURE, label.format("change of the cells' mean"), "%", pseudo_values(pairs), reported, note
        )
        result.append(row)
        result.append(_needed(label.format(f"cells for an interval of ± {_NARROW:g} %"), row, len(pairs)))
    return result


def pseudo_values(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Values whose mean is the change of a mean in percent, and whose interval is that of the jackknife.

    The list is empty if nothing, or nothing but one pair, has a value before.

    Args:
        pairs: For each cell the values before and after.
    """
    before, after = numpy.array(pairs, dtype=float).reshape(-1, 2).T
    others = before.sum() - before
    if before.sum() <= 0 or (len(before) > 1 and (others <= 0).any()):
        return []
    whole = 100 * (after.sum() / before.sum() - 1)
    if len(before) == 1:
        return [float(whole)]
    without = 100 * ((after.sum() - after) / others - 1)
    count = len(before)
    return [float(value) for value in count * whole - (count - 1) * without]


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
