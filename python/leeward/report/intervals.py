"""The comparison of policies over several seeds as rows: a quantity, its mean and interval under each policy.

The lines are those of one seed. The line below a time has the ratio to the baseline's time, and the line
below an imbalance has the difference from the baseline's imbalance.
"""

from collections.abc import Sequence
from typing import Any, Literal

from leeward._figures import BASELINE
from leeward._quantities import NONE, percent_text, time_text
from leeward.report.rows import Quantity, Row, against, quantities, times

_Figure = Literal["mean", "difference", "ratio"]


def interval_rows(summary: Sequence[dict[str, Any]], policies: Sequence[str]) -> list[Row]:
    """Rows of the comparison of a sweep under one setting.

    Args:
        summary: Results of `leeward.sweep.summarize` for the setting, as dictionaries.
        policies: Policies of the columns; the others are compared with the first.
    """
    baseline = policies[0]
    row_of = {(row["policy"], row["quantity"]): row for row in summary}
    rows = []
    for quantity in quantities(policies, {name for _, name in row_of}):
        of_policies = [row_of[policy, quantity.figure] for policy in policies]
        if quantity.only_if_any and not any(row["mean"] for row in of_policies):
            continue
        rows.append(Row(quantity.words, _cells(quantity, of_policies, "mean")))
        if quantity.against and len(policies) > 1:
            words = against(baseline) if quantity.against == "ratio" else f"this - {baseline}"
            rows.append(Row(f"    {words}", _cells(quantity, of_policies, quantity.against)))
    return rows


def _cells(quantity: Quantity, of_policies: Sequence[dict[str, Any]], figure: _Figure) -> tuple[str, ...]:
    """Cells of a line: empty for a policy compared with itself, a dash without a value."""
    is_comparison = figure != "mean" or quantity.figure.startswith(BASELINE)
    first = "" if is_comparison else _cell(quantity, of_policies[0], figure)
    return first, *(_cell(quantity, row, figure) for row in of_policies[1:])


def _cell(quantity: Quantity, row: dict[str, Any], figure: _Figure) -> str:
    if row[figure] is None:
        return NONE
    show = times if figure == "ratio" else quantity.show
    high = row["high" if figure == "mean" else f"{figure}_high"]
    text = show(row[figure])
    if high is None:
        return text
    half = high - row[figure]
    return f"{text} ± {show(half, beside=row[figure]) if show in (percent_text, time_text) else show(half)}"
