"""Figures 5.5 and 5.6: limits from the first half of each trace, and a replay of the second half.

A workload keeps its SLO if 99.9 % of its requests in the complete replay are within the SLO. Another row has
the share of 3-minute windows within the SLO (section 4.3); a replayed half of five minutes has two windows.
"""

from collections.abc import Sequence
from typing import Any

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.slo import paper, workloads

MARGINS = (0.1, 0.0)
"""Safety margins: 10 %, and no margin."""
OVERRUNS = {"enforced": "as the thesis enforces", "demoted": "demoted everywhere"}
"""Treatment of requests over a limit. The thesis delays them on networks, and demotes them at devices
(section 2.2)."""

Outcome = dict[str, Any]


def same(seed: int) -> Outcome:
    """Figure 5.5: sets of workloads with one SLO."""
    sets = zip(workloads.SLOS, workloads.COUNTS, strict=True)
    return _replay([workloads.draws(seed, count, (slo,), part="first") for slo, count in sets])


def random(seed: int) -> Outcome:
    """Figure 5.6: workloads with any of five SLOs."""
    return _replay([workloads.draws(seed, workloads.RANDOM, workloads.SLOS, part="first")])


def _replay(sets: Sequence[workloads.Draws]) -> Outcome:
    """Packs each set by the first halves of traces, and replays the second halves."""
    result: Outcome = {}
    for margin in MARGINS:
        for over, words in OVERRUNS.items():
            replayed, servers = [], 0
            for draw_list in sets:
                # Each half starts at its beginning: curves do not cover requests that wrap around its end.
                start = [(trace, 0.0, slo) for trace, _, slo in draw_list]
                way = workloads.WAYS[workloads.COMPACTOR]
                packing = workloads.pack(start, way, margin=margin, part="first", replay="second", over=over)
                replayed += packing["replayed"]
                servers += packing["servers"]
            result[_name(margin, words)] = {
                "servers": servers,
                "kept": sum(one["tail_s"] <= one["slo_s"] for one in replayed) / len(replayed),
                "met": sum(one["met"] for one in replayed) / sum(one["windows"] for one in replayed),
                "late": sum(one["late"] for one in replayed) / sum(one["requests"] for one in replayed),
                "largest": max(one["tail_s"] / one["slo_s"] for one in replayed),
            }
    return result


def rows_same(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.5."""
    return _rows("5.5", outcomes)


def rows_random(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 5.6."""
    return _rows("5.6", outcomes)


def _rows(figure: str, outcomes: Sequence[Outcome]) -> list[Row]:
    result = []
    for margin in MARGINS:
        for words in OVERRUNS.values():
            name = _name(margin, words)
            results = [one[name] for one in outcomes]
            value = paper.HELD_OUT if margin else None
            note = "" if margin else 'the thesis: "a few" miss'
            share = [100 * one["kept"] for one in results]
            result += [
                measured_row(figure, f"{name}: workloads within their SLO", "%", share, value, note),
                measured_row(
                    figure,
                    f"{name}: windows of 3 min within the SLO",
                    "%",
                    [100 * one["met"] for one in results],
                ),
                measured_row(
                    figure,
                    f"{name}: late requests, of a thousand",
                    "",
                    [1000 * one["late"] for one in results],
                ),
                measured_row(
                    figure,
                    f"{name}: largest 99.9 % latency over its SLO",
                    "x",
                    [one["largest"] for one in results],
                ),
            ]
        servers = [one[name]["servers"] for one in outcomes]
        result.append(measured_row(figure, f"{_margin(margin)}: servers", "servers", servers))
    return result


def _margin(margin: float) -> str:
    return f"margin of {margin:.0%}" if margin else "no margin"


def _name(margin: float, words: str) -> str:
    return f"{_margin(margin)}, {words}"
