"""Figure 3.7: workloads on devices of their own with links as the bottleneck.

Four workloads share a link of 1 Gb/s and load it by more than 80 %. I and J read from disks, and K reads from
memory; the thesis does not name the fourth workload, and here it is C. If the bottleneck is the server's
egress, all are on one server; if it is the client's ingress, each is on a server of its own, and all run on
one client machine.
"""

from collections.abc import Sequence
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import contention, paper
from leeward_reproduce.slo.contention import DRAWN, SCHEDULERS

SLOS = {"C": 0.5, "I": 2.0, "J": 0.6, "K": 0.4}
"""SLOs in seconds: K has the tightest SLO and I a loose one, as in the thesis (section 3.4.4)."""
SCALES = (1.0, 0.5, 0.25)
"""Factors of these SLOs; with a factor of 1, PriorityMeister's bounds are within the SLOs."""
PERCENTILE = 99.9
SECONDS = 400
COMPARED = ("ps", "by-slo", "pm")
"""Schedulers that the thesis compares; Cake and EDF do not schedule networks."""
PLACES = ("server egress", "client ingress")

Outcome = dict[str, Any]


def _members(place: str, scale: float) -> list[contention.Member]:
    result = []
    for at, (letter, slo) in enumerate(SLOS.items()):
        here = {"client": at, "server": 0} if place == PLACES[0] else {"client": 0, "server": at}
        # Disks are numbered on their server; K has none.
        device = at if place == PLACES[0] else 0
        if letter == "C":
            result.append({**contention.storage_member(letter, scale * slo), **here, "device": device})
        else:
            result.append(
                contention.network_member(letter, scale * slo, None if letter == "K" else device, **here)
            )
    return result


def bottleneck(seed: int) -> Outcome:
    """Figure 3.7: both places, with SLOs as they are and tighter."""
    result: Outcome = {}
    for place in PLACES:
        for scale in SCALES:
            outcome = contention.contend(
                seed, _members(place, scale), SECONDS, [PERCENTILE], schedulers=COMPARED
            )
            result[_words(place, scale)] = {
                scheduler: [
                    one["tails_s"][0] / (scale * slo) for one, slo in zip(of, SLOS.values(), strict=True)
                ]
                for scheduler, of in outcome.items()
            }
    return result


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 3.7."""
    result = []
    for place in PLACES:
        for scale in SCALES:
            words = _words(place, scale)
            for scheduler in COMPARED:
                over = [one[words][scheduler] for one in outcomes]
                within = [sum(ratio <= 1 for ratio in ratios) for ratios in over]
                value = paper.BOTTLENECK if scheduler == "pm" and scale == SCALES[0] else None
                label = f"{words}: {SCHEDULERS[scheduler]}: of four, within at {PERCENTILE:g} %"
                first = scale == SCALES[0]
                note = DRAWN if scheduler == "pm" or not first else f"{DRAWN}; the thesis: not all"
                result.append(measured_row("3.7", label, "workloads", within, value, note))
                late = ", ".join(
                    name for at, name in enumerate(SLOS) if any(ratios[at] > 1 for ratios in over)
                )
                worst = [max(ratios) for ratios in over]
                label = f"{words}: {SCHEDULERS[scheduler]}: latency over SLO, the worst of four"
                note = f"late under some seed: {late or 'none'}; {DRAWN}"
                result.append(measured_row("3.7", label, "x", worst, None, note))
    return result


def _words(place: str, scale: float) -> str:
    return f"{place}, SLOs from {1000 * scale * min(SLOS.values()):.0f} ms"


def constants() -> object:
    """Inputs that determine the outcomes."""
    return [contention.constants(), SLOS, SCALES, PERCENTILE, SECONDS]
