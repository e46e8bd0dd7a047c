"""The comparison of policies as rows of a table: a quantity, and its value under each policy.

All tables use the same words: on the terminal and on the page, for one seed and for many. `glossary` explains
the words.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from leeward._figures import BASELINE, flatten_comparison, flatten_summary
from leeward._native import Run
from leeward._quantities import NONE, percent_text, time_text
from leeward.placement import policies as policies_of_all_kinds

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

READ_TIME = "read time, mean"
DEGRADED = "degraded reads"

TASKS = "tasks"
"""Prefix of the figures of a cell."""
READS = "reads"
"""Prefix of the figures of reads."""
REPAIRS = "repairs"
"""Prefix of the figures of repairs."""

APPS = "apps"
"""Prefix of the figures of apps."""

COFLOWS = "coflows"
"""Prefix of the figures of coflows."""

_PREFIXES = {"cell": TASKS, "apps": APPS, "coflows": COFLOWS}
"""Prefix of the figures of each kind of run."""

TROUBLES = ((UNWRITTEN, "blocks_unfinished"), (RETRIES, "retries"), (BLIND, "placed_blindly"))
"""Words for failures, shown only if there were any, and their names in results."""
_OTHER_WRITES = (("  smaller blocks", "partial_blocks"), ("  all blocks", "blocks"), ("  files", "files"))

_WORDS = {
    "write time": "from the request for a block to its last copy on disk; of a file, from its first block to"
    " its last",
    "full block": "a block of the block size of its file; a smaller block is the rest at the end of a file",
    "Cv": "standard deviation over mean: of the loads of all links of a tier in an interval (the median over"
    " all intervals), or of what racks store; 0 is even",
    "hot": "of a link of a rack or pod: a mean load of more than 75 % (or the scenario's threshold) in an"
    " interval",
}


HOT_RACKS = "hot racks, of racks and intervals"
_CELL_WORDS = {
    "hot": "a rack whose uplink or downlink has a mean load of more than 75 % (or the scenario's threshold)"
    " in an interval",
    "98th percentile": "over racks in an interval, averaged over intervals; utilization: load of all uplinks"
    " over their capacity",
    "network-intensive": "the tenth of all tasks with the most bandwidth per processor; on hot racks:"
    " placed on, or moved to, a rack with a link that was hot in the interval before",
    "stretch": "time of a tolerant task from its first placement on, divided by the time of its work alone",
}

APP_TIME = "time from arrival to last transfer, mean"
_APP_WORDS = {
    "run time": "from the placement of an app to its last transfer; all transfers begin at the placement",
    "forecast": "run time by the model when the app was placed; of apps that ran undisturbed",
    "across the network": "bytes between tasks on different hosts, of all bytes that tasks sent",
    "Cv": _WORDS["Cv"],
}

COFLOW_TIME = "coflow completion time, mean"
_COFLOW_CLASSES = {"SN": "short, narrow", "LN": "long, narrow", "SW": "short, wide", "LW": "long, wide"}
_COFLOW_WORDS = {
    "coflow completion time": "from the arrival of a coflow to the end of its last flow",
    "slowdown": "completion time over the time that the coflow takes alone: the largest quotient, over links,"
    " of its bytes and the capacity",
    "short": "the longest flow has less than 5 MiB; narrow: at most 50 flows (Varys section 7)",
    "hot": _WORDS["hot"],
}

Show = Callable[..., str]
"""Formats a value with its unit. Formats of times and shares take another value of the cell, `beside`."""


@dataclass(frozen=True)
class Row:
    """One line of the comparison."""

    quantity: str
    """Quantity, in words."""
    cells: tuple[str, ...]
    """Its value under each policy, with its unit."""


@dataclass(frozen=True)
class Quantity:
    """Quantity of a line of the comparison, under one seed and over many."""

    words: str
    figure: str
    """Its name in `leeward._figures`."""
    show: Show
    against: Literal["ratio", "difference"] | None = None
    """Relation to the baseline's value over several seeds, which has its own line."""
    only_if_any: bool = False
    """Leaves the line out if it is zero under every policy."""


def quantities(policies: Sequence[str], figures: Container[str] = ()) -> list[Quantity]:
    """Lines of the comparison, in order.

    Args:
        policies: Compared policies; the others are compared with the first.
        figures: Names of all figures, which show the kind of the runs, and whether there are reads.
    """
    if f"{APPS}.count" in figures:
        return _app_quantities(policies, figures)
    if f"{COFLOWS}.count" in figures and _serve_coflows(policies):
        return _coflow_quantities(policies, figures)
    cell = f"{TASKS}.count" in figures
    if cell:
        return [
            Quantity("tasks that arrived", f"{TASKS}.count", count),
            Quantity("wait for a host, mean", f"{TASKS}.wait_s.mean", time_text),
            Quantity("never placed", f"{TASKS}.unplaced", count, only_if_any=True),
            Quantity(HOT_RACKS, f"{TASKS}.hot_tor_share", percent_text, "difference"),
            Quantity("98th percentile of uplinks", f"{TASKS}.tor_p98", percent_text, "difference"),
            Quantity("utilization of all uplinks", f"{TASKS}.utilization", percent_text, "difference"),
            Quantity("tasks moved, a day", f"{TASKS}.moves_per_day", count, "difference"),
            Quantity("network-intensive tasks scheduled", f"{TASKS}.scheduled_intensive", count),
            Quantity("  on hot racks", f"{TASKS}.intensive_on_hot", count, "difference"),
            Quantity("stretch of tolerant tasks, mean", f"{TASKS}.stretch.mean", times, "ratio"),
            Quantity("  95th percentile", f"{TASKS}.stretch.p95", times, "ratio"),
            Quantity("  network-intensive, mean", f"{TASKS}.intensive_stretch.mean", times, "ratio"),
            Quantity(UPLINKS, "rack_uplink_cv", number, "difference"),
            Quantity(DOWNLINKS, "rack_downlink_cv", number, "difference"),
        ]
    result = [
        Quantity(BLOCKS, "blocks", count),
        Quantity(BLOCK_TIME, "block_write_s.mean", time_text, "ratio"),
        Quantity(FULL, "full_block_write_s.count", count),
        Quantity(FULL_TIME, "full_block_write_s.mean", time_text, "ratio"),
        Quantity("  median", "full_block_write_s.p50", time_text, "ratio"),
        Quantity("  95th percentile", "full_block_write_s.p95", time_text, "ratio"),
        Quantity("  99th percentile", "full_block_write_s.p99", time_text, "ratio"),
        Quantity(SMALLER, "partial_block_write_s.count", count),
        Quantity(SMALLER_TIME, "partial_block_write_s.mean", time_text, "ratio"),
        Quantity(FILE_TIME, "file_write_s.mean", time_text, "ratio"),
        Quantity(JOB_TIME, "job_s.mean", time_text, "ratio", only_if_any=True),
    ]
    if len(policies) > 1:
        baseline = policies[0]
        full_blocks = f"time of the same full blocks, {against(baseline)}"
        for words, writes in ((full_blocks, "full_blocks"), *_OTHER_WRITES):
            result.append(Quantity(words, f"{BASELINE}.{writes}.factor", times))
        for words, share in shares(baseline):
            result.append(Quantity(words, f"{BASELINE}.full_blocks.{share}", percent_text))
    if f"{READS}.finished" in figures:
        result += _reads(policies, figures)
    if f"{REPAIRS}.finished" in figures:
        result += [
            Quantity("blocks repaired after failures", f"{REPAIRS}.finished", count),
            Quantity("time to repair, mean", f"{REPAIRS}.time_s.mean", time_text, "ratio"),
            Quantity("  longest", f"{REPAIRS}.time_s.max", time_text, "ratio"),
            Quantity("blocks not repaired", f"{REPAIRS}.unrepaired", count, only_if_any=True),
        ]
    return [
        *result,
        Quantity(UPLINKS, "rack_uplink_cv", number, "difference"),
        Quantity(DOWNLINKS, "rack_downlink_cv", number, "difference"),
        Quantity(HOT, "hot_share", percent_text, "difference"),
        Quantity(STORAGE, "rack_storage_cv", number, "difference"),
        *_background_coflows(figures),
        *(Quantity(words, name, count, only_if_any=True) for words, name in TROUBLES),
    ]


def _reads(policies: Sequence[str], figures: Container[str]) -> list[Quantity]:
    """Lines about reads of written data."""
    result = [
        Quantity("reads finished", f"{READS}.finished", count),
        Quantity(READ_TIME, f"{READS}.time_s.mean", time_text, "ratio"),
        Quantity("  median", f"{READS}.time_s.p50", time_text, "ratio"),
        Quantity("  95th percentile", f"{READS}.time_s.p95", time_text, "ratio"),
        Quantity("  99th percentile", f"{READS}.time_s.p99", time_text, "ratio"),
        Quantity(DEGRADED, f"{READS}.degraded_share", percent_text, "difference", only_if_any=True),
        Quantity("reads not finished", f"{READS}.unfinished", count, only_if_any=True),
        Quantity("reads that no host could answer", f"{READS}.lost", count, only_if_any=True),
        Quantity("reads before anything was written", f"{READS}.without_data", count, only_if_any=True),
    ]
    if len(policies) > 1 and f"{BASELINE}.{READS}.factor" in figures:
        words = f"time of the same reads, {against(policies[0])}"
        result.insert(5, Quantity(words, f"{BASELINE}.{READS}.factor", times))
    return result


def _app_quantities(policies: Sequence[str], figures: Container[str]) -> list[Quantity]:
    """Lines of the comparison of apps."""
    result = [
        Quantity("apps that arrived", f"{APPS}.count", count),
        Quantity("ended", f"{APPS}.finished", count),
        Quantity("never placed", f"{APPS}.unplaced", count, only_if_any=True),
        Quantity("had to wait for hosts", f"{APPS}.waited", count, only_if_any=True),
        Quantity("wait for hosts, mean", f"{APPS}.wait_s.mean", time_text, only_if_any=True),
        Quantity(APP_TIME, f"{APPS}.completion_s.mean", time_text, "ratio"),
        Quantity("run time, mean", f"{APPS}.run_s.mean", time_text, "ratio"),
        Quantity("  median", f"{APPS}.run_s.p50", time_text, "ratio"),
        Quantity("  95th percentile", f"{APPS}.run_s.p95", time_text, "ratio"),
    ]
    if len(policies) > 1:
        baseline = policies[0]
        result.append(
            Quantity(f"time of the same apps, {against(baseline)}", f"{BASELINE}.{APPS}.factor", times)
        )
        for words, share in shares(baseline, "apps"):
            result.append(Quantity(words, f"{BASELINE}.{APPS}.{share}", percent_text))
    return [
        *result,
        Quantity("hosts of an app, mean", f"{APPS}.hosts", number),
        Quantity("bytes across the network", f"{APPS}.network_share", percent_text, "difference"),
        Quantity("error of the forecast, mean", f"{APPS}.forecast_error", percent_text),
        Quantity("migrations", f"{APPS}.migrations", count, only_if_any=True),
        Quantity("  tasks moved", f"{APPS}.tasks_moved", count, only_if_any=True),
        Quantity("restarted after a failure", f"{APPS}.restarts", count, only_if_any=True),
        *_background_coflows(figures),
        Quantity(UPLINKS, "rack_uplink_cv", number, "difference", only_if_any=True),
        Quantity(DOWNLINKS, "rack_downlink_cv", number, "difference", only_if_any=True),
    ]


def _serve_coflows(names: Sequence[str]) -> bool:
    """True for policies under which coflows share links."""
    known = {policy["name"] for policy in policies_of_all_kinds() if policy["kind"] == "coflows"}
    return all(name.partition(":")[0] in known for name in names)


def _coflow_quantities(policies: Sequence[str], figures: Container[str]) -> list[Quantity]:
    """Lines of the comparison of coflows."""
    result = [
        Quantity("coflows that arrived", f"{COFLOWS}.count", count),
        Quantity("ended", f"{COFLOWS}.finished", count),
        Quantity("not ended", f"{COFLOWS}.unfinished", count, only_if_any=True),
        Quantity("coflows within racks, of no time", f"{COFLOWS}.local", count, only_if_any=True),
        Quantity(COFLOW_TIME, f"{COFLOWS}.completion_s.mean", time_text, "ratio"),
        Quantity("  median", f"{COFLOWS}.completion_s.p50", time_text, "ratio"),
        Quantity("  95th percentile", f"{COFLOWS}.completion_s.p95", time_text, "ratio"),
        Quantity("  99th percentile", f"{COFLOWS}.completion_s.p99", time_text, "ratio"),
        *(
            Quantity(f"  {words}, mean", f"{COFLOWS}.classes.{name}.completion_s.mean", time_text, "ratio")
            for name, words in _COFLOW_CLASSES.items()
        ),
        Quantity("slowdown, mean", f"{COFLOWS}.slowdown.mean", times, "ratio"),
        Quantity("  95th percentile", f"{COFLOWS}.slowdown.p95", times, "ratio"),
    ]
    if len(policies) > 1:
        baseline = policies[0]
        words = f"time of the same coflows, {against(baseline)}"
        result.append(Quantity(words, f"{BASELINE}.{COFLOWS}.factor", times))
        for name, words in _COFLOW_CLASSES.items():
            figure = f"{BASELINE}.coflow_classes.{name}.factor"
            result += [Quantity(f"  {words}", figure, times)] if figure in figures else []
        for words, share in shares(baseline, COFLOWS):
            result.append(Quantity(words, f"{BASELINE}.{COFLOWS}.{share}", percent_text))
    return [
        *result,
        Quantity(UPLINKS, "rack_uplink_cv", number, "difference", only_if_any=True),
        Quantity(DOWNLINKS, "rack_downlink_cv", number, "difference", only_if_any=True),
        Quantity(HOT, "hot_share", percent_text, "difference", only_if_any=True),
    ]


def _background_coflows(figures: Container[str]) -> list[Quantity]:
    """Lines about the coflows of the background."""
    if f"{COFLOWS}.count" not in figures:
        return []
    return [
        Quantity("background coflows that arrived", f"{COFLOWS}.count", count),
        Quantity("  ended", f"{COFLOWS}.finished", count),
        Quantity("  completion time, mean", f"{COFLOWS}.completion_s.mean", time_text, "ratio"),
        Quantity("  95th percentile", f"{COFLOWS}.completion_s.p95", time_text, "ratio"),
    ]


def comparison_rows(runs: Sequence[Run]) -> list[Row]:
    """Rows of the comparison of runs on the same arrivals; the others are compared with the first."""
    others = [flatten_comparison(run.compare(runs[0])) if at else {} for at, run in enumerate(runs)]
    figures_of_runs = [
        flatten_summary(run.summary()) | other for run, other in zip(runs, others, strict=True)
    ]
    for run, figures in zip(runs, figures_of_runs, strict=True):
        # A run without arrivals has no figures that tell its kind.
        if run.kind in _PREFIXES:
            figures.setdefault(f"{_PREFIXES[run.kind]}.count", 0)
    rows = []
    names = set().union(*figures_of_runs)
    for quantity in quantities([run.policy for run in runs], names):
        values = [figures.get(quantity.figure) for figures in figures_of_runs]
        if any(values) or not quantity.only_if_any:
            rows.append(Row(quantity.words, tuple(cells(quantity, values))))
    return rows


def cells(quantity: Quantity, values: Sequence[float | None]) -> Iterator[str]:
    """Cells of a quantity: empty for a policy compared with itself."""
    for at, value in enumerate(values):
        itself = not at and quantity.figure.startswith(BASELINE)
        yield "" if itself else NONE if value is None else quantity.show(value)


def against(baseline: str) -> str:
    """Name of a ratio to the baseline: above 1 is faster than the baseline."""
    return f"{baseline} / this"


def shares(baseline: str, things: str = "full blocks") -> list[tuple[str, str]]:
    """Words for the shares of faster and slower things, and their names in results."""
    return [
        (f"{things} faster than {baseline}", "faster"),
        ("  the same (within 1 %)", "same"),
        ("  slower", "slower"),
        ("  in half the time or less", "twice_as_fast"),
    ]


def glossary(rows: Sequence[Row], baseline: str) -> list[tuple[str, str]]:
    """Words of some rows, and their meanings."""
    if any(row.quantity == HOT_RACKS for row in rows):
        return list(_CELL_WORDS.items())
    if any(row.quantity == APP_TIME for row in rows):
        return list(_APP_WORDS.items())
    if any(row.quantity == COFLOW_TIME for row in rows):
        return list(_COFLOW_WORDS.items())
    words = list(_WORDS.items())
    if any(against(baseline) in row.quantity for row in rows):
        meaning = (
            f"mean time under {baseline} over that under this policy, of the same writes; above 1 is faster"
        )
        words.insert(2, (against(baseline), meaning))
    names = {row.quantity for row in rows}
    if UNWRITTEN in names:
        words.append((UNWRITTEN, "requested blocks that were not on disk when the run ended"))
    if READ_TIME in names:
        words.append(("read time", "from the request for a part of a block on disk to its last byte"))
    if DEGRADED in names:
        meaning = "reads whose chunk did not arrive in time, so that other chunks of its stripe were read"
        words.append((DEGRADED, meaning))
    if BLIND in names:
        words.append((BLIND, "blocks that a policy left to the default policy, because it saw no load"))
    return words


def count(value: float) -> str:
    """A count, as text."""
    return f"{value:,.0f}"


def times(factor: float) -> str:
    """A factor, as text."""
    return f"{factor:.2f}x"


def number(value: float | None) -> str:
    """A plain number with two decimals; a dash where there is none."""
    return NONE if value is None else f"{value:z.2f}"
