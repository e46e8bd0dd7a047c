"""Figures 5.5 and 5.6: limits from the first half of each trace, and a replay of the second half.

A workload keeps its SLO if 99.9 % of its requests in the complete replay are within the SLO. Another row has
the share of 3-minute windows within the SLO (section 4.3); a replayed half of five minutes has two windows.

Each figure has rows with and without demotion on links. A third row leaves out the workloads whose traces
carry more bytes in the second half than limits from the first half and the margin allow for, which tests
whether growth is the reason of misses.
"""

from collections.abc import Sequence
from math import fsum
from typing import Any

from leeward_reproduce.rows import FAR, Row, measured_row
from leeward_reproduce.slo import paper, workloads

MARGINS = (0.1, 0.0)
"""Safety margins: 10 %, and no margin."""
OVERRUNS = {"enforced": "as the thesis enforces", "demoted": "demoted on links too"}
"""Treatment of requests over a limit. The thesis delays them on networks, and demotes them at devices
(section 2.2)."""
HELD = OVERRUNS["enforced"]

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
            replayed: list[dict[str, Any]] = []
            steady: list[dict[str, Any]] = []
            servers = 0
            for draw_list in sets:
                # Each half starts at its beginning: curves do not cover requests that wrap around its end.
                start = [(trace, 0.0, slo) for trace, _, slo in draw_list]
                way = workloads.WAYS[workloads.COMPACTOR]
                packing = workloads.pack(start, way, margin=margin, part="first", replay="second", over=over)
                replayed += packing["replayed"]
                steady += [
                    one
                    for at, one in zip(packing["placed"], packing["replayed"], strict=True)
                    if _growth(start[at][0]) <= 1 + margin
                ]
                servers += packing["servers"]
            result[_name(margin, words)] = {
                "servers": servers,
                "kept": _kept(replayed),
                "steady": _kept(steady) if steady else None,
                "met": sum(one["met"] for one in replayed) / sum(one["windows"] for one in replayed),
                "late": sum(one["late"] for one in replayed) / sum(one["requests"] for one in replayed),
                "largest": max(one["tail_s"] / one["slo_s"] for one in replayed),
            }
    return result


def _growth(trace: int) -> float:
    """Bytes of the second half of a trace, over those of the first half."""
    traces = workloads.experiment()
    return traces.payload(trace, "second") / traces.payload(trace, "first")


def _kept(replayed: Sequence[dict[str, Any]]) -> float:
    """Share of workloads within their SLO."""
    return sum(bool(one["tail_s"] <= one["slo_s"]) for one in replayed) / len(replayed)


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
            if words == HELD and margin:
                note = _reason(outcomes, margin)
            share = [100 * one["kept"] for one in results]
            steady = [100 * one["steady"] for one in results if one["steady"] is not None]
            grown = f"the second half of their traces has at most {1 + margin:g} times the bytes of the first"
            result += [
                measured_row(figure, f"{name}: workloads within their SLO", "%", share, value, note),
                measured_row(figure, f"{name}: of those without growth, within", "%", steady, None, grown),
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


def _reason(outcomes: Sequence[Outcome], margin: float) -> str:
    """Reason of workloads that miss their SLO as the thesis enforces, by the rows beside; empty if few do."""

    def mean(words: str, key: str) -> float | None:
        values = [one[_name(margin, words)][key] for one in outcomes]
        present = [100 * value for value in values if value is not None]
        return fsum(present) / len(present) if present else None

    kept, steady = mean(HELD, "kept"), mean(HELD, "steady")
    demoted = mean(OVERRUNS["demoted"], "kept")
    if kept is None or steady is None or demoted is None or paper.HELD_OUT - kept <= FAR:
        return ""
    return (
        f"tested: limits on links hold load that grows. With demotion on links, {demoted:.1f} % keep their"
        f" SLO; of the workloads without growth, {steady:.1f} % do"
    )


def _margin(margin: float) -> str:
    return f"margin of {margin:.0%}" if margin else "no margin"


def _name(margin: float, words: str) -> str:
    return f"{_margin(margin)}, {words}"
