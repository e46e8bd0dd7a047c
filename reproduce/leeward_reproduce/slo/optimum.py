"""Figures 4.11, 4.12 and 4.15: admission against the optimum, with small requests, and on larger clusters.

All figures use synthetic traces (`caches`), because the thesis' own are private.
"""

from collections.abc import Sequence
from typing import Any

from leeward_reproduce.rows import Reason, Row, measured_row, row_key
from leeward_reproduce.slo import caches, paper

SMALL, LARGE = 11, 21
"""Numbers of workloads with requests of one packet, and with requests of objects (section 4.4.3)."""
SMALL_SLO, LARGE_SLO = 0.004, 0.05
"""Their SLOs, in seconds."""
LONGER = "4.12-long"
"""Figure 4.12 with longer traces."""
LENGTHS = (1800.0, 3600.0)
"""Lengths of longer traces in seconds, for figure 4.12: that of the thesis' traces, and twice that."""
SCALES = (1, 2, 3)
"""Factors of larger clusters (figure 4.15)."""
RIVALS = (caches.PM, caches.SILO, caches.QJUMP)
"""The systems with which the thesis compares SNC."""
OPT = "OPT"

Outcome = dict[str, Any]
_SHORT = "bounds come from five minutes of traces, which have few bursts"
_PRIVATE = "the thesis' traces are private, and so are the loads and sizes of its large workloads"
_FEW_BURSTS = Reason(
    "a replay of five minutes meets few of the bursts that a bound must allow for, and a bound on a"
    " percentile is not tight even for its own model"
)


def optimum(seed: int) -> Outcome:
    """Figure 4.11: admission by each system, and the optimum.

    The optimum is the longest prefix of the workloads that meets all SLOs in a replay without admission.
    """
    workloads, links = caches.draws(seed), caches.links(seed)
    result: Outcome = {
        name: caches.admit(name, workloads, links, replayed=False)
        for name in (caches.SNC, caches.RELEASED, caches.DNC, *RIVALS)
    }

    def replay_prefix(count: int) -> Outcome | None:
        results = caches.admit("none", workloads[:count], links[:count])
        return None if results["missed"] else results

    least, most = 0, len(workloads)
    best: Outcome = {"admitted": 0, "bytes": 0.0}
    # An additional workload seldom helps the others to meet their SLOs, so a binary search finds the limit.
    while least < most:
        middle = (least + most + 1) // 2
        results = replay_prefix(middle)
        if results is None:
            most = middle - 1
        else:
            least, best = middle, results
    result[OPT] = best
    return {name: {key: outcome[key] for key in ("admitted", "bytes")} for name, outcome in result.items()}


def small(seed: int, seconds: float | None = None) -> Outcome:
    """Figure 4.12: workloads of one packet with tight SLOs beside large ones.

    Traces last `seconds`; by default, as long as in the other figures.
    """
    tight = [(trace % caches.SMALL, (trace + 1) / (SMALL + 1), SMALL_SLO) for trace in range(SMALL)]
    workloads = tight + caches.draws(seed, LARGE, (LARGE_SLO,))
    traces = caches.experiment(seconds=seconds)
    links = [(client, 0) for client, _ in caches.links(seed, len(workloads))]
    result: Outcome = {}
    for name in (caches.SNC, caches.DNC, *RIVALS):
        results = caches.admit(name, workloads, links, traces=traces)
        result[name] = {key: results[key] for key in ("admitted", "bytes", "missed")}
        result[name]["small"] = sum(index < SMALL for index in results["placed"])
    return result


def small_longer(seed: int) -> Outcome:
    """Figure 4.12 with longer traces of the same workloads, by length in seconds."""
    return {f"{seconds:g}": small(seed, seconds) for seconds in LENGTHS}


def scale(seed: int) -> Outcome:
    """Figure 4.15: admission on larger clusters, with workloads in proportion."""
    result: Outcome = {}
    for factor in SCALES:
        count = factor * caches.WORKLOADS
        workloads, links = caches.draws(seed, count), caches.links(seed, count, factor)
        results = caches.admit(caches.SNC, workloads, links, times=factor, replayed=False)
        result[str(factor)] = results["admitted"]
    return result


def rows_optimum(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.11."""
    rows = [
        measured_row(
            "4.11", f"{name}: admitted", "workloads", [float(one[name]["admitted"]) for one in outcomes]
        )
        for name in outcomes[0]
    ]
    paper_shares = {caches.SNC: paper.OPT_SNC, caches.RELEASED: paper.OPT_SNC} | dict.fromkeys(
        RIVALS, paper.OPT_OTHERS
    )
    note = "OPT by replay in order, found by halving; the thesis has medians"
    for name in outcomes[0]:
        if name != OPT:
            share = [
                100 * one[name]["admitted"] / one[OPT]["admitted"] for one in outcomes if one[OPT]["admitted"]
            ]
            rows.append(
                measured_row(
                    "4.11", f"{name} of OPT: workloads", "%", share, paper_shares.get(name), note, _FEW_BURSTS
                )
            )
    return rows


def rows_small(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.12."""
    return _rows_small("4.12", outcomes, "", _SHORT, True, _prefix(LENGTHS[0]))


def rows_longer(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.12 with longer traces; those as long as the thesis' are compared with it."""
    rows = []
    for seconds in LENGTHS:
        of_length = [one[f"{seconds:g}"] for one in outcomes]
        rows += _rows_small(LONGER, of_length, _prefix(seconds), _PRIVATE, seconds == LENGTHS[0])
    return rows


def _prefix(seconds: float) -> str:
    """Beginning of the labels of longer traces."""
    return f"traces of {seconds / 60:g} min: "


def _rows_small(
    figure: str, outcomes: Sequence[Outcome], prefix: str, why: str, is_compared: bool, longer: str = ""
) -> list[Row]:
    """Rows of a length of traces.

    Args:
        figure: Figure of the rows.
        outcomes: Results of all seeds.
        prefix: Beginning of the label of each row.
        why: Reason of a difference from the thesis.
        is_compared: True for rows that are compared with the thesis.
        longer: Beginning of the labels of the rows with longer traces, which test the reason; empty without.
    """

    def reason(label: str) -> Reason:
        return Reason(why, variant=row_key(LONGER, longer + label) if longer else "")

    rows = []
    reported, none = (paper.SMALL_BYTES, 0.0) if is_compared else (None, None)
    slos = f"{SMALL_SLO * 1000:.0f} ms, {LARGE} at {LARGE_SLO * 1000:.0f} ms"
    note = f"{SMALL} of one packet at {slos}, one server"
    for name in outcomes[0]:
        for key, label in (("admitted", "admitted"), ("small", "of these of one packet")):
            values = [float(one[name][key]) for one in outcomes]
            rows.append(measured_row(figure, f"{prefix}{name}: {label}", "workloads", values, None, note))
    for others, label in ((RIVALS, "the best as published"), ((*RIVALS, caches.DNC), "the best, with ours")):
        pairs = [(one[caches.SNC]["bytes"], max(one[name]["bytes"] for name in others)) for one in outcomes]
        ratio = [ours / theirs for ours, theirs in pairs if theirs]
        words = f"{prefix}SNC over {label}: bytes"
        note = "the thesis: over 3 times"
        rows.append(measured_row(figure, words, "x", ratio, reported, note, reason(words)))
    missed = [float(one[caches.SNC]["missed"]) for one in outcomes]
    label = f"{prefix}SNC: admitted that miss an SLO in a window"
    rows.append(measured_row(figure, label, "workloads", missed, none, reason=reason(label)))
    return rows


def rows_scale(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.15."""
    rows = []
    clients, servers, count = caches.CLIENTS, caches.SERVERS, caches.WORKLOADS
    note = f"of {count} workloads on {clients} clients and {servers} servers each time; the thesis: linear"
    for factor in SCALES:
        values = [float(one[str(factor)]) for one in outcomes]
        rows.append(measured_row("4.15", f"cluster of {factor}x: admitted", "workloads", values, None, note))
    for factor in SCALES[1:]:
        pairs = [(one[str(factor)], one[str(SCALES[0])]) for one in outcomes]
        ratio = [large / small for large, small in pairs if small]
        rows.append(measured_row("4.15", f"{factor}x over {SCALES[0]}x", "x", ratio, factor / SCALES[0]))
    return rows
