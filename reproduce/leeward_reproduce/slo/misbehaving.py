"""Figures 3.2 and 3.6: a workload of high priority sends more than it declared.

The limits of this workload follow from its declaration. The limits of figure 3.2 have rates from a little
above its mean load up to most of the disk, each with the least burst that does not delay the declared
requests.

With other than independent gaps, bursts are longer, and rules choose the SLOs as the least power of two times
the stated ones: in figure 3.2 all three limits keep both, and in figure 3.6 every scheduler keeps C beside D,
as in the thesis.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import cake, contention, paper
from leeward_reproduce.slo.contention import SCHEDULERS
from leeward_reproduce.slo.gaps import INDEPENDENT, Gaps

PERCENTILE = 99.9
SECONDS = 600
"""Length of the runs of figure 3.2 in seconds; all of it is measured, and the flood is in the middle."""
BEGINS, LASTS = 280, 40
"""Start and length of the flood, in seconds."""
LOW, HIGH = 0.051, 0.8
"""Rates of limits, as shares of the disk."""
RATES: dict[str, tuple[float, ...]] = {
    "low rate, large burst": (LOW,),
    "medium rate and burst": (sqrt(LOW * HIGH),),
    "high rate, small burst": (HIGH,),
    "all three": (LOW, sqrt(LOW * HIGH), HIGH),
}
RANKED_SLOS = (0.05, 0.1, 0.25)
"""SLOs of B, A and C in seconds, in the order of priorities. The SLO of B is not used."""
ISOLATED = 1200
"""Length of the runs of figure 3.6, in seconds."""
ISOLATED_SLOS = (0.8, 0.6)
"""SLOs of C and D, in seconds."""

Outcome = dict[str, Any]


def limited(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.2: B floods the disk for a while, before A and C."""
    load, gap_c2 = contention.FLOOD[0], contention.TABLE["B"][1]
    flood = {"from": BEGINS, "seconds": LASTS, "load": {"storage": load}, "gap_c2": gap_c2}
    result: dict[str, list[float]] = {}
    for name, rates in RATES.items():
        first, medium, low = (
            contention.storage_member(letter, slo, gaps)
            for letter, slo in zip("BAC", RANKED_SLOS, strict=True)
        )
        members = contention.own_clients([{**first, "rates": rates, "instead": flood}, medium, low])
        outcome = contention.contend(
            seed, members, SECONDS, [PERCENTILE], schedulers=("by-slo",), measured=1.0
        )["by-slo"]
        result[name] = [member["tails_s"][0] for member in outcome[1:]]
    tails = result["all three"]
    factor = 1.0 if gaps == INDEPENDENT else contention.least_factor(lambda one: _both(tails, one))
    return {"factor": factor, "tails": result}


def _both(tails: Sequence[float], factor: float) -> bool:
    """True if M and L are within their SLOs times a factor."""
    return all(tail <= factor * slo for tail, slo in zip(tails, RANKED_SLOS[1:], strict=True))


def rows_limited(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.2."""
    figure = f"3.2{gaps.suffix}"
    slos = " and ".join(f"{1000 * slo:.0f}" for slo in RANKED_SLOS[1:])
    rule = "with which all three limits keep both"
    note = (
        f"B is first, A is M, C is L; SLOs of {_scaled_words(slos, rule, gaps)};"
        f" which two the thesis has is not said; {gaps.note}"
    )
    rows = _factor_rows(figure, outcomes, gaps, note)
    for name in RATES:
        for at, which in enumerate(("M", "L")):
            tails = [1000 * one["tails"][name][at] for one in outcomes]
            label = f"{name}: {which}, latency at {PERCENTILE:g} %"
            rows.append(measured_row(figure, label, "ms", tails, None, note))
        both = [100.0 * _both(one["tails"][name], one["factor"]) for one in outcomes]
        value = paper.LIMITED["all" if name == "all three" else "one"]
        rows.append(measured_row(figure, f"{name}: seeds with both within", "%", both, value, note))
    return rows


def _scaled_words(slos: str, rule: str, gaps: Gaps) -> str:
    """SLOs in words, and the rule that scales them."""
    return f"{slos} ms" if gaps == INDEPENDENT else f"{slos} ms times the least power of two {rule}"


def _factor_rows(figure: str, outcomes: Sequence[Outcome], gaps: Gaps, note: str) -> list[Row]:
    if gaps == INDEPENDENT:
        return []
    factors = [one["factor"] for one in outcomes]
    return [measured_row(figure, "factor of the SLOs", "x", factors, None, note)]


def isolated(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.6: C beside D as declared, and C beside E, which is D misbehaving."""
    load, gap_c2 = contention.FLOOD
    flood = {"from": 0, "seconds": ISOLATED, "load": {"storage": load}, "gap_c2": gap_c2}
    # The outcomes beside D of each factor that was tried.
    beside: dict[float, dict[str, float]] = {}

    def all_within(factor: float) -> bool:
        beside[factor] = _latencies(seed, factor, None, gaps)
        return _calm(beside[factor], factor)

    factor = 1.0 if gaps == INDEPENDENT else contention.least_factor(all_within)
    calm = beside[factor] if factor in beside else _latencies(seed, factor, None, gaps)
    latencies = {"beside D": calm, "beside E": _latencies(seed, factor, flood, gaps)}
    return {"factor": factor, "latencies": latencies}


def _latencies(seed: int, factor: float, instead: Mapping[str, Any] | None, gaps: Gaps) -> dict[str, float]:
    """Latency of C in seconds, by scheduler, beside D that sends other requests instead."""
    first, other = (
        contention.storage_member(letter, factor * slo, gaps)
        for letter, slo in zip("CD", ISOLATED_SLOS, strict=True)
    )
    members = contention.own_clients([first, {**other, "instead": instead}])
    outcome = contention.contend(seed, members, ISOLATED, [PERCENTILE])
    return {name: of[0]["tails_s"][0] for name, of in outcome.items()}


def _calm(latencies: Mapping[str, float], factor: float) -> bool:
    """True if every scheduler keeps C within its SLO, Cake with at least one setting."""
    within = {name: tail <= factor * ISOLATED_SLOS[0] for name, tail in latencies.items()}
    others = [kept for name, kept in within.items() if name not in cake.SETTINGS]
    return all(others) and any(within[name] for name in cake.SETTINGS)


def rows_isolated(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.6."""
    figure = f"3.6{gaps.suffix}"
    slos = f"{1000 * ISOLATED_SLOS[0]:.0f} ms, and of D {1000 * ISOLATED_SLOS[1]:.0f}"
    rule = "with which every scheduler keeps C beside D"
    note = f"SLOs of {_scaled_words(slos, rule, gaps)}; E asks for {contention.FLOOD[0]:g} disks; {gaps.note}"
    rows = _factor_rows(figure, outcomes, gaps, note)
    for name in outcomes[0]["latencies"]:
        # Latencies over the SLO of C.
        results = [
            {key: tail / (one["factor"] * ISOLATED_SLOS[0]) for key, tail in one["latencies"][name].items()}
            for one in outcomes
        ]
        for scheduler, name_text in SCHEDULERS.items():
            key = cake.key(scheduler, results, lambda over: (float(over <= 1), -over))
            latency = [1000 * one["latencies"][name][key] for one in outcomes]
            label, own = f"C {name}: {name_text}", note + cake.note(key)
            rows.append(
                measured_row(figure, f"{label}: latency at {PERCENTILE:g} %", "ms", latency, None, own)
            )
            within = [100.0 * (one[key] <= 1) for one in results]
            case = "calm" if name == "beside D" else "pm" if scheduler == "pm" else "others"
            value = paper.ISOLATED[case]
            rows.append(measured_row(figure, f"{label}: seeds within the SLO", "%", within, value, own))
    return rows


def constants() -> object:
    """Inputs that determine the outcomes."""
    rates = [RATES, RANKED_SLOS, BEGINS, LASTS, SECONDS]
    return [contention.constants(), PERCENTILE, *rates, ISOLATED, ISOLATED_SLOS]
