"""Means over seeds with confidence intervals, paired by seed.

Seeds are independent draws of arrivals, and all policies of a seed have the same arrivals. So a policy is
compared with the baseline seed by seed. The interval is that of the mean of these differences or ratios,
without the variance that both policies share. Intervals are Student's: mean +- t(n - 1) s / sqrt(n), with s
the standard deviation over n seeds. They hold if the value of a seed is about normally distributed. A mean
over thousands of writes is.
"""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow

from leeward._extras import needed
from leeward.errors import InputError

CONFIDENCE = 0.95
FIGURES = (
    *("mean", "low", "high"),
    *("difference", "difference_low", "difference_high"),
    *("ratio", "ratio_low", "ratio_high"),
)
_NAMES = ("policy", "seed", "baseline")


def summarize(table: pyarrow.Table, confidence: float = CONFIDENCE) -> pyarrow.Table:
    """Summarizes a sweep over its seeds.

    Args:
        table: Cells of a sweep, as `run` returns them, or some of them.
        confidence: Confidence of the intervals, between 0 and 1.

    Returns:
        A row for each setting, policy and quantity: `set.PATH` for each path, `policy`, `baseline`,
        `quantity` (a column of the cells), `seeds` (number of seeds with it), and for three figures their
        mean over seeds and their interval: `mean`, `low`, `high`; `difference`, `difference_low`,
        `difference_high` from the baseline under the same seed; `ratio`, `ratio_low`, `ratio_high`, the
        baseline's value over this one's. An interval is null with less than two seeds. Differences and ratios
        are null for the baseline, and for quantities that are comparisons already. A ratio is also null if
        the value of a seed is not above zero.

    Raises:
        InputError: The confidence is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        message = f"`{confidence}`: expected a share between 0 and 1"
        raise InputError.about("confidence", message)
    settings = [name for name in table.column_names if name.startswith("set.")]
    quantities = [name for name in table.column_names if name not in (*settings, *_NAMES)]
    rows = table.to_pylist()
    points = [tuple(row[name] for name in settings) for row in rows]
    by_cell = {(point, row["policy"], row["seed"]): row for point, row in zip(points, rows, strict=True)}
    groups: dict[tuple[Any, str], list[dict[str, Any]]] = {}
    for point, row in zip(points, rows, strict=True):
        groups.setdefault((point, row["policy"]), []).append(row)
    result = []
    for (point, policy), members in groups.items():
        baseline = members[0]["baseline"]
        for quantity in quantities:
            values = [row for row in members if row[quantity] is not None]
            pairs = []
            if policy != baseline and not quantity.startswith("against_baseline."):
                others = [by_cell.get((point, baseline, row["seed"]), {}).get(quantity) for row in values]
                rows_and_others = zip(values, others, strict=True)
                pairs = [(row[quantity], other) for row, other in rows_and_others if other is not None]
            ratios = [other / ours for ours, other in pairs] if all(min(pair) > 0 for pair in pairs) else []
            figures = (
                *_mean(confidence, [row[quantity] for row in values]),
                *_mean(confidence, [ours - other for ours, other in pairs]),
                *_mean(confidence, ratios),
            )
            keys = {"policy": policy, "baseline": baseline, "quantity": quantity, "seeds": len(values)}
            result.append(
                dict(zip(settings, point, strict=True)) | keys | dict(zip(FIGURES, figures, strict=True))
            )
    texts = [(name, pyarrow.string()) for name in (*settings, "policy", "baseline", "quantity")]
    numbers = [(name, pyarrow.float64()) for name in FIGURES]
    return pyarrow.Table.from_pylist(result, pyarrow.schema([*texts, ("seeds", pyarrow.int64()), *numbers]))


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Student's interval of the mean; None with fewer than two values."""
    with needed():
        from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = float(stdtrit(count - 1, (1 + confidence) / 2)) * math.sqrt(variance / count)
    return mean - half, mean + half


def _mean(confidence: float, values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The mean and its interval."""
    mean = math.fsum(values) / len(values) if values else None
    return mean, *(interval(values, confidence) or (None, None))
