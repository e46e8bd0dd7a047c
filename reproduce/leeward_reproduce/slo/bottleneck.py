"""Figure 3.7: workloads on devices of their own with links as the bottleneck.

Four workloads share a link of 1 Gb/s and load it by more than 80 %. I and J read from disks, and K reads from
memory; the thesis does not name the fourth workload, and here it is C. If the bottleneck is the server's
egress, all are on one server; if it is the client's ingress, each is on a server of its own, and all run on
one client machine.

I, J and K are synthetic in the thesis. I and J need requests of 1 MiB for their two loads, which no released
trace has. So gaps are independent or correlated, and there are no released traces.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import contention, paper, schedulers
from leeward_reproduce.slo.contention import SCHEDULERS
from leeward_reproduce.slo.gaps import INDEPENDENT, Gaps

SLOS = {"C": 0.5, "I": 2.0, "J": 0.6, "K": 0.4}
"""SLOs in seconds: K has the tightest SLO and I a loose one, as in the thesis (section 3.4.4)."""
SCALES = (1.0, 0.5, 0.25)
"""Factors of these SLOs. With a factor of 1, PriorityMeister's bounds are within the SLOs. With correlated
gaps, these factors multiply the least power of two for which they are."""
PERCENTILE = 99.9
SECONDS = 400
COMPARED = ("ps", "by-slo", "pm")
"""Schedulers that the thesis compares; Cake and EDF do not schedule networks."""
PLACES = ("server egress", "client ingress")

Outcome = dict[str, Any]


def _members(place: str, scale: float, gaps: Gaps) -> list[contention.Member]:
    result = []
    for at, (letter, slo) in enumerate(SLOS.items()):
        here = {"client": at, "server": 0} if place == PLACES[0] else {"client": 0, "server": at}
        # Disks are numbered on their server; K has none.
        device = at if place == PLACES[0] else 0
        if letter == "C":
            member = contention.storage_member(letter, scale * slo, gaps)
            result.append({**member, **here, "device": device})
        else:
            device_or_none = None if letter == "K" else device
            result.append(contention.network_member(letter, scale * slo, device_or_none, gaps, **here))
    return result


def bottleneck(seed: int, gaps: Gaps) -> Outcome:
    """Figure 3.7: both places, with SLOs as they are and tighter."""
    return {place: _at_place(seed, place, gaps) for place in PLACES}


def _at_place(seed: int, place: str, gaps: Gaps) -> Outcome:
    """Factor of each set of SLOs, and latencies over SLOs by set and scheduler."""

    def run(scale: float, compared: Sequence[str]) -> contention.ContentionResult:
        members = _members(place, scale, gaps)
        return contention.contend(seed, members, SECONDS, [PERCENTILE], schedulers=compared)

    def promised(scale: float) -> bool:
        of = run(scale, ("pm",))["pm"]
        bounds = [(one["bound_s"], scale * slo) for one, slo in zip(of, SLOS.values(), strict=True)]
        return all(bound is not None and bound <= slo for bound, slo in bounds)

    sets = (
        {f"SLOs from {1000 * scale * min(SLOS.values()):.0f} ms": scale for scale in SCALES}
        if gaps == INDEPENDENT
        else schedulers.scaled_sets(gaps, list(SLOS.values()), promised)
    )
    results = {
        words: {
            scheduler: [one["tails_s"][0] / (scale * slo) for one, slo in zip(of, SLOS.values(), strict=True)]
            for scheduler, of in run(scale, COMPARED).items()
        }
        for words, scale in sets.items()
    }
    return {"sets": sets, "results": results}


def rows(outcomes: Sequence[Outcome], gaps: Gaps) -> list[Row]:
    """Figure 3.7."""
    figure, note = f"3.7{gaps.suffix}", gaps.note
    result = []
    for place in PLACES:
        of_place = [one[place] for one in outcomes]
        factors = schedulers.factor_rows(figure, [one["sets"] for one in of_place], gaps, list(SLOS.values()))
        result += [replace(row, quantity=f"{place}, {row.quantity}") for row in factors]
        for number, words in enumerate(of_place[0]["results"]):
            for scheduler in COMPARED:
                over = [one["results"][words][scheduler] for one in of_place]
                within = [sum(ratio <= 1 for ratio in ratios) for ratios in over]
                first = number == 0
                value = paper.BOTTLENECK if scheduler == "pm" and first else None
                label = f"{place}, {words}: {SCHEDULERS[scheduler]}"
                words_of_thesis = "" if scheduler == "pm" or not first else "; the thesis: not all"
                result.append(
                    measured_row(
                        figure,
                        f"{label}: of four, within at {PERCENTILE:g} %",
                        "workloads",
                        within,
                        value,
                        note + words_of_thesis,
                    )
                )
                late = ", ".join(
                    name for at, name in enumerate(SLOS) if any(ratios[at] > 1 for ratios in over)
                )
                worst = [max(ratios) for ratios in over]
                late_note = f"late under some seed: {late or 'none'}; {note}"
                result.append(
                    measured_row(
                        figure, f"{label}: latency over SLO, the worst of four", "x", worst, None, late_note
                    )
                )
    return result


def constants() -> object:
    """Inputs that determine the outcomes."""
    return [contention.constants(), SLOS, SCALES, PERCENTILE, SECONDS]
