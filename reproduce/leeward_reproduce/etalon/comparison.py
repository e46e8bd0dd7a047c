"""Rows of Etalon's figures and tables: the paper's values, ours over seeds, and reasons of differences."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from leeward.lab.checks import network
from leeward_reproduce.etalon import experiments, hosts, paper
from leeward_reproduce.etalon.experiments import AT, EARLY, Check, Improvement, LongFlowRun, Rings
from leeward_reproduce.rows import Reason, Row, change_row, measured_row, missing_row, reference_row

Series = Sequence[Sequence[LongFlowRun]]
"""For each seed, a run of each point."""

_LAB = "kernels in the lab"
IDLE = Reason(
    "with queues of 4 packets windows are one or two packets, so what stands in the queue is how exactly "
    "hosts answer; theirs were containers on shared machines, as far as we know"
)
USED = Reason(
    "windows when a day begins are larger here, and in kernels in the lab too (within 8 points of the "
    "simulator); of the rules for losses, RFC 6675 alone is nearest to the paper (62 % with 32 packets; RFC "
    "8985 75 %, and Linux 4.4's, which the testbed ran, 74 %)",
    f"{_LAB}, and an ablation of the rules for losses",
)
MIX = Reason(
    "the median over both paths leaps where half of the packets take circuits, so that some percent of "
    "utilization are much of the median"
)
ENDS = Reason(
    "it is as steep as the median over both paths, which leaps where half of the packets take circuits; at "
    "0.75 round trips, kernels in the lab are as far from the paper, so the reason is not in TCP",
    f"{_LAB}, which exclude TCP",
)
CIRCUIT = Reason(
    "it is what stands in the queue when a day begins, which depends on the windows at that moment; half "
    "of the paper's bars are read from coordinates"
)
TOLD = Reason(
    "it is what stands in the queue when a day begins, which depends on the windows at that moment; kernels "
    "in the lab have the simulator's tails",
    _LAB,
)
RETCP = Reason(
    "windows double when hosts hear of a circuit, and then depend on what they were before; kernels in the "
    "lab agree with the simulator",
    _LAB,
)
RING = Reason(
    "big flows take what their hosts' links take under ADUs (50 MB at 10 Gb/s are 40 ms), so the ratios "
    "are those of demand of queues, for which the paper has no times in one ring"
)
SMALL = Reason(
    "the slowest are flows whose acknowledgements share a queue with a ring's big flows: under ADU+Resize "
    "half of these wait for a timeout, and 99 % of all others are over in 14 ms. Kernels in the lab have "
    "this tail too",
    _LAB,
)
QUIET = (
    "hosts' time to write, read and be scheduled is not modelled: under Packet80 nothing is lost here and no "
    "timer expires, and yet the paper's tail is three times ours. Under Packet10, the tail of kernels in the "
    "lab is between the two"
)
"""Reason of small flows under packet switches; figure `hosts` tests it, with a time of hosts."""
SHARE = Reason(
    "queues of 16 packets leave more windows at the beginning of a day here, as in figure 6, so circuits "
    "carry more and big flows are over sooner; where queues grow, what is sent agrees"
)


def row(
    figure: str,
    quantity: str,
    unit: str,
    values: Sequence[float | None],
    paper_value: float | None,
    why: Reason | None,
) -> Row:
    """A row of the values that are there, with the reason of a difference from the paper."""
    present = [value for value in values if value is not None]
    return measured_row(figure, quantity, unit, present, paper_value, reason=why)


def checks(outcomes: Sequence[Check]) -> list[Row]:
    """Table 1."""
    quantities: tuple[tuple[str, str, float, Callable[[Check], float | None]], ...] = (
        ("day of a circuit", "us", network.DAY_US, lambda one: one.day),
        ("week", "us", network.WEEK_US, lambda one: one.week),
        ("rate of the packet path", "Gb/s", network.PACKET_GBPS, lambda one: one.packet),
        ("rate of a circuit", "Gb/s", network.CIRCUIT_GBPS, lambda one: one.circuit),
    )
    return [
        row("1", name, unit, [get(one) for one in outcomes], paper_value, None)
        for name, unit, paper_value, get in quantities
    ]


def sequences(figure: str, points: Sequence[int], what: str) -> Callable[[Series], list[Row]]:
    """Figures 5a and 5b, which have no numbers: the bytes of a flow that arrive in three weeks."""

    def rows(outcomes: Series) -> list[Row]:
        best = experiments.optimum()[-1]
        return [
            measured_row(
                figure,
                f"share of the optimum in three weeks: {what.format(point)}",
                "%",
                [100 * one[at].sequence[-1] / best for one in outcomes if one[at].sequence],
            )
            for at, point in enumerate(points)
        ]

    return rows


def utilization(
    figure: str, points: Sequence[int], what: str, papers: Sequence[float]
) -> Callable[[Series], list[Row]]:
    """Utilization of circuits by the points of a figure."""

    def rows(outcomes: Series) -> list[Row]:
        return [
            row(figure, what.format(point), "%", [one[at].used for one in outcomes], papers[at], USED)
            for at, point in enumerate(points)
        ]

    return rows


def medians(
    figure: str, points: Sequence[int], what: str, papers: Mapping[str, Sequence[float]]
) -> Callable[[Series], list[Row]]:
    """Median latencies by path."""
    why = {"all": MIX, "circuit": CIRCUIT, "packet": IDLE}

    def rows(outcomes: Series) -> list[Row]:
        return [
            row(
                figure,
                f"median latency, {path}: {what.format(point)}",
                "us",
                [one[at].medians[path] for one in outcomes],
                papers[path][at],
                why[path],
            )
            for path in papers
            for at, point in enumerate(points)
        ]

    return rows


def retcp(outcomes: Sequence[dict[str, Sequence[LongFlowRun]]]) -> list[Row]:
    """Figure 8: reTCP, notified early as in the paper's code, and at a circuit's start as in its text."""
    rows = []
    names = ["queues of 16", *(f"{tau} us early" for tau in paper.TAU[1:])]
    papers: tuple[tuple[str, str, Sequence[float], Callable[[LongFlowRun], float | None]], ...] = (
        ("utilization", "%", (paper.RETCP_STATIC[0], *paper.RETCP_USED), lambda one: one.used),
        (
            "median latency",
            "us",
            (paper.RETCP_STATIC[1], *paper.RETCP_MEDIANS),
            lambda one: one.medians["all"],
        ),
    )
    for ece in (EARLY, AT):
        for quantity, unit, values, get in papers:
            for at, name in enumerate(names):
                ours = [value for one in outcomes if (value := get(one[ece][at])) is not None]
                label = f"{quantity}, reTCP {ece}: {name}"
                if ece == EARLY:
                    rows.append(row("8", label, unit, ours, values[at], RETCP))
                else:
                    why = "the paper's text; its numbers are of its code, which tells hosts tau before"
                    rows.append(reference_row("8", label, unit, ours, values[at], why))
    return rows


def tails(outcomes: Sequence[dict[str, Sequence[LongFlowRun]]]) -> list[Row]:
    """Figure 9: 99th percentiles."""
    kinds = (
        ("static", [f"queues of {voq}" for voq in paper.VOQ], paper.STATIC_TAILS),
        ("resized", [f"{tau} us early" for tau in paper.TAU[1:]], paper.RESIZED_TAILS),
        (
            "told",
            ["queues of 16", *(f"{tau} us early" for tau in paper.TAU[1:])],
            (paper.RETCP_STATIC[2], *paper.RETCP_TAILS),
        ),
    )
    words = {"static": "Reno", "resized": "Reno, resized", "told": f"reTCP {EARLY}"}
    return [
        row(
            "9",
            f"p99 latency, {words[kind]}: {name}",
            "us",
            [one[kind][at].tail for one in outcomes],
            papers[at],
            TOLD if kind == "told" else CIRCUIT,
        )
        for kind, names, papers in kinds
        for at, name in enumerate(names)
    ]


def improvement(outcomes: Sequence[Sequence[Improvement]]) -> list[Row]:
    """Figure 10."""
    rows = []
    for at, trips in enumerate(paper.TRIPS):
        values = [percent for one in outcomes if (percent := one[at].percent) is not None]
        label = f"lower median at equal utilization: {trips:g} round trips a day"
        if not values:
            why = "no static queue of 4 to 128 packets uses circuits as much as the resized one"
            rows.append(missing_row("10", label, "%", paper.IMPROVED[at], why))
        else:
            rows.append(change_row("10", label, values, paper.IMPROVED[at], reason=ENDS))
    return rows


def ring(outcomes: Sequence[dict[str, Rings]]) -> list[Row]:
    """Figures 12 to 15: one ring, demand of ADUs against demand of queues."""
    quantities = (
        ("big flows, median", "big", 50, paper.RING_GAINS[0]),
        ("big flows, p99", "big", 99, paper.RING_GAINS[1]),
        ("small flows, p99", "small", 99, paper.RING_GAINS[2]),
    )
    rows = [
        row(
            "12",
            f"ADU faster than VOQ: {name}",
            "x",
            [
                _ratio(
                    _percentile(getattr(one["ToR VOQ"], kind), share),
                    _percentile(getattr(one["ADU"], kind), share),
                )
                for one in outcomes
            ],
            paper_value,
            RING,
        )
        for name, kind, share, paper_value in quantities
    ]
    for system in outcomes[0]:
        for kind in ("small", "big"):
            values = [_percentile(getattr(one[system], f"{kind}_gbps"), 50) for one in outcomes]
            label = f"throughput of {kind} flows, median: {system}"
            rows.append(row("12", label, "Gb/s", values, None, None))
    return rows


def _percentile(values: Any, share: float) -> float | None:
    """A percentile; None if no flow ended in time."""
    return float(numpy.percentile(values, share)) if len(values) else None


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def _why(name: str, kind: str, system: str) -> Reason:
    """Reason of a difference in a quantity of completion."""
    if kind == "big":
        return SHARE
    if not system.startswith("Packet"):
        return SMALL
    return Reason(QUIET, variant="" if hosts.is_fitted(name, system) else hosts.variant(name, system))


def two_rings(outcomes: Sequence[dict[str, Rings]]) -> list[Row]:
    """Table 2 and figure 16."""
    quantities = (
        ("completion of small flows, median", "small", 50, paper.MEDIAN_SMALL),
        ("completion of small flows, p99", "small", 99, paper.TAIL_SMALL),
        ("completion of big flows, median", "big", 50, paper.MEDIAN_BIG),
        ("completion of big flows, p99", "big", 99, paper.TAIL_BIG),
    )
    rows = [
        row(
            "16",
            f"table 2, {name}: {system}",
            "ms",
            [_percentile(getattr(one[system], kind), share) for one in outcomes],
            papers[at],
            _why(name, kind, system),
        )
        for name, kind, share, papers in quantities
        for at, system in enumerate(paper.SYSTEMS)
    ]
    sent: tuple[tuple[str, str, Sequence[float]], ...] = (
        ("packets", "packet_gib", paper.BY_PACKETS),
        ("circuits", "circuit_gib", paper.BY_CIRCUITS),
    )
    for name, field, papers in sent:
        rows += [
            row(
                "16",
                f"sent by {name}: {system}",
                "GiB",
                [getattr(one[system], field) for one in outcomes],
                papers[at],
                SHARE,
            )
            for at, system in enumerate(paper.SYSTEMS)
        ]
    return rows
