"""Figures 5.5 and 5.6: limits of the first half of each trace, and a replay of the second.

A workload keeps its SLO if 99.9 % of its requests are within it, over the complete replay. Another row has
the share of windows of three minutes (section 4.3); a half of five minutes has two.
"""

from collections.abc import Sequence
from typing import Any

from leeward_reproduce.rows import Row, measured
from leeward_reproduce.slo import paper, world

MARGINS = (0.1, 0.0)
"""Safety margins: with and without."""
OVERRUNS = {"enforced": "as the thesis enforces", "demoted": "demoted everywhere"}
"""Treatment of requests over a limit. The thesis holds them on networks, and demotes them at devices (section
2.2)."""

Outcome = dict[str, Any]


def same(seed: int) -> Outcome:
    """Figure 5.5: sets of workloads with one SLO."""
    sets = zip(world.SLOS, world.COUNTS, strict=True)
    return _replayed([world.draws(seed, count, (slo,), part="first") for slo, count in sets])


def random(seed: int) -> Outcome:
    """Figure 5.6: workloads with any of five SLOs."""
    return _replayed([world.draws(seed, world.RANDOM, world.SLOS, part="first")])


def _replayed(sets: Sequence[world.Draws]) -> Outcome:
    """Packs each set by the first halves, and replays the second."""
    made: Outcome = {}
    for margin in MARGINS:
        for over, words in OVERRUNS.items():
            of, servers = [], 0
            for drawn in sets:
                # From the beginning: no curve has the requests around an end.
                begun = [(trace, 0.0, slo) for trace, _, slo in drawn]
                way = world.WAYS[world.COMPACTOR]
                packed = world.pack(begun, way, margin=margin, part="first", replay="second", over=over)
                of += packed["replayed"]
                servers += packed["servers"]
            made[_name(margin, words)] = {
                "servers": servers,
                "kept": sum(one["tail_s"] <= one["slo_s"] for one in of) / len(of),
                "met": sum(one["met"] for one in of) / sum(one["windows"] for one in of),
                "late": sum(one["late"] for one in of) / sum(one["requests"] for one in of),
                "largest": max(one["tail_s"] / one["slo_s"] for one in of),
            }
    return made


def rows_same(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.5."""
    return _rows("5.5", outcomes)


def rows_random(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.6."""
    return _rows("5.6", outcomes)


def _rows(figure: str, outcomes: Sequence[Outcome]) -> list[Row]:
    made = []
    for margin in MARGINS:
        for words in OVERRUNS.values():
            name = _name(margin, words)
            of = [one[name] for one in outcomes]
            value = paper.HELD_OUT if margin else None
            note = "" if margin else 'the thesis: "a few" miss'
            share = [100 * one["kept"] for one in of]
            made += [
                measured(figure, f"{name}: workloads within their SLO", "%", share, value, note),
                measured(
                    figure, f"{name}: windows of 3 min within the SLO", "%", [100 * one["met"] for one in of]
                ),
                measured(
                    figure, f"{name}: late requests, of a thousand", "", [1000 * one["late"] for one in of]
                ),
                measured(
                    figure,
                    f"{name}: largest 99.9 % latency over its SLO",
                    "x",
                    [one["largest"] for one in of],
                ),
            ]
        servers = [one[name]["servers"] for one in outcomes]
        made.append(measured(figure, f"{_margin(margin)}: servers", "servers", servers))
    return made


def _margin(margin: float) -> str:
    return f"margin of {margin:.0%}" if margin else "no margin"


def _name(margin: float, words: str) -> str:
    return f"{_margin(margin)}, {words}"
