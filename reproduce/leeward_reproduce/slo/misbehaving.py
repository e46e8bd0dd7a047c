"""Figures 3.2 and 3.6: a workload of high priority sends more than it declared.

The limits of this workload follow from its declaration. The limits of figure 3.2 have rates from a little
above its mean load up to most of the disk, each with the least burst that does not delay the declared
requests.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import contention, paper
from leeward_reproduce.slo.contention import DRAWN, SCHEDULERS

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


def limited(seed: int) -> Outcome:
    """Figure 3.2: B floods the disk for a while, before A and C."""
    load, gap_c2 = contention.FLOOD[0], contention.TABLE["B"][1]
    flood = {"from": BEGINS, "seconds": LASTS, "load": {"storage": load}, "gap_c2": gap_c2}
    result: Outcome = {}
    for name, rates in RATES.items():
        first, medium, low = (
            contention.storage_member(letter, slo) for letter, slo in zip("BAC", RANKED_SLOS, strict=True)
        )
        members = contention.own_clients([{**first, "rates": rates, "instead": flood}, medium, low])
        outcome = contention.contend(
            seed, members, SECONDS, [PERCENTILE], schedulers=("by-slo",), measured=1.0
        )["by-slo"]
        result[name] = [member["tails_s"][0] for member in outcome[1:]]
    return result


def rows_limited(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.2."""
    rows = []
    slos = RANKED_SLOS[1:]
    note = (
        f"B is first, A is M, C is L; SLOs of {1000 * slos[0]:.0f} and {1000 * slos[1]:.0f} ms;"
        f" which two the thesis has is not said; {DRAWN}"
    )
    for name in RATES:
        for at, which in enumerate(("M", "L")):
            tails = [1000 * one[name][at] for one in outcomes]
            label = f"{name}: {which}, latency at {PERCENTILE:g} %"
            rows.append(measured_row("3.2", label, "ms", tails, None, note))
        both = [
            100.0 * all(tail <= slo for tail, slo in zip(one[name], slos, strict=True)) for one in outcomes
        ]
        value = paper.LIMITED["all" if name == "all three" else "one"]
        rows.append(measured_row("3.2", f"{name}: seeds with both within", "%", both, value, note))
    return rows


def isolated(seed: int) -> Outcome:
    """Figure 3.6: C beside D as declared, and C beside E, which is D misbehaving."""
    load, gap_c2 = contention.FLOOD
    flood = {"from": 0, "seconds": ISOLATED, "load": {"storage": load}, "gap_c2": gap_c2}
    result: Outcome = {}
    for name, instead in (("beside D", None), ("beside E", flood)):
        first, other = (
            contention.storage_member(letter, slo) for letter, slo in zip("CD", ISOLATED_SLOS, strict=True)
        )
        members = contention.own_clients([first, {**other, "instead": instead}])
        outcome = contention.contend(seed, members, ISOLATED, [PERCENTILE])
        result[name] = {
            scheduler: [of[0]["tails_s"][0], of[1]["priorities"]["storage"] < of[0]["priorities"]["storage"]]
            for scheduler, of in outcome.items()
        }
    return result


def rows_isolated(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.6."""
    rows = []
    slo = ISOLATED_SLOS[0]
    note = (
        f"SLOs of {1000 * slo:.0f} ms, and {1000 * ISOLATED_SLOS[1]:.0f} ms of D;"
        f" E asks for {contention.FLOOD[0]:g} disks; {DRAWN}"
    )
    for name in outcomes[0]:
        for scheduler, name_text in SCHEDULERS.items():
            tails = [one[name][scheduler][0] for one in outcomes]
            latency = [1000 * tail for tail in tails]
            label = f"C {name}: {name_text}"
            rows.append(
                measured_row("3.6", f"{label}: latency at {PERCENTILE:g} %", "ms", latency, None, note)
            )
            within = [100.0 * (tail <= slo) for tail in tails]
            case = "calm" if name == "beside D" else "pm" if scheduler == "pm" else "others"
            value = paper.ISOLATED[case]
            rows.append(measured_row("3.6", f"{label}: seeds within the SLO", "%", within, value, note))
    return rows


def constants() -> object:
    """Inputs that determine the outcomes."""
    rates = [RATES, RANKED_SLOS, BEGINS, LASTS, SECONDS]
    return [contention.constants(), PERCENTILE, *rates, ISOLATED, ISOLATED_SLOS]
