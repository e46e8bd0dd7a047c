"""Figures 3.1, 3.3, 3.4, 3.5, 3.8 and 3.9: kept SLOs on a shared disk under each scheduler.

The thesis shows its SLOs in pictures, without numbers. The SLOs here are 0.1 s apart; the tightest is about
as large as PriorityMeister's bound for workload C behind A and B. Halves and quarters of these SLOs show the
results if PriorityMeister's bounds exceed SLOs.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import contention, paper
from leeward_reproduce.slo.contention import DRAWN, SCHEDULERS

LETTERS = ("A", "B", "C")
SLOS = (0.7, 0.8, 0.6)
"""SLOs of A, B and C in seconds: C has the tightest SLO, as in the thesis (section 3.4.1)."""
SCALES = (1.0, 0.5, 0.25)
"""Factors of these SLOs."""
PERCENTILES = (90.0, 99.0, 99.9, 99.99)
SECONDS = 2400
"""Length of a run in seconds. The measured half has some 9000 requests of A; one may be late at 99.99 %."""
SHORT = 1200
"""Length of a run in seconds, for percentiles up to 99 %."""
ORDERED = 600
"""Length in seconds of each run of figure 3.9, which has eighteen sets of SLOs. The measured half has some
2000 requests of A; two may be late at 99.9 %."""
BURSTY = ("F", "G", "H")
BURSTY_SLO = 0.1
"""SLO in seconds of the only workload that has an SLO (figures 3.1 and 3.5)."""
BURSTY_PERCENTILES = (96.0, 99.0)
PERCENTILE = 99.0
"""Percentile of that SLO; Cake is designed for the 99th percentile."""

Outcome = dict[str, Any]


def _shared(slos: Sequence[float]) -> list[contention.Member]:
    stored = [contention.storage_member(letter, slo) for letter, slo in zip(LETTERS, slos, strict=True)]
    return contention.own_clients([*stored, contention.copy()])


def _scaled(scale: float, slos: Sequence[float] = SLOS) -> list[float]:
    return [scale * slo for slo in slos]


def _words(slos: Sequence[float]) -> str:
    return "SLOs of " + ", ".join(f"{1000 * slo:.0f}" for slo in sorted(slos)) + " ms"


def shared(seed: int) -> Outcome:
    """Figures 3.3 and 3.4: A, B, C and a copy on one disk."""
    result: Outcome = {}
    for scale in SCALES:
        slos = _scaled(scale)
        outcome = contention.contend(seed, _shared(slos), SECONDS, PERCENTILES)
        result[_words(slos)] = {
            scheduler: {
                "over": [[tail / slo for tail in one["tails_s"]] for one, slo in zip(of, slos, strict=False)],
                "promised": sum(
                    one["bound_s"] is not None and one["bound_s"] <= slo
                    for one, slo in zip(of, slos, strict=False)
                ),
                "copied": of[-1]["requests"] / (SECONDS / 2) * contention.LARGE[0][0] / 1e6,
            }
            for scheduler, of in outcome.items()
        }
    return result


def rows_shared(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figures 3.3 and 3.4."""
    rows = []
    for place, words in enumerate(outcomes[0]):
        for scheduler, name in SCHEDULERS.items():
            within = [sum(over[-1] <= 1 for over in one[words][scheduler]["over"]) for one in outcomes]
            # The thesis has one set of SLOs: rows of tighter SLOs have no value of the thesis.
            value = paper.SHARED if scheduler == "pm" and place == 0 else None
            note = DRAWN if scheduler == "pm" or place else f"{DRAWN}; the thesis: not all three"
            label = f"{words}: {name}: of three, within at {PERCENTILES[-1]:g} %"
            rows.append(measured_row("3.3", label, "workloads", within, value, note))
        promised = [one[words]["pm"]["promised"] for one in outcomes]
        label = f"{words}: PM: of three, bounds within"
        rows.append(measured_row("3.3", label, "promised", promised, None, DRAWN))
    words = next(iter(outcomes[0]))
    for scheduler, name in SCHEDULERS.items():
        for at, percent in enumerate(PERCENTILES):
            worst = [max(over[at] for over in one[words][scheduler]["over"]) for one in outcomes]
            label = f"{name}: latency over SLO at {percent:g} %, the worst of three"
            rows.append(measured_row("3.3", label, "x", worst, None, f"figure 3.4; {words}; {DRAWN}"))
    for scheduler, name in SCHEDULERS.items():
        copied = [one[words][scheduler]["copied"] for one in outcomes]
        rows.append(measured_row("3.3", f"{name}: copied", "MB/s", copied, None, f"{words}; {DRAWN}"))
    return rows


def over_time(seed: int) -> Outcome:
    """Figure 3.1: a smooth and a bursty workload beside a copy, Cake against PM."""
    return {
        letter: {
            scheduler: {
                "late": 1000 * of[0]["late"] / of[0]["requests"],
                "intervals": [late for begins, _, late in of[0]["intervals"] if begins >= SHORT / 2],
            }
            for scheduler, of in _bursty(seed, letter).items()
        }
        for letter in (BURSTY[0], BURSTY[-1])
    }


def _bursty(seed: int, letter: str) -> contention.ContentionResult:
    members = contention.own_clients([contention.storage_member(letter, BURSTY_SLO), contention.copy()])
    both = ("cake", "pm")
    return contention.contend(
        seed, members, SHORT, BURSTY_PERCENTILES, schedulers=both, percentile=PERCENTILE
    )


def rows_over_time(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.1."""
    rows = []
    note = f"an SLO of {1000 * BURSTY_SLO:.0f} ms at {PERCENTILE:g} %; {DRAWN}"
    for letter in outcomes[0]:
        for scheduler in ("cake", "pm"):
            label = f"{letter}, C^2 {contention.TABLE[letter][1]:g}: {SCHEDULERS[scheduler]}"
            results = [one[letter][scheduler] for one in outcomes]
            late = [one["late"] for one in results]
            late_note = f"{note}; the thesis: almost none" if scheduler == "pm" else note
            rows.append(
                measured_row("3.1", f"{label}: late requests, of a thousand", "", late, None, late_note)
            )
            share = [
                100 * sum(late > 0 for late in one["intervals"]) / len(one["intervals"]) for one in results
            ]
            rows.append(measured_row("3.1", f"{label}: intervals of 10 s with one", "%", share, None, note))
            most = [float(max(one["intervals"])) for one in results]
            rows.append(measured_row("3.1", f"{label}: most in one interval", "requests", most, None, note))
    return rows


def bursts(seed: int) -> Outcome:
    """Figure 3.5: F, G and H, each with a copy."""
    return {
        letter: {scheduler: of[0]["tails_s"] for scheduler, of in _bursty(seed, letter).items()}
        for letter in BURSTY
    }


def rows_bursts(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.5."""
    rows = []
    note = f"an SLO of {1000 * BURSTY_SLO:.0f} ms; {DRAWN}"
    for letter in BURSTY:
        for scheduler in ("cake", "pm"):
            label = f"{letter}, C^2 {contention.TABLE[letter][1]:g}: {SCHEDULERS[scheduler]}"
            for at, percent in enumerate(BURSTY_PERCENTILES):
                tails = [1000 * one[letter][scheduler][at] for one in outcomes]
                rows.append(
                    measured_row("3.5", f"{label}: latency at {percent:g} %", "ms", tails, None, note)
                )
                value = paper.BURSTS.get((letter, scheduler, percent))
                if value is not None:
                    within = [100.0 * (tail <= 1000 * BURSTY_SLO) for tail in tails]
                    within_label = f"{label}: seeds within the SLO at {percent:g} %"
                    rows.append(measured_row("3.5", within_label, "%", within, value, note))
    return rows


def poor_model(seed: int) -> Outcome:
    """Figure 3.8: PM with a model of the disk in which all seeks take equally long."""
    good, poor = (
        contention.contend(seed, _shared(SLOS), SECONDS, PERCENTILES, schedulers=("pm",), poor=poor)["pm"]
        for poor in (False, True)
    )
    stored = range(len(LETTERS))
    return {
        "same": _order(good) == _order(poor),
        "within": sum(poor[at]["tails_s"][-1] <= SLOS[at] for at in stored),
        "slower": [poor[at]["tails_s"][2] / good[at]["tails_s"][2] for at in stored],
        "bound": [poor[at]["bound_s"] / good[at]["bound_s"] for at in stored],
        "demoted": 1000
        * sum(poor[at]["demoted"] for at in stored)
        / sum(poor[at]["requests"] for at in stored)
        / 2,
    }


def _order(outcome: Sequence[dict[str, Any]]) -> list[str]:
    """Order of service at the disk."""
    named = zip(outcome, LETTERS, strict=False)
    return [name for _, name in sorted((of["priorities"]["storage"], name) for of, name in named)]


def rows_poor_model(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.8."""
    note = (
        f"{1000 * contention.POOR_SEEK:.0f} ms for every seek; limits count the disk's own work,"
        f" those of the thesis the model's; {DRAWN}"
    )
    same = [100.0 * one["same"] for one in outcomes]
    rows = [measured_row("3.8", "seeds with the same order at the disk", "%", same, paper.SAME_ORDER, note)]
    within = [one["within"] for one in outcomes]
    label = f"PM by the poor model: of three, within at {PERCENTILES[-1]:g} %"
    rows.append(measured_row("3.8", label, "workloads", within, paper.SHARED, note))
    for at, letter in enumerate(LETTERS):
        slower = [one["slower"][at] for one in outcomes]
        label = f"{letter}: latency at {PERCENTILES[2]:g} % over that by the good model"
        rows.append(measured_row("3.8", label, "x", slower, None, note))
        raised = [one["bound"][at] for one in outcomes]
        rows.append(
            measured_row("3.8", f"{letter}: bound over that by the good model", "x", raised, None, note)
        )
    demoted = [one["demoted"] for one in outcomes]
    rows.append(measured_row("3.8", "requests over their limits, of a thousand", "", demoted, None, note))
    return rows


def orders(seed: int) -> Outcome:
    """Figure 3.9: all assignments of three SLOs to the three workloads."""
    result: Outcome = {}
    for scale in SCALES:
        kept = dict.fromkeys(SCHEDULERS, 0)
        for slos in permutations(_scaled(scale)):
            outcome = contention.contend(seed, _shared(slos), ORDERED, PERCENTILES[2:3])
            for scheduler, of in outcome.items():
                kept[scheduler] += all(one["tails_s"][0] <= slo for one, slo in zip(of, slos, strict=False))
        result[_words(_scaled(scale))] = kept
    return result


def rows_orders(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.9."""
    rows = []
    for at, words in enumerate(outcomes[0]):
        for scheduler, name in SCHEDULERS.items():
            kept = [one[words][scheduler] for one in outcomes]
            value = paper.ORDERS.get(scheduler) if at == 0 else None
            label = f"{words}: {name}: of six orders, all within"
            note = f"at {PERCENTILES[2]:g} %; {DRAWN}"
            rows.append(measured_row("3.9", label, "orders", kept, value, note))
    return rows


def constants() -> object:
    """Inputs that determine the outcomes."""
    bursty = [BURSTY, BURSTY_SLO, BURSTY_PERCENTILES, PERCENTILE]
    return [contention.constants(), SLOS, SCALES, PERCENTILES, SECONDS, SHORT, ORDERED, bursty]
