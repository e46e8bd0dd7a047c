"""The comparison of policies as rows of a table: a quantity, and its value under each policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leeward._native import Run


@dataclass(frozen=True)
class Row:
    """One line of the comparison."""

    quantity: str
    """What it is, in words."""
    cells: tuple[str, ...]
    """Its value under each policy, with its unit."""


def comparison_rows(runs: Sequence[Run]) -> list[Row]:
    """Rows of the comparison of runs on the same arrivals; the first is what the others are compared with."""
    summaries = [run.summary() for run in runs]
    others = [run.compare(runs[0]) if at else None for at, run in enumerate(runs)]
    baseline = runs[0].policy
    rows = [
        _row("blocks written", summaries, lambda s: f"{s['blocks']:,}"),
        _row("block write time, mean", summaries, lambda s: seconds(s["block_write_s"]["mean"])),
        _row("full blocks written", summaries, lambda s: f"{s['full_block_write_s']['count']:,}"),
        _row("full block write time, mean", summaries, lambda s: seconds(s["full_block_write_s"]["mean"])),
        _row("  median", summaries, lambda s: seconds(s["full_block_write_s"]["p50"])),
        _row("  95th percentile", summaries, lambda s: seconds(s["full_block_write_s"]["p95"])),
        _row("  99th percentile", summaries, lambda s: seconds(s["full_block_write_s"]["p99"])),
        _row("file write time, mean", summaries, lambda s: seconds(s["file_write_s"]["mean"])),
    ]
    if summaries[0]["job_s"]["count"]:
        rows.append(_row("job write time, mean", summaries, lambda s: seconds(s["job_s"]["mean"])))
    if len(runs) > 1:
        faster = f"full blocks faster than {baseline}"
        rows += [
            _row(f"full block time, {baseline} / this", others, lambda c: times(c["full_blocks"]["factor"])),
            _row("  all blocks", others, lambda c: times(c["blocks"]["factor"])),
            _row("  files", others, lambda c: times(c["files"]["factor"])),
            _row(faster, others, lambda c: percent(c["full_blocks"]["faster"])),
            _row("  the same (within 1 %)", others, lambda c: percent(c["full_blocks"]["same"])),
            _row("  slower", others, lambda c: percent(c["full_blocks"]["slower"])),
            _row("  in half the time or less", others, lambda c: percent(c["full_blocks"]["twice_as_fast"])),
        ]
    hot = f"rack-link intervals over {100 * runs[0].hot:.0f} %"
    rows += [
        _row("imbalance of rack uplinks (Cv)", summaries, lambda s: number(s["rack_uplink_cv"])),
        _row("imbalance of rack downlinks (Cv)", summaries, lambda s: number(s["rack_downlink_cv"])),
        _row(hot, summaries, lambda s: percent(s["hot_share"])),
        _row("imbalance of stored bytes by rack (Cv)", summaries, lambda s: number(s["rack_storage_cv"])),
    ]
    if any(s["blocks_unfinished"] or s["retries"] for s in summaries):
        rows += [
            _row("blocks not written in time", summaries, lambda s: f"{s['blocks_unfinished']:,}"),
            _row("placements refused or repeated", summaries, lambda s: f"{s['retries']:,}"),
        ]
    return rows


def _row(quantity: str, values: Sequence[Any], show: Callable[[Any], str]) -> Row:
    return Row(quantity, tuple("" if value is None else show(value) for value in values))


def seconds(value: float) -> str:
    """A duration with three digits."""
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"


def times(factor: float) -> str:
    """A factor."""
    return f"{factor:.2f}x"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def number(value: float | None) -> str:
    """A plain number with two decimals; a dash where there is none."""
    return "-" if value is None else f"{value:.2f}"
