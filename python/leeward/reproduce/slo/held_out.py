"""Figure 5.5: limits are made of the first half of each trace, and the second is replayed.

A workload keeps its SLO if 99.9 % of its requests are within it, over the whole replay. Beside it is the
share of windows of three minutes (section 4.3); of a half of five minutes there are two.
"""

from collections.abc import Sequence
from typing import Any

from leeward.reproduce.rows import Row, measured
from leeward.reproduce.slo import paper, world

MARGINS = (0.1, 0.0)
"""Safety margins: with and without."""

Outcome = dict[str, Any]


def replayed(seed: int) -> Outcome:
    """Packs by the first halves, and replays the second, for random SLOs."""
    # From its beginning: what comes around its end is in no curve, and would be one more reason to miss.
    drawn = [(trace, 0.0, slo) for trace, _, slo in world.draws(seed, world.RANDOM, world.SLOS, part="first")]
    made: Outcome = {}
    for margin in MARGINS:
        packed = world.pack(drawn, world.WAYS[world.COMPACTOR], margin=margin, part="first", replay="second")
        of = packed["replayed"]
        made[_name(margin)] = {
            "servers": packed["servers"],
            "kept": sum(one["tail_s"] <= one["slo_s"] for one in of) / len(of),
            "met": sum(one["met"] for one in of) / sum(one["windows"] for one in of),
            "late": sum(one["late"] for one in of) / sum(one["requests"] for one in of),
            "tails": sorted(one["tail_s"] / one["slo_s"] for one in of),
        }
    return made


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.5."""
    made = []
    for margin in MARGINS:
        of = [one[_name(margin)] for one in outcomes]
        value = paper.HELD_OUT if margin else None
        note = "" if margin else 'the thesis: "a few" miss'
        share = [100 * one["kept"] for one in of]
        made.append(measured("5.5", f"{_name(margin)}: workloads within their SLO", "%", share, value, note))
        met = [100 * one["met"] for one in of]
        made.append(measured("5.5", f"{_name(margin)}: windows of 3 min within the SLO", "%", met))
        late = [1000 * one["late"] for one in of]
        made.append(measured("5.5", f"{_name(margin)}: late requests, of a thousand", "", late))
        largest = [one["tails"][-1] for one in of]
        made.append(measured("5.5", f"{_name(margin)}: largest 99.9 % latency over its SLO", "x", largest))
        made.append(measured("5.5", f"{_name(margin)}: servers", "servers", [one["servers"] for one in of]))
    return made


def _name(margin: float) -> str:
    return f"margin of {margin:.0%}" if margin else "no margin"
