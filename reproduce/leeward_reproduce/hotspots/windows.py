"""Samples of a cell's metrics in two windows, for the comparisons of tables 2 and 3.

The paper compares five days before a change with five days after it, in one cell. Here the time of a run
after the warm-up is cut into two windows. *Before* is the first window of a run without the change; *after*
is the second window of a run with the change. The two windows have different tasks, as in the paper. Each run
has one policy from its start: the change itself is not simulated. A sample is a fifth of a window. In windows
of five days, each sample is a whole day, so the time of day does not affect the samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import pyarrow

from leeward._arrays import Floats, Ints
from leeward_reproduce.sweeps import Cells

HOUR_S = 3600.0
SAMPLES = 5
"""Number of samples of a window."""
METRICS = ("hot", "p98", "utilization", "moves", "violations")
"""Names of metrics.

* `hot`: share of ToRs that are hot outbound, in percent.
* `p98`: 98th percentile of ToRs' outbound utilization, in percent.
* `utilization`: utilization of all uplinks together, in percent.
* `moves`: number of tasks moved per day.
* `violations`: share of placements of network-intensive tasks that are on a hot ToR, in percent.
"""


@dataclass(frozen=True)
class Window:
    """A part of a run."""

    intervals: dict[str, Floats]
    """Columns of a table `cell`."""

    def samples(self, metric: str) -> Floats:
        """Values of a metric in the fifths of the window. Fifths without a value are left out."""
        bin_of = numpy.arange(self._count) * SAMPLES // max(self._count, 1)
        results = self._binned(metric, bin_of.astype(numpy.int64), SAMPLES)
        return results[numpy.isfinite(results)]

    def hourly(self, metric: str) -> Floats:
        """Values of a metric in each hour; NaN without a value. An incomplete last hour is left out."""
        start, length = self.intervals["start_s"], self.intervals["length_s"]
        if not self._count:
            return numpy.empty(0)
        since = start - start[0]
        whole = int((since[-1] + length[-1]) / HOUR_S + 1e-9)
        return self._binned(metric, (since / HOUR_S + 1e-9).astype(numpy.int64), whole)

    def mean(self, metric: str) -> float:
        """Mean of a metric over the window; zero without a value."""
        results = self._binned(metric, numpy.zeros(self._count, dtype=numpy.int64), 1)
        return float(results[0]) if len(results) and numpy.isfinite(results[0]) else 0.0

    @property
    def _count(self) -> int:
        return len(self.intervals["start_s"])

    def _binned(self, metric: str, bin_of: Ints, bins: int) -> Floats:
        """Values of a metric in each bin; `bin_of` has the bin of each interval."""
        columns = self.intervals

        def total(values: Floats) -> Floats:
            return numpy.bincount(bin_of, values, minlength=bins)[:bins].astype(numpy.float64)

        with numpy.errstate(divide="ignore", invalid="ignore"):
            match metric:
                case "violations":
                    return 100 * total(columns["intensive_on_hot"]) / total(columns["intensive"])
                case "moves":
                    return 24 * HOUR_S * total(columns["moved"]) / total(columns["length_s"])
            column = {"hot": "hot_uplinks", "p98": "tor_p98", "utilization": "utilization"}[metric]
            values = columns[column] / columns["tors"] if metric == "hot" else columns[column]
            return 100 * total(values) / total(numpy.ones(self._count))


def run(cells: Cells, policy: str, seed: int, value: str | None = None) -> Window:
    """The whole time of a run after the warm-up, as one window."""
    return window_of(cells.table("cell", policy, seed, value))


def window_of(table: pyarrow.Table) -> Window:
    """All intervals of a table `cell`, as one window."""
    return Window({name: table[name].to_numpy().astype(float) for name in table.column_names})


def half(window: Window, number: int) -> Window:
    """Half of a window. The first half has the number 0, and the second half 1."""
    count = len(window.intervals["start_s"]) // 2
    selection = slice(number * count, (number + 1) * count)
    return Window({name: values[selection] for name, values in window.intervals.items()})


def change(before: Floats, after: Floats) -> list[float]:
    """Change from the median of `before` to the median of `after`, in percent, as a list.

    The list is empty without samples, or if the median of `before` is zero.
    """
    if not len(before) or not len(after):
        return []
    return change_of(float(numpy.median(before)), float(numpy.median(after)))


def change_of(before: float, after: float) -> list[float]:
    """Change from `before` to `after` in percent, as a list; empty if `before` is zero."""
    return [100 * (after - before) / before] if before > 0 else []


def student_p_value(before: Floats, after: Floats) -> float:
    """Two-sided p-value of Student's t-test of two samples; 1 without a difference."""
    from scipy import stats

    if len(before) < 2 or len(after) < 2:
        return 1.0
    if before.std() == 0 and after.std() == 0:
        return float(before[0] == after[0])
    return float(stats.ttest_ind(after, before).pvalue)


def paired_p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided p-value of Student's t-test of paired differences; 1 without a difference."""
    from scipy import stats

    differences = numpy.asarray(after, dtype=float) - numpy.asarray(before, dtype=float)
    if len(differences) < 2:
        return 1.0
    if differences.std() == 0:
        return float(differences[0] == 0)
    return float(stats.ttest_1samp(differences, 0.0).pvalue)
