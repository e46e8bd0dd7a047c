"""Rows of other conditions: arrival rates (figure 11), memory (section 7.6), and reports (section 8)."""

from collections.abc import Callable

from leeward_reproduce.real.rows import row, values
from leeward_reproduce.rows import Reason, Row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.real import quantities
from leeward_reproduce.sinbad.real.cases import (
    BASE,
    DEFAULT,
    HALF,
    LATE,
    LOST,
    LOST_PAPER,
    MEMORY,
    SINBAD,
    TWICE,
)
from leeward_reproduce.sinbad.real.figures import FILES, ONE, POLICIES, placed_by_hdfs
from leeward_reproduce.sinbad.real.pairs import Results, Runs
from leeward_reproduce.sinbad.real.quantities import mean, ratio, tail

LOAD_CASES = (BASE, HALF, TWICE)
MEMORY_CASES = (BASE, MEMORY)
REPORT_CASES = (BASE, LATE, LOST, LOST_PAPER)
_EVICTED = "the oldest files of all hosts, while one is full; caches of the simulator have no limit"


def load(results: Results) -> list[Row]:
    """Figure 11."""
    rows = []
    for case in (HALF, BASE, TWICE):
        note = "the paper: gains shrink at twice the rate" if case is TWICE else ""
        text = f"files, mean, {case.load:g}x arrival rate: default / sinbad"
        rows.append(row("11", text, "x", values(ratio(mean), results[case]), note=note))
    for policy in POLICIES:
        text = f"files, mean, 2x arrival rate / 1x: {policy}"
        of_seeds = values(_slowdown(policy), results[BASE], results[TWICE])
        why = Reason("the paper's are jobs, end to end")
        rows.append(row("11", text, "x", of_seeds, paper.TWICE_THE_LOAD, reason=why))
    return rows


def memory(results: Results) -> list[Row]:
    """Section 7.6."""
    pairs, reported = results[MEMORY], paper.MACHINES_MEMORY
    why = Reason(
        "disks do not limit blocks in figure 6 either",
        "times in memory over those on disks, in the rows below",
    )
    rows = [
        row(
            "7.6",
            "blocks, mean: default / sinbad",
            "x",
            values(ratio(mean, 1), pairs),
            reported["blocks"],
            ONE,
            why,
        ),
        row(
            "7.6",
            "files, mean: default / sinbad",
            "x",
            values(ratio(mean), pairs),
            reported["writes"],
            FILES,
            why,
        ),
        row("7.6", "files, 90th percentile: default / sinbad", "x", values(ratio(tail), pairs)),
    ]
    for policy in POLICIES:
        text = f"time of a file, mean, in memory / on disks: {policy}"
        rows.append(row("7.6", text, "x", values(_slowdown(policy), results[BASE], pairs)))
    for policy in POLICIES:
        text = f"files that full caches evict in a run: {policy}"
        of_seeds = values(_evicted(policy), pairs)
        rows.append(row("7.6", text, "", of_seeds, note=_EVICTED))
    return rows


def reports(results: Results) -> list[Row]:
    """Reports of agents that are late or lost, against HDFS's policy, which reads none."""
    rows = []
    texts = {
        BASE: "as they should be",
        LATE: f"{LATE.delay_s:g} s late",
        LOST: f"a share of {LOST.loss:g} lost",
        LOST_PAPER: f"a share of {LOST_PAPER.loss:g} lost, the paper's estimator",
    }
    for case, words in texts.items():
        text = f"files, mean, reports {words}: default / sinbad"
        rows.append(row("reports", text, "x", values(_against_base, results[BASE], results[case])))
    for case, words in texts.items():
        text = f"median Cv, links into racks, reports {words}: sinbad"
        of_seeds = values(quantities.median_cv(SINBAD, "downlink"), results[case])
        rows.append(row("reports", text, "", of_seeds))
    rows += [placed_by_hdfs("reports", case, results, f", reports {words}") for case, words in texts.items()]
    return rows


def _against_base(base: Runs, other: Runs) -> float:
    return ratio(mean)({DEFAULT: base[DEFAULT], SINBAD: other[SINBAD]})


def _slowdown(policy: str) -> Callable[[Runs, Runs], float]:
    """Mean time of a file in a second case over that in a first one."""

    def of_runs(first: Runs, second: Runs) -> float:
        before, after = (
            mean([one for one in runs[policy].seconds if one is not None]) for runs in (first, second)
        )
        return after / before

    return of_runs


def _evicted(policy: str) -> Callable[[Runs], float]:
    return lambda runs: float(runs[policy].evicted)
