"""Figures 5.4 and 5.7 to 5.12: number of servers under each method of choosing rate limits.

Every method gets the same workloads in the same order. Only traces that fit on a server alone are drawn. To
compare methods, a trace must fit under every method; then nothing is refused, and numbers of servers can be
compared.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from leeward._native import draw_visits, draw_workloads
from leeward_reproduce.rows import Paper, Reason, Row, measured_row
from leeward_reproduce.slo import paper, pictures, workloads

MANY = 300
"""Number of workloads with each SLO in figure 5.8; the thesis draws every available workload once."""
WHOLE = 1000
"""Number of workloads of figures 5.1, 5.9 and 5.10, as in the thesis."""
STAY = 0.3
"""Mean stay of a workload, as a share of the period of all arrivals; the thesis does not state it."""
DEVICES = (1, 2, 3, 4)
"""Numbers of SSDs of a server (figure 5.11)."""
BESIDE = 100
"""Number of workloads of figure 5.11. If links are the bottleneck, many servers are tried for a workload."""
ORDERS = {
    "first": "first fit",
    "fewest-workloads": "fewest workloads first",
    "least-load": "least mean load first",
    "least-bursts": "smallest bursts first",
    "same-slos": "fewest other SLOs first",
    "random": "random order",
}
"""Orders in which servers with workloads are tried (section 5.2.3, footnote 2), with their names in rows."""
EFFECTIVE = "effective bandwidth"
"""The best rival of the thesis (section 5.3.1)."""
TIMED = (50, 200, 1000)
"""Numbers of workloads of the measurement of packing time (figure 5.7)."""

Outcome = dict[str, Any]
_SPLIT = Reason(
    "the thesis does not give the split of an SLO over stages, and its value is between those of two splits",
    "the best split, and thirds",
)
_OTHER_TRACES = Reason(
    "traces of ten minutes from block devices have longer bursts than their own mean tells"
)
_RIVALS = [way for way in workloads.WAYS if way != workloads.COMPACTOR]
_FEASIBLE = (
    "traces of ten minutes, drawn with replacement from those that fit alone under every way;"
    " the thesis' are of half an hour"
)


def same_and_random(seed: int) -> Outcome:
    """Figure 5.4: servers under each method, with one SLO and with any of five."""
    sets = [((slo,), count) for slo, count in zip(workloads.SLOS, workloads.COUNTS, strict=True)]
    return {
        name: _servers(workloads.draws(seed, count, slos, ways=tuple(workloads.WAYS)))
        for slos, count in [*sets, (workloads.SLOS, workloads.RANDOM)]
        for name in [_name(slos)]
    }


def heuristics(seed: int) -> Outcome:
    """Section 5.2.3: servers by the order in which servers are tried."""
    draw_list = workloads.draws(seed, workloads.RANDOM, workloads.SLOS)
    way = workloads.WAYS[workloads.COMPACTOR]
    return {name: workloads.pack(draw_list, way, order=name)["servers"] for name in ORDERS}


def averages(seed: int) -> Outcome:
    """Section 5.3.1: servers at multiples of the mean rate, and under the compactor and effective bandwidth.

    Under a multiple, only workloads that fit on a server alone under it and under the compared methods are
    drawn, so each multiple has draws of its own.
    """
    result: Outcome = {}
    compared = (workloads.COMPACTOR, EFFECTIVE)
    all_pairs = len(workloads.feasible(workloads.SLOS, compared))
    for name, way in workloads.AVERAGES.items():
        pairs = workloads.feasible(workloads.SLOS, (*compared, name))
        result[name] = {"fit": len(pairs) / all_pairs if all_pairs else 0.0, "servers": None}
        if pairs:
            draw_list = draw_workloads(seed, workloads.RANDOM, pairs)
            ways = {other: workloads.WAYS[other] for other in compared} | {name: way}
            servers = {other: workloads.pack(draw_list, of)["servers"] for other, of in ways.items()}
            result[name]["servers"] = servers
    return result


def same(seed: int) -> Outcome:
    """Figure 5.8: many workloads with one SLO."""
    return {
        _name(slos): _servers(workloads.draws(seed, MANY, slos, ways=tuple(workloads.WAYS)), fast=True)
        for slos in [(slo,) for slo in workloads.SLOS]
    }


def random(seed: int) -> Outcome:
    """Figures 5.1 and 5.9: many workloads with any of five SLOs."""
    draw_list = workloads.draws(seed, WHOLE, workloads.SLOS, ways=tuple(workloads.WAYS))
    return {_name(workloads.SLOS): _servers(draw_list, fast=True)}


def visits(seed: int) -> Outcome:
    """Figure 5.10: greatest number of servers in use while workloads come and go."""
    draw_list = workloads.draws(seed, WHOLE, workloads.SLOS, ways=tuple(workloads.WAYS))
    steps = draw_visits(seed, WHOLE, STAY)
    return {
        name: workloads.pack(draw_list, way, steps, fast=True)["most"] for name, way in workloads.WAYS.items()
    }


def devices(seed: int) -> Outcome:
    """Figure 5.11: number of servers, by the number of SSDs of a server."""
    draw_list = workloads.draws(seed, BESIDE, workloads.SLOS)
    way = workloads.WAYS[workloads.COMPACTOR]
    return {
        str(count): workloads.pack(draw_list, way, devices=count, fast=True)["servers"] for count in DEVICES
    }


def fast(seed: int) -> Outcome:
    """Figure 5.7: first fit against fast first fit, by servers and by processor time in seconds."""
    draw_list = workloads.draws(seed, max(TIMED), workloads.SLOS)
    way = workloads.WAYS[workloads.COMPACTOR]
    result: Outcome = {}
    for count in TIMED:
        for name, is_fast in (("first fit", False), ("fast first fit", True)):
            packing, seconds = _time(partial(workloads.pack, draw_list[:count], way, fast=is_fast))
            result[f"{count} {name}"] = {"servers": packing["servers"], "seconds": seconds}
    return result


def several(seed: int) -> Outcome:
    """Figure 5.12: one limiter per stage against several."""
    draw_list = workloads.draws(seed, workloads.RANDOM, workloads.SLOS)
    ways: dict[str, Callable[[], Outcome]] = {
        "one": lambda: workloads.pack(draw_list, workloads.WAYS[workloads.COMPACTOR]),
        "several": lambda: workloads.pack(draw_list, workloads.SEVERAL),
        "published": lambda: workloads.first_fit(draw_list, workloads.MEISTER),
    }
    result: Outcome = {}
    for name, pack in ways.items():
        packing, seconds = _time(pack)
        result[name] = {
            "servers": packing["servers"],
            "seconds": seconds,
            "refused": len(packing["refused"]),
        }
    return result


def _time(pack: Callable[[], Outcome]) -> tuple[Outcome, float]:
    began = time.thread_time()
    packing = pack()
    return packing, time.thread_time() - began


def _servers(drawn: workloads.Draws, **settings: Any) -> Outcome:
    result = {name: workloads.pack(drawn, way, **settings) for name, way in workloads.WAYS.items()}
    return {
        name: {"servers": packing["servers"], "refused": len(packing["refused"])}
        for name, packing in result.items()
    }


def _name(slos: tuple[float, ...]) -> str:
    return f"SLO {slos[0] * 1000:.0f} ms" if len(slos) == 1 else "random SLOs"


def rows_same_and_random(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.4."""
    rows = _ratios("5.4", outcomes, _FEASIBLE)
    random = _name(workloads.SLOS)
    same = [name for name in outcomes[0] if name != random]
    for names, words, way, value in (
        ([random], "random SLOs", "knee", paper.RANDOM_BEST),
        (same, "mean of same SLOs", "effective bandwidth", paper.SAME_BEST),
        (same, "mean of same SLOs", "effective bandwidth, thirds", paper.SAME_BEST),
    ):
        mean = [sum(_ratio(one[name], way) for name in names) / len(names) for one in outcomes]
        note = f"the best rival of the thesis there; {_best(outcomes, names)} here"
        rows.append(measured_row("5.4", f"{words}: {way}", "x", mean, value, note, _SPLIT))
    return rows


def rows_heuristics(outcomes: Sequence[Outcome]) -> list[Row]:
    """Section 5.2.3: orders of servers."""
    note = f"{workloads.RANDOM} workloads with any of five SLOs; the thesis: no order is much better"
    first, *others = ORDERS
    plain = [float(one[first]) for one in outcomes]
    rows = [measured_row("heuristics", ORDERS[first], "servers", plain)]
    for name in others:
        ratio = [one[name] / one[first] for one in outcomes if one[first]]
        rows.append(
            measured_row("heuristics", f"{ORDERS[name]} over {ORDERS[first]}", "x", ratio, None, note)
        )
    return rows


def rows_averages(outcomes: Sequence[Outcome]) -> list[Row]:
    """Section 5.3.1: multiples of the mean rate."""
    rows = []
    note = (
        f"{workloads.RANDOM} workloads with any of five SLOs that fit alone under all three methods; the"
        " thesis: all multiples from 1.25 to 20 are worse than effective bandwidth"
    )
    for name in workloads.AVERAGES:
        servers = [one[name]["servers"] for one in outcomes if one[name]["servers"]]
        for other in (EFFECTIVE, workloads.COMPACTOR):
            ratio = [of[name] / of[other] for of in servers if of[other]]
            label = f"{name} over {other}: servers"
            rows.append(measured_row("5.4-average", label, "x", ratio, None, note))
        fit = [100 * one[name]["fit"] for one in outcomes]
        fit_note = "of the pairs of a trace and an SLO that fit alone under the two other methods"
        rows.append(measured_row("5.4-average", f"{name}: fit alone", "%", fit, None, fit_note))
    return rows


def rows_same(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.8."""
    note = f"{MANY} workloads, by fast first fit; {_FEASIBLE}"
    return _ratios("5.8", outcomes, note, paper.MANY)


def rows_random(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figures 5.1 and 5.9."""
    note = f"{WHOLE} workloads, by fast first fit; {_FEASIBLE}"
    return _ratios("5.9", outcomes, note, paper.MANY)


def rows_visits(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.10."""
    rivals = f"the thesis: above {paper.VISITS:.1f}x for all rivals, for stays not told"
    note = f"{WHOLE} workloads, by fast first fit; {rivals}"
    rows = [
        measured_row(
            "5.10",
            "compactor: most servers in use",
            "servers",
            [one[workloads.COMPACTOR] for one in outcomes],
        )
    ]
    for way in _RIVALS:
        ratios = [one[way] / one[workloads.COMPACTOR] for one in outcomes]
        rows.append(measured_row("5.10", f"{way}{pictures.OVER}", "x", ratios, None, note))
    return rows


def rows_devices(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.11."""
    note = f"{BESIDE} workloads; the thesis: flat from two SSDs on, at {paper.SSDS:.0f} servers for 1000"
    return [
        measured_row(
            "5.11", f"{count} SSDs a server", "servers", [one[str(count)] for one in outcomes], None, note
        )
        for count in DEVICES
    ]


def rows_fast(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.7."""
    rows = []
    low, high = paper.FAST_SERVERS
    for count in TIMED:
        plain, quick = (
            [one[f"{count} {name}"] for one in outcomes] for name in ("first fit", "fast first fit")
        )
        more = [100 * (b["servers"] / a["servers"] - 1) for a, b in zip(plain, quick, strict=True)]
        times = [a["seconds"] / b["seconds"] for a, b in zip(plain, quick, strict=True)]
        note = f"the thesis: {low:.0f} to {high:.0f} %"
        rows.append(measured_row("5.7", f"{count} workloads: servers more", "%", more, None, note))
        note = f"processor time of this machine; the thesis: more than {paper.FAST_SPEED:.0f} times"
        rows.append(measured_row("5.7", f"{count} workloads: times faster", "x", times, None, note))
    return rows


def rows_several(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.12."""
    rows = []
    curves = "bounds by curves, equal priorities in order of arrival"
    programs = (
        "bounds by linear programs, equal priorities in any order; the thesis: more servers than one limiter"
    )
    for name, words, value, note in (
        ("several", "several limiters", None, curves),
        ("published", "several limiters, as published", paper.SEVERAL_TIME, programs),
    ):
        over = {
            key: [one[name][key] / one["one"][key] for one in outcomes if one["one"][key]]
            for key in ("servers", "seconds")
        }
        refused = [float(one[name]["refused"]) for one in outcomes]
        rows += [
            measured_row("5.12", f"{words}: servers over one's", "x", over["servers"], None, note),
            measured_row("5.12", f"{words}: time over one's", "x", over["seconds"], value),
            measured_row("5.12", f"{words}: refused", "workloads", refused),
        ]
    return rows


def _ratios(figure: str, outcomes: Sequence[Outcome], note: str, reported: Paper = None) -> list[Row]:
    """Servers under each method over the compactor's; `reported` is the thesis' range of its rivals."""
    rows = []
    for name in outcomes[0]:
        servers = [float(one[name][workloads.COMPACTOR]["servers"]) for one in outcomes]
        rows.append(measured_row(figure, f"{name}: compactor", "servers", servers))
        for way in _RIVALS:
            ratios = [_ratio(one[name], way) for one in outcomes]
            label = f"{name}: {way}{pictures.OVER}"
            reason = _SPLIT if way.startswith("effective") else _OTHER_TRACES
            rows.append(measured_row(figure, label, "x", ratios, reported, note, reason))
    return rows


def _ratio(one: Outcome, way: str) -> float:
    return float(one[way]["servers"] / one[workloads.COMPACTOR]["servers"])


def _best(outcomes: Sequence[Outcome], names: Sequence[str]) -> str:
    total = {way: sum(_ratio(one[name], way) for one in outcomes for name in names) for way in _RIVALS}
    return min(_RIVALS, key=lambda way: total[way])
