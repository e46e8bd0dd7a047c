"""Figures 3.1 and 3.5: Cake and PriorityMeister on a disk with one workload that has an SLO, and a copy.

The thesis shows its SLO in pictures, without a number. With independent gaps it is 0.1 s here. With other
gaps bursts are longer: the SLO is then the least power of two times 0.1 s that PriorityMeister keeps for the
burstiest workload at the 99th percentile, because the thesis' PriorityMeister keeps it there.
"""

from collections.abc import Sequence
from math import fsum
from typing import Any

from leeward_reproduce.rows import FAR, Row, measured_row
from leeward_reproduce.slo import cake, contention, paper
from leeward_reproduce.slo.contention import SCHEDULERS
from leeward_reproduce.slo.gaps import INDEPENDENT, Gaps

SECONDS = 1200
"""Length of a run in seconds, for percentiles up to 99 %."""
LETTERS = ("F", "G", "H")
SLO = 0.1
"""SLO in seconds of the only workload that has an SLO, with independent gaps."""
PERCENTILES = (96.0, 99.0)
PERCENTILE = 99.0
"""Percentile of that SLO; Cake is designed for the 99th percentile."""
COMPARED = (cake.NAME, "pm")

Outcome = dict[str, Any]


def _run(
    seed: int, letter: str, slo: float, gaps: Gaps, schedulers: Sequence[str] = COMPARED
) -> contention.ContentionResult:
    members = [contention.storage_member(letter, slo, gaps), contention.copy()]
    return contention.contend(
        seed,
        contention.own_clients(members),
        SECONDS,
        PERCENTILES,
        schedulers=schedulers,
        percentile=PERCENTILE,
    )


def _slo(seed: int, gaps: Gaps) -> float:
    """SLO in seconds."""
    if gaps == INDEPENDENT:
        return SLO
    # With one workload and a copy, the SLO does not change what PriorityMeister does.
    tail = _run(seed, LETTERS[-1], SLO, gaps, ("pm",))["pm"][0]["tails_s"][-1]
    return SLO * contention.least_factor(lambda factor: tail <= SLO * factor)


def over_time(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.1: a smooth and a bursty workload beside a copy, Cake against PM."""
    slo = _slo(seed, gaps)
    letters = {
        letter: {
            name: {
                "late": 1000 * of[0]["late"] / of[0]["requests"],
                "intervals": [late for begins, _, late in of[0]["intervals"] if begins >= SECONDS / 2],
            }
            for name, of in _run(seed, letter, slo, gaps).items()
        }
        for letter in (LETTERS[0], LETTERS[-1])
    }
    return {"slo": slo, "letters": letters}


def rows_over_time(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.1."""
    figure, note = f"3.1{gaps.suffix}", f"{_slo_note(gaps)} at {PERCENTILE:g} %; {gaps.note}"
    rows = _slo_rows(figure, outcomes, gaps, note)
    for letter in outcomes[0]["letters"]:
        of_letter = [one["letters"][letter] for one in outcomes]
        for scheduler in COMPARED:
            key = cake.key(scheduler, of_letter, lambda one: (-one["late"], 0.0))
            results = [one[key] for one in of_letter]
            label, key_note = _label(letter, scheduler), note + cake.note(key)
            late = [one["late"] for one in results]
            late_note = f"{key_note}; the thesis: almost none" if scheduler == "pm" else key_note
            rows.append(
                measured_row(figure, f"{label}: late requests, of a thousand", "", late, None, late_note)
            )
            share = [
                100 * sum(late > 0 for late in one["intervals"]) / len(one["intervals"]) for one in results
            ]
            rows.append(
                measured_row(figure, f"{label}: intervals of 10 s with one", "%", share, None, key_note)
            )
            most = [float(max(one["intervals"])) for one in results]
            rows.append(
                measured_row(figure, f"{label}: most in one interval", "requests", most, None, key_note)
            )
    return rows


def bursts(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.5: F, G and H, each with a copy."""
    slo = _slo(seed, gaps)
    letters = {
        letter: {
            name: {
                "tails": [1000 * tail for tail in of[0]["tails_s"]],
                "within": [tail <= slo for tail in of[0]["tails_s"]],
                "copied": contention.copied(of[1], SECONDS),
            }
            for name, of in _run(seed, letter, slo, gaps).items()
        }
        for letter in LETTERS
    }
    return {"slo": slo, "letters": letters}


def rows_bursts(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.5."""
    figure, note = f"3.5{gaps.suffix}", f"{_slo_note(gaps)}; {gaps.note}"
    rows = _slo_rows(figure, outcomes, gaps, note)
    for letter in LETTERS:
        of_letter = [one["letters"][letter] for one in outcomes]
        for scheduler in COMPARED:
            key = cake.key(scheduler, of_letter, _score)
            results = [one[key] for one in of_letter]
            label, key_note = _label(letter, scheduler), note + cake.note(key)
            for at, percent in enumerate(PERCENTILES):
                tails = [one["tails"][at] for one in results]
                rows.append(
                    measured_row(figure, f"{label}: latency at {percent:g} %", "ms", tails, None, key_note)
                )
                value = paper.BURSTS.get((letter, scheduler, percent))
                if value is not None:
                    within = [100.0 * one["within"][at] for one in results]
                    reason = _reason(letter, scheduler, within, value, gaps)
                    within_label = f"{label}: seeds within the SLO at {percent:g} %"
                    rows.append(measured_row(figure, within_label, "%", within, value, reason + key_note))
            copied = [one["copied"] for one in results]
            rows.append(measured_row(figure, f"{label}: copied", "MB/s", copied, None, key_note))
        rows += _rows_of_bounds(figure, letter, of_letter, note)
    return rows


def _rows_of_bounds(figure: str, letter: str, of_letter: Sequence[Outcome], note: str) -> list[Row]:
    """Rows of Cake by its upper bound: that of Cake's paper, and raised ones, as in the thesis."""
    rows = []
    for upper in cake.UPPERS:
        key = cake.best(of_letter, _score, upper)
        within = [100.0 * one[key]["within"][-1] for one in of_letter]
        label = f"{_label(letter, cake.NAME)}, upper bound {upper:g}"
        words = f"{label}: seeds within the SLO at {PERCENTILES[-1]:g} %"
        upper_note = f"{note}; the best of its steps and intervals: {key}"
        rows.append(measured_row(figure, words, "%", within, None, upper_note))
        copied = [one[key]["copied"] for one in of_letter]
        rows.append(measured_row(figure, f"{label}: copied", "MB/s", copied, None, upper_note))
    return rows


def _score(one: Outcome) -> tuple[float, float]:
    """Rates the results of a seed by the 99th percentile."""
    return float(one["within"][-1]), -one["tails"][-1]


def _reason(letter: str, scheduler: str, within: Sequence[float], value: float, gaps: Gaps) -> str:
    """Tested reason of a large difference from the thesis, as the beginning of a note."""
    mean = fsum(within) / len(within)
    if scheduler != cake.NAME or abs(mean - value) <= FAR:
        return ""
    if mean < value:
        return "tested: no setting of the grid keeps the SLO under more seeds; "
    load, gap_c2 = contention.TABLE[letter]
    if gaps == INDEPENDENT and gap_c2 > 1:
        return (
            "tested: settings of the grid keep the SLO; counted: independent gaps at most double the rate, to"
            f" {200 * load:g} % of the disk; "
        )
    return "tested: settings of the grid keep the SLO; "


def _label(letter: str, scheduler: str) -> str:
    return f"{letter}, C^2 {contention.TABLE[letter][1]:g}: {SCHEDULERS[scheduler]}"


def _slo_note(gaps: Gaps) -> str:
    if gaps == INDEPENDENT:
        return f"an SLO of {1000 * SLO:.0f} ms"
    return f"the SLO is the least power of two times {1000 * SLO:.0f} ms that PM keeps for {LETTERS[-1]}"


def _slo_rows(figure: str, outcomes: Sequence[Outcome], gaps: Gaps, note: str) -> list[Row]:
    if gaps == INDEPENDENT:
        return []
    slos = [1000 * one["slo"] for one in outcomes]
    return [measured_row(figure, "SLO", "ms", slos, None, note)]


def constants() -> object:
    """Inputs that determine the outcomes."""
    return [contention.constants(), SECONDS, LETTERS, SLO, PERCENTILES, PERCENTILE]
