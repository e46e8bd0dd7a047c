"""Rows of a reproduction: values of a paper beside those measured here.

A measured value has a confidence interval over seeds; the result of a formula has none. A figure that this
version cannot measure still has a row, with the reason instead of a value, so that the gap stays visible.

A row that has a value of the paper and one of ours is compared, and holds or does not:

| kind of row | holds |
| --- | --- |
| a value | within 15 % of the paper's value |
| a change in percent | within 5 percentage points of the paper's change, with its sign |
| a value or change of 0 in the paper | a value at exactly 0; a change within 5 percentage points |
| a range in the paper | within the range, or as near to its nearer end as to a value |

A row that does not hold has a reason, which was tested or says that it was not. A reason may name a variant,
a row that differs in the reason alone; `variants` compares the two. Rows that cannot be compared are made by
`reference_row`: they have the paper's value beside ours, and no difference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leeward.sweep import interval

FAR = 15.0
"""Largest difference from the paper, in percent of its value, at which a row holds."""
NEAR_POINTS = 5.0
"""Largest difference from a change in the paper, in percentage points, at which a row holds."""
Paper = float | tuple[float, float] | None
"""A value of a paper, the lower and upper end of its range, or None if it has no value."""


@dataclass(frozen=True)
class Reason:
    """Reason of a difference from the paper."""

    text: str
    tested: str = ""
    """Test of the reason, and its outcome. Empty if the reason was not tested."""
    variant: str = ""
    """Key (`row_key`) of a row that tests the reason; empty without one."""


NOT_EXPLAINED = Reason("not explained")
"""Reason of a row without a known reason."""
INSIDE = Reason("the interval includes the paper's value", "the interval over seeds")
"""Reason of a row whose confidence interval includes the paper's value. A known reason stays beside it."""
WIDE = Reason("too few seeds: the interval includes the paper's value, and half of it exceeds that value")
"""Reason of a row whose confidence interval is too wide for a test. A known reason stays beside it."""


@dataclass(frozen=True)
class Row:
    """A quantity of a figure or section, as the paper has it and as measured here."""

    figure: str
    """The paper's figure or section, or our name for an experiment beyond the paper."""
    quantity: str
    unit: str
    paper: float | None
    """The paper's value, or the lower end of its range; None if it has none."""
    ours: float | None
    """Mean over seeds, or the result of a formula; None if the quantity was not measured."""
    ci_low: float | None
    ci_high: float | None
    """95 % confidence interval of that mean; None for formulas, and with fewer than two seeds."""
    deviation_percent: float | None
    """Difference of our value from the paper's, or from the nearer end of its range, in percent of the
    latter. None for a change, for a value of 0 in the paper that ours misses, and without a comparison."""
    note: str
    """Differences from the paper in inputs or method, and what the quantity is."""
    simulator: float | None = None
    """For a quantity of the lab: the simulator's value; None if it has none."""
    expected: str = ""
    """For a quantity of the lab: what it should be."""
    met: bool | None = None
    """Whether it is; None if nothing is expected, or nothing was measured."""
    simulator_low: float | None = None
    simulator_high: float | None = None
    """95 % confidence interval of the simulator's mean; None for single runs."""
    paper_high: float | None = None
    """Upper end of the paper's range; None for a single value."""
    deviation_points: float | None = None
    """For a change, and for percentages that are 0 in the paper: our value less the paper's, or less the
    nearer end of its range, in percentage points."""
    holds: bool | None = None
    """True if the row holds, False if not; None if it is not compared."""
    reason: str = ""
    """Reason of a row that does not hold."""
    tested: str = ""
    """Test of the reason; empty if the reason was not tested."""
    variant: str = ""
    """Key of the row that tests the reason; empty without one."""
    is_refuted: bool = False
    """True if the test refutes the reason."""

    @property
    def nearest(self) -> float | None:
        """The paper's value; of a range, the value in it that is nearest to ours."""
        if self.paper is None or self.ours is None or self.paper_high is None:
            return self.paper
        return min(max(self.ours, self.paper), self.paper_high)


def measured_row(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float],
    paper: Paper = None,
    note: str = "",
    reason: Reason | None = None,
) -> Row:
    """A row with the mean of values, one value for each seed.

    Args:
        figure: Name of the figure.
        quantity: Name of the quantity.
        unit: Its unit.
        values: Its values.
        paper: Value or range of the paper.
        note: Note of the row.
        reason: Reason of a difference from the paper, for a row that does not hold.
    """
    return with_reason(compare(_mean_row(figure, quantity, unit, values, note), paper), reason)


def change_row(
    figure: str,
    quantity: str,
    values: Sequence[float],
    paper: Paper = None,
    note: str = "",
    reason: Reason | None = None,
    unit: str = "%",
) -> Row:
    """A row with the mean of changes in percent; it is compared with the paper in percentage points.

    Args:
        figure: Name of the figure.
        quantity: Name of the quantity.
        values: Changes, one for each seed.
        paper: Change or range of changes of the paper.
        note: Note of the row.
        reason: Reason of a difference from the paper, for a row that does not hold.
        unit: `%`, with words about its base if it has any.
    """
    row = _mean_row(figure, quantity, unit, values, note)
    return with_reason(compare(row, paper, is_change=True), reason)


def reference_row(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float],
    paper: Paper,
    note: str,
) -> Row:
    """A row without a comparison, because the paper's value is for reference only; its note says why."""
    return as_reference(_mean_row(figure, quantity, unit, values, note), paper)


def as_reference(row: Row, paper: Paper) -> Row:
    """A row that was not compared, beside a value of the paper that is for reference only."""
    low, high = _ends(paper)
    return replace(row, paper=low, paper_high=high)


def computed_row(
    figure: str,
    quantity: str,
    unit: str,
    value: float,
    paper: Paper = None,
    note: str = "",
    reason: Reason | None = None,
) -> Row:
    """A row with the result of a formula."""
    row = Row(figure, quantity, unit, None, value, None, None, None, note)
    return with_reason(compare(row, paper), reason)


def missing_row(figure: str, quantity: str, unit: str, paper: Paper, why: str) -> Row:
    """A row without a measured value; its note states the reason."""
    row = Row(figure, quantity, unit, None, None, None, None, None, f"not measured: {why}")
    return compare(row, paper)


def compare(row: Row, paper: Paper, *, is_change: bool = False) -> Row:
    """The row with a value of the paper, its difference from it, and whether it holds.

    Args:
        row: The row.
        paper: Value or range of the paper.
        is_change: True for a change in percent.
    """
    low, high = _ends(paper)
    row = replace(row, paper=low, paper_high=high)
    nearest, ours = row.nearest, row.ours
    if nearest is None or ours is None:
        return row
    difference = float(ours - nearest)
    if is_change:
        has_sign = nearest == 0 or ours * nearest > 0
        holds = bool(has_sign and abs(difference) <= NEAR_POINTS)
        return replace(row, deviation_points=difference, holds=holds)
    if nearest == 0 and difference != 0:
        points = difference if row.unit == "%" else None
        return replace(row, deviation_points=points, holds=False)
    percent = 100 * difference / abs(nearest) if difference else 0.0
    return replace(row, deviation_percent=percent, holds=abs(percent) <= FAR)


def with_reason(row: Row, reason: Reason | None = None) -> Row:
    """A row that does not hold and has no reason, with a reason; other rows as they are.

    Args:
        row: The row.
        reason: Reason of the difference. It follows that of an interval which includes the paper's value.
    """
    if row.holds is not False or row.reason:
        return row
    if _is_inside(row):
        first = WIDE if _is_wide(row) else INSIDE
        text = "; ".join([first.text, *([reason.text] if reason else [])])
        reason = Reason(text, first.tested)
    if reason is None:
        return row
    return replace(row, reason=reason.text, tested=reason.tested, variant=reason.variant)


def row_key(figure: str, quantity: str) -> str:
    """Name of a row among those of all figures of a paper."""
    return f"figure {figure}: {quantity}"


def _is_wide(row: Row) -> bool:
    """True if half of the interval is larger than the paper's value; False for a value of 0."""
    if not row.nearest or row.ci_low is None or row.ci_high is None:
        return False
    return (row.ci_high - row.ci_low) / 2 > abs(row.nearest)


def _is_inside(row: Row) -> bool:
    if row.paper is None or row.ci_low is None or row.ci_high is None:
        return False
    high = row.paper if row.paper_high is None else row.paper_high
    return row.ci_low <= high and row.paper <= row.ci_high


def _ends(paper: Paper) -> tuple[float | None, float | None]:
    """Value and None, or the ends of a range."""
    return paper if isinstance(paper, tuple) else (paper, None)


def _mean_row(figure: str, quantity: str, unit: str, values: Sequence[float], note: str) -> Row:
    if not values:
        return missing_row(figure, quantity, unit, None, "nothing of this kind in these runs")
    mean = math.fsum(values) / len(values)
    low, high = interval(values) or (None, None)
    return Row(figure, quantity, unit, None, mean, low, high, None, note)
