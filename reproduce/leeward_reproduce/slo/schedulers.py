"""Figures 3.3, 3.4, 3.8 and 3.9: kept SLOs on a shared disk under each scheduler.

The thesis shows its SLOs in pictures, without numbers. With independent gaps, the SLOs here are 0.1 s apart;
the tightest is about as large as PriorityMeister's bound for workload C behind A and B. With other gaps,
bursts are longer: the SLOs are then the least power of two times these that PriorityMeister's bounds are
within, because the thesis' PriorityMeister finds such priorities. Halves and quarters show the results if
bounds exceed SLOs.
"""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import cake, contention, paper
from leeward_reproduce.slo.contention import SCHEDULERS
from leeward_reproduce.slo.gaps import INDEPENDENT, Gaps

LETTERS = ("A", "B", "C")
SLOS = (0.7, 0.8, 0.6)
"""SLOs of A, B and C in seconds: C has the tightest SLO, as in the thesis (section 3.4.1)."""
SCALES = (1.0, 0.5, 0.25)
"""Factors of these SLOs."""
PERCENTILES = (90.0, 99.0, 99.9, 99.99)
SECONDS = 2400
"""Length of a run in seconds. The measured half has some 9000 requests of A; one may be late at 99.99 %."""
ORDERED = 600
"""Length in seconds of each run of figure 3.9, which has eighteen sets of SLOs. The measured half has some
2000 requests of A; two may be late at 99.9 %."""

Outcome = dict[str, Any]
Promised = Callable[[float], bool]


def scaled_sets(gaps: Gaps, slos: Sequence[float], promised: Promised) -> dict[str, float]:
    """Factor of each set of SLOs, by its words in rows.

    Args:
        gaps: Input of the experiment.
        slos: SLOs in seconds.
        promised: True if PriorityMeister's bounds are within these SLOs times a factor.
    """
    if gaps == INDEPENDENT:
        return {_words([scale * slo for slo in slos]): scale for scale in SCALES}
    least = contention.least_factor(promised)
    shares = ("PM's SLOs", "half of PM's SLOs", "a quarter of PM's SLOs")
    return {words: scale * least for words, scale in zip(shares, SCALES, strict=True)}


def factor_rows(
    figure: str, sets: Sequence[dict[str, float]], gaps: Gaps, slos: Sequence[float]
) -> list[Row]:
    """A row with the factor of the first set of SLOs, where a rule chooses it."""
    if gaps == INDEPENDENT:
        return []
    label = f"PM's SLOs over {_numbers(slos)} ms"
    note = f"the least power of two with which PM's bounds are within, up to {contention.FACTORS[-1]:g}"
    values = [next(iter(one.values())) for one in sets]
    return [measured_row(figure, label, "x", values, None, f"{note}; {gaps.note}")]


def _numbers(slos: Sequence[float]) -> str:
    return ", ".join(f"{1000 * slo:.0f}" for slo in sorted(slos))


def _words(slos: Sequence[float]) -> str:
    return f"SLOs of {_numbers(slos)} ms"


def _shared(slos: Sequence[float], gaps: Gaps) -> list[contention.Member]:
    stored = [contention.storage_member(letter, slo, gaps) for letter, slo in zip(LETTERS, slos, strict=True)]
    return contention.own_clients([*stored, contention.copy()])


def _scaled(scale: float) -> list[float]:
    return [scale * slo for slo in SLOS]


def _promised_count(of: Sequence[dict[str, Any]], slos: Sequence[float]) -> int:
    return sum(
        one["bound_s"] is not None and one["bound_s"] <= slo for one, slo in zip(of, slos, strict=False)
    )


def _sets(seed: int, seconds: float, gaps: Gaps) -> dict[str, float]:
    def promised(factor: float) -> bool:
        slos = _scaled(factor)
        of = contention.contend(seed, _shared(slos, gaps), seconds, PERCENTILES, schedulers=("pm",))["pm"]
        return _promised_count(of, slos) == len(slos)

    return scaled_sets(gaps, SLOS, promised)


def shared(seed: int, gaps: Gaps) -> Outcome:
    """Figures 3.3 and 3.4: A, B, C and a copy on one disk."""
    sets = _sets(seed, SECONDS, gaps)
    result: Outcome = {}
    for words, scale in sets.items():
        slos = _scaled(scale)
        outcome = contention.contend(seed, _shared(slos, gaps), SECONDS, PERCENTILES)
        result[words] = {
            name: {
                "over": [[tail / slo for tail in one["tails_s"]] for one, slo in zip(of, slos, strict=False)],
                "promised": _promised_count(of, slos),
                "copied": contention.copied(of[-1], SECONDS),
            }
            for name, of in outcome.items()
        }
    return {"sets": sets, "results": result}


def _within(one: Outcome) -> int:
    """Workloads within their SLO at all measured percentiles."""
    return sum(over[-1] <= 1 for over in one["over"])


def _score(one: Outcome) -> tuple[float, float]:
    return float(_within(one)), -max(over[-1] for over in one["over"])


def rows_shared(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figures 3.3 and 3.4."""
    figure, note = f"3.3{gaps.suffix}", gaps.note
    sets = list(outcomes[0]["results"])
    rows = factor_rows(figure, [one["sets"] for one in outcomes], gaps, SLOS)
    for place, words in enumerate(sets):
        results = [one["results"][words] for one in outcomes]
        for scheduler, name in SCHEDULERS.items():
            key = cake.key(scheduler, results, _score)
            within = [_within(one[key]) for one in results]
            # The thesis has one set of SLOs: rows of tighter SLOs have no value of the thesis.
            value = paper.SHARED if scheduler == "pm" and place == 0 else None
            own = note if scheduler == "pm" or place else f"{note}; the thesis: not all three"
            label = f"{words}: {name}: of three, within at {PERCENTILES[-1]:g} %"
            rows.append(measured_row(figure, label, "workloads", within, value, own + cake.note(key)))
        promised = [one["pm"]["promised"] for one in results]
        label = f"{words}: PM: of three, bounds within"
        rows.append(measured_row(figure, label, "promised", promised, None, note))
    first = [one["results"][sets[0]] for one in outcomes]
    for scheduler, name in SCHEDULERS.items():
        key = cake.key(scheduler, first, _score)
        own = f"{sets[0]}; {note}{cake.note(key)}"
        for at, percent in enumerate(PERCENTILES):
            worst = [max(over[at] for over in one[key]["over"]) for one in first]
            label = f"{name}: latency over SLO at {percent:g} %, the worst of three"
            rows.append(measured_row(figure, label, "x", worst, None, f"figure 3.4; {own}"))
    for scheduler, name in SCHEDULERS.items():
        key = cake.key(scheduler, first, _score)
        copied = [one[key]["copied"] for one in first]
        own = f"{sets[0]}; {note}{cake.note(key)}"
        rows.append(measured_row(figure, f"{name}: copied", "MB/s", copied, None, own))
    return rows


def poor_model(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.8: PM with a model of the disk in which all seeks take equally long."""
    slos = _scaled(next(iter(_sets(seed, SECONDS, gaps).values())))
    good, poor = (
        contention.contend(seed, _shared(slos, gaps), SECONDS, PERCENTILES, schedulers=("pm",), poor=poor)[
            "pm"
        ]
        for poor in (False, True)
    )
    stored = range(len(LETTERS))
    return {
        "same": _order(good) == _order(poor),
        "within": sum(poor[at]["tails_s"][-1] <= slos[at] for at in stored),
        "slower": [poor[at]["tails_s"][2] / good[at]["tails_s"][2] for at in stored],
        "bound": [_over(poor[at]["bound_s"], good[at]["bound_s"]) for at in stored],
        "demoted": 1000
        * sum(poor[at]["demoted"] for at in stored)
        / sum(poor[at]["requests"] for at in stored)
        / 2,
    }


def _over(bound: float | None, other: float | None) -> float | None:
    return None if bound is None or other is None else bound / other


def _order(outcome: Sequence[dict[str, Any]]) -> list[str]:
    """Order of service at the disk."""
    named = zip(outcome, LETTERS, strict=False)
    return [name for _, name in sorted((of["priorities"]["storage"], name) for of, name in named)]


def rows_poor_model(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.8."""
    figure = f"3.8{gaps.suffix}"
    note = (
        f"{1000 * contention.POOR_SEEK:.0f} ms for every seek; limits count the disk's own work,"
        f" those of the thesis the model's; {gaps.note}"
    )
    same = [100.0 * one["same"] for one in outcomes]
    rows = [measured_row(figure, "seeds with the same order at the disk", "%", same, paper.SAME_ORDER, note)]
    within = [one["within"] for one in outcomes]
    label = f"PM by the poor model: of three, within at {PERCENTILES[-1]:g} %"
    rows.append(measured_row(figure, label, "workloads", within, paper.SHARED, note))
    for at, letter in enumerate(LETTERS):
        slower = [one["slower"][at] for one in outcomes]
        label = f"{letter}: latency at {PERCENTILES[2]:g} % over that by the good model"
        rows.append(measured_row(figure, label, "x", slower, None, note))
        raised = [one["bound"][at] for one in outcomes if one["bound"][at] is not None]
        rows.append(
            measured_row(figure, f"{letter}: bound over that by the good model", "x", raised, None, note)
        )
    demoted = [one["demoted"] for one in outcomes]
    rows.append(measured_row(figure, "requests over their limits, of a thousand", "", demoted, None, note))
    return rows


def orders(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.9: all assignments of three SLOs to the three workloads."""
    sets = _sets(seed, ORDERED, gaps)
    result: Outcome = {}
    for words, scale in sets.items():
        kept: dict[str, int] = {}
        worst: dict[str, float] = {}
        for slos in permutations(_scaled(scale)):
            outcome = contention.contend(seed, _shared(slos, gaps), ORDERED, PERCENTILES[2:3])
            for name, of in outcome.items():
                ratios = [one["tails_s"][0] / slo for one, slo in zip(of, slos, strict=False)]
                kept[name] = kept.get(name, 0) + (max(ratios) <= 1)
                worst[name] = max(worst.get(name, 0.0), *ratios)
        result[words] = {name: {"kept": kept[name], "worst": worst[name]} for name in kept}
    return {"sets": sets, "results": result}


def rows_orders(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.9."""
    figure = f"3.9{gaps.suffix}"
    rows = factor_rows(figure, [one["sets"] for one in outcomes], gaps, SLOS)
    for at, words in enumerate(outcomes[0]["results"]):
        results = [one["results"][words] for one in outcomes]
        for scheduler, name in SCHEDULERS.items():
            key = cake.key(scheduler, results, lambda one: (float(one["kept"]), -one["worst"]))
            kept = [one[key]["kept"] for one in results]
            value = paper.ORDERS.get(scheduler) if at == 0 else None
            label = f"{words}: {name}: of six orders, all within"
            note = f"at {PERCENTILES[2]:g} %; {gaps.note}{cake.note(key)}"
            rows.append(measured_row(figure, label, "orders", kept, value, note))
    return rows


def constants() -> object:
    """Inputs that determine the outcomes."""
    return [contention.constants(), SLOS, SCALES, PERCENTILES, SECONDS, ORDERED]
