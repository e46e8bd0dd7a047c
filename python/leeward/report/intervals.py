"""The comparison of policies over several seeds as rows: a quantity, its mean and interval under each."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from leeward.report import rows as words
from leeward.report.rows import NONE, Row, against, count, number, percent, seconds, shares, times, troubles

_Show = Callable[[float], str]
_Figure = Literal["mean", "difference", "ratio"]

_TIMES = (
    (words.BLOCK_TIME, "block_write_s.mean"),
    (words.FULL_TIME, "full_block_write_s.mean"),
    ("  95th percentile", "full_block_write_s.p95"),
    ("  99th percentile", "full_block_write_s.p99"),
    (words.SMALLER_TIME, "partial_block_write_s.mean"),
    (words.FILE_TIME, "file_write_s.mean"),
    (words.JOB_TIME, "job_s.mean"),
)
_UNEVENNESS = (
    (words.UPLINKS, "rack_uplink_cv", number),
    (words.DOWNLINKS, "rack_downlink_cv", number),
    (words.HOT, "hot_share", percent),
    (words.STORAGE, "rack_storage_cv", number),
)


def interval_rows(summary: Sequence[dict[str, Any]], policies: Sequence[str]) -> list[Row]:
    """Rows of the comparison of a sweep under one setting.

    Args:
        summary: What `leeward.sweep.summarize` says of the setting, as dictionaries.
        policies: The columns; the first is what the others are compared with.
    """
    baseline = policies[0]
    found = {(row["policy"], row["quantity"]): row for row in summary}

    def cell(policy: str, quantity: str, show: _Show, figure: _Figure) -> str:
        of = f"{quantity.rpartition('.')[0]}.count"
        if (policy, of) in found and not found[policy, of]["mean"]:
            return "" if found[policy, of]["mean"] is None else NONE
        return _cell(found[policy, quantity], figure, show)

    def row(words: str, quantity: str, show: _Show, figure: _Figure = "mean") -> Row:
        return Row(words, tuple(cell(policy, quantity, show, figure) for policy in policies))

    rows = [
        row(words.BLOCKS, "blocks", count),
        row(words.FULL, "full_block_write_s.count", count),
        row(words.SMALLER, "partial_block_write_s.count", count),
    ]
    for name, quantity in _TIMES:
        rows.append(row(name, quantity, seconds))
        if len(policies) > 1:
            rows.append(row(f"    {against(baseline)}", quantity, times, "ratio"))
    if len(policies) > 1:
        compared = "against_baseline.full_blocks."
        rows.append(row(f"time of the same full blocks, {against(baseline)}", f"{compared}factor", times))
        rows += [row(name, f"{compared}{share}", percent) for name, share in shares(baseline)]
    for name, quantity, show in _UNEVENNESS:
        rows.append(row(name, quantity, show))
        if len(policies) > 1:
            rows.append(row(f"    this - {baseline}", quantity, show, "difference"))
    for name, quantity in troubles():
        if any(found[policy, quantity]["mean"] for policy in policies):
            rows.append(row(name, quantity, count))
    return rows


def _cell(row: dict[str, Any], figure: _Figure, show: _Show) -> str:
    if row[figure] is None:
        return ""
    high = row["high" if figure == "mean" else f"{figure}_high"]
    text = show(row[figure])
    if high is None:
        return text
    half = high - row[figure]
    return f"{text} ± {seconds(half, row[figure]) if show is seconds else show(half)}"
