"""The comparison of policies as rows of a table: a quantity, and its value under each policy.

The words are those of every table, on the terminal and on the page, of one seed and of many; `glossary` says
what they mean.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leeward._native import Run

NONE = "-"
"""What stands where there is no value: nothing was written, or nothing carried."""

BLOCKS = "blocks written"
BLOCK_TIME = "block write time, mean"
FULL = "full blocks written"
FULL_TIME = "full block write time, mean"
SMALLER = "smaller blocks written"
SMALLER_TIME = "smaller block write time, mean"
FILE_TIME = "file write time, mean"
JOB_TIME = "job time, submission to last file, mean"
UPLINKS = "imbalance of rack uplinks (Cv)"
DOWNLINKS = "imbalance of rack downlinks (Cv)"
STORAGE = "imbalance of stored bytes by rack (Cv)"
HOT = "rack-link intervals that are hot"
UNWRITTEN = "not written"
RETRIES = "placements refused or repeated"
BLIND = "placed blindly (no telemetry)"

_WORDS = {
    "write time": "from asking for a block to its last copy on disk; of a file, from its first block to its"
    " last",
    "full block": "one of its file's block size; a smaller block is the rest at the end of a file",
    "Cv": "standard deviation over mean: of the loads of all links of a tier in an interval (the median over"
    " all intervals), or of what racks store; 0 is even",
    "hot": "of a link of a rack or pod: a mean load of more than 75 % (or what the scenario says) in an"
    " interval",
}


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

    def row(words: str, show: Callable[[Any], str]) -> Row:
        return Row(words, tuple(show(summary) for summary in summaries))

    def time(words: str, name: str, figure: str = "mean") -> Row:
        return row(words, lambda s: seconds(s[name][figure]) if s[name]["count"] else NONE)

    def pairs(words: str, name: str, figure: str, show: Callable[[float], str]) -> Row:
        shown = (c and (show(c[name][figure]) if c[name]["count"] else NONE) for c in others)
        return Row(words, tuple(cell or "" for cell in shown))

    rows = [
        row(BLOCKS, lambda s: count(s["blocks"])),
        time(BLOCK_TIME, "block_write_s"),
        row(FULL, lambda s: count(s["full_block_write_s"]["count"])),
        time(FULL_TIME, "full_block_write_s"),
        time("  median", "full_block_write_s", "p50"),
        time("  95th percentile", "full_block_write_s", "p95"),
        time("  99th percentile", "full_block_write_s", "p99"),
        row(SMALLER, lambda s: count(s["partial_block_write_s"]["count"])),
        time(SMALLER_TIME, "partial_block_write_s"),
        time(FILE_TIME, "file_write_s"),
    ]
    if any(summary["job_s"]["count"] for summary in summaries):
        rows.append(time(JOB_TIME, "job_s"))
    if len(runs) > 1:
        rows += [
            pairs(f"time of the same full blocks, {against(baseline)}", "full_blocks", "factor", times),
            pairs("  smaller blocks", "partial_blocks", "factor", times),
            pairs("  all blocks", "blocks", "factor", times),
            pairs("  files", "files", "factor", times),
            *(pairs(words, "full_blocks", name, percent) for words, name in shares(baseline)),
        ]
    rows += [
        row(UPLINKS, lambda s: number(s["rack_uplink_cv"])),
        row(DOWNLINKS, lambda s: number(s["rack_downlink_cv"])),
        row(HOT, lambda s: percent(s["hot_share"])),
        row(STORAGE, lambda s: number(s["rack_storage_cv"])),
    ]
    for words, name in troubles():
        if any(summary[name] for summary in summaries):
            rows.append(row(words, lambda s, name=name: count(s[name])))  # type: ignore[misc]
    return rows


def against(baseline: str) -> str:
    """How a ratio to the baseline is called: above 1 is faster than it."""
    return f"{baseline} / this"


def shares(baseline: str) -> list[tuple[str, str]]:
    """Words for the shares of full blocks that are faster, slower and so on, and what results call them."""
    return [
        (f"full blocks faster than {baseline}", "faster"),
        ("  the same (within 1 %)", "same"),
        ("  slower", "slower"),
        ("  in half the time or less", "twice_as_fast"),
    ]


def troubles() -> list[tuple[str, str]]:
    """Words for what went wrong, shown only if it did, and what results call it."""
    return [(UNWRITTEN, "blocks_unfinished"), (RETRIES, "retries"), (BLIND, "placed_blindly")]


def glossary(rows: Sequence[Row], baseline: str) -> list[tuple[str, str]]:
    """The words of some rows, and what they mean."""
    words = list(_WORDS.items())
    if any(against(baseline) in row.quantity for row in rows):
        meaning = (
            f"mean time under {baseline} over that under this policy, of the same writes; above 1 is faster"
        )
        words.insert(2, (against(baseline), meaning))
    shown = {row.quantity for row in rows}
    if UNWRITTEN in shown:
        words.append((UNWRITTEN, "blocks that were asked for and not on disk when the run ended"))
    if BLIND in shown:
        words.append((BLIND, "blocks that a policy left to the default one, because it could see no load"))
    return words


def count(value: float) -> str:
    """A number of things."""
    return f"{value:,.0f}"


def seconds(value: float, beside: float = 0) -> str:
    """A duration: two decimals under 100 s, none above, or as `beside` has them, which it is shown with."""
    return f"{value:z.2f} s" if round(max(value, beside), 2) < 100 else f"{value:z,.0f} s"


def times(factor: float) -> str:
    """A factor."""
    return f"{factor:.2f}x"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:z.1f} %"


def number(value: float | None) -> str:
    """A plain number with two decimals; a dash where there is none."""
    return NONE if value is None else f"{value:z.2f}"
