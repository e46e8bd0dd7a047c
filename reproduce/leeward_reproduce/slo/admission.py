"""Figures 4.4, 4.10 and 4.16 to 4.19: admission by each policy, and the SLOs that admitted workloads meet.

Workloads arrive one by one in random order; the client and the server of each workload are drawn. Bounds use
the first half of each trace, and the second half is replayed. The replay enforces limits for the policies of
`caches.LIMITED`. On networks, a further replay enforces the limits of DNC. All figures use the released
traces, which are of block devices. The figures of networks also use traces drawn after the thesis'
description (`caches`).
"""

import json
import random
from collections.abc import Sequence
from typing import Any

from leeward._native import draw_links, draw_workloads
from leeward_reproduce.rows import Reason, Row, change_row, measured_row
from leeward_reproduce.slo import caches, paper, workloads
from leeward_reproduce.slo.caches import (
    DNC,
    MODELS,
    PM,
    QJUMP,
    QJUMP_AS_PUBLISHED,
    RELEASED,
    SILO,
    SILO_BY_HAND,
    SNC,
    WITH_RELEASED_MODELS,
)

STAGES = ["network-in", "storage", "network-out"]
STORED = 35
"""Number of workloads of figures 4.16 to 4.19, on one server."""
STORED_SLOS = (0.15, 0.2, 0.4)
"""SLOs of figures 4.16 to 4.18, in seconds."""
MIXED = (0.15, 0.5)
"""Range of SLOs of figure 4.19, in seconds."""
SETS = 5
"""Number of sets of SLOs for each seed (figure 4.19); the thesis has 1000 sets in all."""
LOAD = 0.6
"""Maximum mean load of the device by all drawn workloads, as a share."""
NONE = "none"
POLICIES = (SNC, MODELS, RELEASED, DNC, PM, SILO, SILO_BY_HAND, QJUMP, QJUMP_AS_PUBLISHED, NONE)
BASELINES = (PM, SILO, QJUMP)
"""The systems that the thesis compares SNC with, with bounds as published."""

Outcome = dict[str, Any]
_TRACES = Reason(
    "the thesis' traces are private: those of block devices have longer bursts, and drawn ones have bursts of"
    " seconds where SLOs are milliseconds"
)
_UNSAFE = Reason(
    "models as released do not know the bursts of a block device: they admit more workloads, and some miss",
    "the replay of admitted workloads",
)
_GROWTH = Reason(
    "limits come from the first halves of traces, and delay load that grows in the second halves"
)
_MISSES = {RELEASED: _UNSAFE, SILO: _GROWTH}
"""Reasons of admitted workloads that miss their SLO, by policy."""
_OTHERS = Reason("the thesis' traces, their loads and its device are private")


def network(seed: int) -> Outcome:
    """Figures 4.4 and 4.10: networks alone, with released and with drawn traces."""
    result: Outcome = {}
    for kind in ("released", "drawn"):
        draw_list, links = caches.draws(seed), caches.links(seed)
        if kind == "released":
            pairs = [(trace, slo) for slo in caches.SLOS for trace in range(len(workloads.experiment()))]
            draw_list = draw_workloads(seed, caches.WORKLOADS, pairs)
        result[kind] = {}
        for name in POLICIES:
            models = name in WITH_RELEASED_MODELS
            traces = workloads.experiment(models) if kind == "released" else None
            policy = caches.by_hand(draw_list, links, traces) if name == SILO_BY_HAND else name
            results = caches.admit(policy, draw_list, links, traces=traces)
            result[kind][name] = {key: results[key] for key in ("admitted", "bytes", "missed")}
            if name == DNC:
                limited = caches.admit(name, draw_list, links, traces=traces, limited=True)
                result[kind][name]["held"] = limited["missed"]
    return result


def storage(seed: int) -> Outcome:
    """Figure 4.16: a server with storage."""
    draw_list = _draw_stored(seed)
    return {"count": len(draw_list), **{name: _admit(seed, draw_list, name) for name in (SNC, DNC, NONE)}}


def percentiles(seed: int) -> Outcome:
    """Figures 4.17 and 4.18: the same workloads with SLOs at 99.9 % and at 90 %."""
    draw_list = _draw_stored(seed)
    result: Outcome = {"count": len(draw_list)}
    for percentile in (99.9, 90.0):
        for name in (SNC, DNC, NONE):
            result[f"{percentile:g} {name}"] = _admit(seed, draw_list, name, percentile)
    return result


def mixtures(seed: int) -> Outcome:
    """Figure 4.19: the same workloads with random SLOs."""
    result: dict[str, list[int]] = {}
    draw_list = _draw_stored(seed)
    for number in range(SETS):
        draw = random.Random(f"{seed} {number}")
        mixed = [(trace, begin, draw.uniform(*MIXED)) for trace, begin, _ in draw_list]
        for percentile in (99.9, 90.0):
            for name in (SNC, DNC):
                results = _admit(seed, mixed, name, percentile, replayed=False)
                result.setdefault(f"{percentile:g} {name}", []).append(results["admitted"])
    return result


def _draw_stored(seed: int) -> workloads.Draws:
    """Draws workloads with storage, up to the maximum mean load of the device."""
    pairs = [(trace, slo) for slo in STORED_SLOS for trace in range(len(workloads.experiment()))]
    draw_list, loads, total = draw_workloads(seed, STORED, pairs), workloads.loads(), 0.0
    for at, (trace, _, _) in enumerate(draw_list):
        total += loads[trace]
        if total > LOAD:
            return draw_list[:at]
    return draw_list


def _admit(
    seed: int, draw_list: workloads.Draws, name: str, percentile: float | None = None, replayed: bool = True
) -> Outcome:
    policy, settings = caches.POLICIES.get(name, (name, {}))
    shape = {
        "clients": STORED,
        "slots": None,
        "servers": 1,
        "devices": 1,
        "bytes_per_second": workloads.GIGABIT,
    }
    request = {
        "shape": shape,
        "policy": policy,
        "settings": json.dumps(settings) if settings else "",
        "stages": STAGES,
        "part": "first",
        "percentile": percentile,
        "replay": "second" if replayed else None,
        "over": "enforced" if name in caches.LIMITED else "unlimited",
        "packet": caches.FRAME,
    }
    results = workloads.experiment().admit(
        draw_list, draw_links(seed, len(draw_list), STORED, 1), json.dumps(request)
    )
    result: Outcome = {
        "admitted": len(results["placed"]),
        "bytes": sum(
            workloads.experiment().payload(draw_list[index][0], "second") for index in results["placed"]
        ),
    }
    if replayed:
        result["missed"] = sum(one["met"] < one["windows"] for one in results["replayed"])
    return result


def rows_network(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figures 4.4 and 4.10."""
    scale = (
        f"{caches.WORKLOADS} workloads on {caches.CLIENTS} clients and {caches.SERVERS} servers; the"
        " thesis has 180 on 12 and 6"
    )
    traces = {"released": "traces of block devices", "drawn": "traces drawn after the thesis' description"}
    rows = []
    for kind in outcomes[0]:
        of_kind = [one[kind] for one in outcomes]
        note = f"{scale}; {traces[kind]}"
        for name in POLICIES:
            if name != NONE:
                admitted = [float(one[name]["admitted"]) for one in of_kind]
                rows.append(
                    measured_row("4.10", f"{kind}: {name}: admitted", "workloads", admitted, None, note)
                )
            share = [
                100 * one[name]["missed"] / one[name]["admitted"] for one in of_kind if one[name]["admitted"]
            ]
            theirs = None if name == NONE else 0.0
            label = f"{kind}: {name}: of these miss an SLO in a window"
            rows.append(measured_row("4.10", label, "%", share, theirs, reason=_MISSES.get(name)))
        share = [100 * one[DNC]["held"] / one[DNC]["admitted"] for one in of_kind if one[DNC]["admitted"]]
        limiter_note = (
            "limiters delay workloads without end if the second half exceeds the mean rate of the first"
        )
        rows.append(
            measured_row(
                "4.10", f"{kind}: DNC: the same, with its buckets enforced", "%", share, None, limiter_note
            )
        )
        for ours, others, label in (
            (RELEASED, BASELINES, "SNC as released over the best as published"),
            (SNC, BASELINES, "SNC over the best as published"),
            (SNC, (DNC, *BASELINES), "SNC over the best, with ours"),
        ):
            reason = _UNSAFE if ours == RELEASED and kind == "released" else _TRACES
            values = (paper.SNC_OVER_DNC, paper.SNC_BYTES)
            rows += _advantage_rows("4.10", f"{kind}: {label}", of_kind, ours, others, values, reason)
        for ours, other, value in (
            (SILO, SILO_BY_HAND, paper.SILO_OVER_HAND),
            (QJUMP, QJUMP_AS_PUBLISHED, paper.QJUMP_OVER_EQUATION),
        ):
            label = f"{kind}: {ours} over {other}"
            rows += _advantage_rows("4.10", label, of_kind, ours, (other,), (value, None), _TRACES)
    return rows


def rows_storage(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.16."""
    note = f"one server, and a load of {LOAD:.0%} at most"
    rows = []
    for name in (SNC, DNC):
        admitted = [float(one[name]["admitted"]) for one in outcomes]
        rows.append(measured_row("4.16", f"{name}: admitted", "workloads", admitted, None, note))
    for name, theirs in ((SNC, 0.0), (DNC, 0.0), (NONE, paper.STORAGE_LATE)):
        share = [
            100 * one[name]["missed"] / one[name]["admitted"] for one in outcomes if one[name]["admitted"]
        ]
        rows.append(measured_row("4.16", f"{name}: of these miss an SLO in a window", "%", share, theirs))
    values = (paper.STORAGE_SNC, None)
    rows += _advantage_rows("4.16", "SNC over DNC", outcomes, SNC, (DNC,), values, _OTHERS)
    total = [sum(one[name]["admitted"] for one in outcomes) for name in (SNC, DNC)]
    more = [100 * (total[0] / total[1] - 1)] if total[1] else []
    total_note = "of all sets together, as the thesis counts"
    label = "SNC over DNC: workloads of all sets"
    rows.append(change_row("4.16", label, more, paper.STORAGE_SNC, total_note, _OTHERS))
    share = [100 * one[DNC]["admitted"] / one["count"] for one in outcomes]
    label = "DNC: admitted of all"
    rows.append(measured_row("4.16", label, "%", share, paper.STORAGE_DNC, reason=_OTHERS))
    return rows


def rows_percentiles(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figures 4.17 and 4.18."""
    rows = []
    note = "SLOs of 150, 200 and 400 ms; traces of ten minutes, a device of the released profile"
    for percentile, stochastic in (("99.9", paper.SNC_999), ("90", paper.SNC_90)):
        for name, theirs in ((DNC, paper.DNC_ALL), (SNC, stochastic)):
            share = [100 * one[f"{percentile} {name}"]["admitted"] / one["count"] for one in outcomes]
            label = f"{percentile} %, {name}: admitted"
            rows.append(measured_row("4.17", label, "%", share, theirs, note, _OTHERS))
        for name, none in ((DNC, 0.0), (SNC, 0.0), (NONE, None)):
            of_policy = [one[f"{percentile} {name}"] for one in outcomes]
            share = [100 * one["missed"] / one["admitted"] for one in of_policy if one["admitted"]]
            label = f"{percentile} %, {name}: of these miss an SLO in a window"
            rows.append(measured_row("4.17", label, "%", share, none))
    return rows


def rows_mixtures(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 4.19."""
    rows = []
    note = (
        f"{SETS} sets of SLOs for each seed, with workloads of its own; the thesis: 1000 sets of SLOs for one"
        " set of workloads"
    )
    for percentile, theirs in (("99.9", paper.MIXED_999), ("90", paper.MIXED_90)):
        sums = [tuple(sum(one[f"{percentile} {name}"]) for name in (SNC, DNC)) for one in outcomes]
        for at, name in enumerate((SNC, DNC)):
            admitted = [pair[at] / SETS for pair in sums]
            rows.append(
                measured_row("4.19", f"{percentile} %, {name}: admitted", "workloads", admitted, None, note)
            )
        total = [sum(pair[at] for pair in sums) for at in (0, 1)]
        more = [100 * (total[0] / total[1] - 1)] if total[1] else []
        label = f"{percentile} %: SNC over DNC, of all sets"
        rows.append(change_row("4.19", label, more, theirs, reason=_OTHERS))
    return rows


def _advantage_rows(
    figure: str,
    label: str,
    outcomes: Sequence[Outcome],
    ours: str,
    others: Sequence[str],
    theirs: tuple[float | None, float | None],
    reason: Reason | None = None,
) -> list[Row]:
    """Advantage of one policy over the best of others, in admitted workloads and in their bytes."""
    rows = []
    for key, words, value in (("admitted", "workloads", theirs[0]), ("bytes", "bytes", theirs[1])):
        pairs = [(one[ours][key], max(one[name][key] for name in others)) for one in outcomes]
        percent = [100 * (own / best - 1) for own, best in pairs if best]
        note = "mean here; the thesis has medians"
        rows.append(change_row(figure, f"{label}: {words}", percent, value, note, reason))
    return rows
