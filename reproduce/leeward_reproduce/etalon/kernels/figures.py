"""Rows of Etalon's figures on real kernels: the paper, the simulator, the lab, and what is expected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy

from leeward import lab
from leeward.lab.checks import network
from leeward.lab.checks.values import Range, about, at_least, at_most
from leeward_reproduce.etalon import comparison, experiments, files, paper
from leeward_reproduce.etalon.experiments import EARLY, LongFlowRun, Rings
from leeward_reproduce.etalon.files import WriteRun
from leeward_reproduce.etalon.kernels.bench import Bench, Both
from leeward_reproduce.etalon.kernels.expected import Values, agreement, near, row
from leeward_reproduce.rows import Reason, Row

SEED = 1
PAIR = 60
"""Dilation of scenarios with one pair of racks that sends."""
ALL = 160
"""Dilation of scenarios in which all racks send."""
SLOW = 320
"""Dilation of those that fill circuits of all racks at times: two processors do not keep up under `ALL`."""
PACKETS = 80
"""Dilation of scenarios in which all racks send, without circuits."""
TRIPS = (0.75, 3.0, 9.0, 18.0)
"""Round trips within a day, of figure 10, that the lab measures."""
RING_SYSTEMS = ("ToR VOQ", "VOQ+Resize", "ADU+Resize", "ADU+reTCP", "Packet10")
"""Systems of table 2 that the lab measures."""
_SHORT = Reason(
    "runs are shorter than the paper's, and flows that last longer do not count; the simulator has such"
    " values in runs as short",
    "the simulator in runs of both lengths",
)
T = TypeVar("T")
Long = Both[LongFlowRun]


def _long(
    bench: Bench,
    horizon: str,
    voq: int = 16,
    tau: int | None = None,
    ece: str | None = None,
    delay_us: float = 30.0,
) -> Long:
    scenario = experiments.long_scenario(SEED, horizon, voq, tau, ece, delay_us)
    return bench.both(scenario, PAIR, experiments.measure_long)


def _values(both: Both[T], get: Callable[[T], float | None]) -> Values:
    return Values(get(both.simulator), None if both.lab is None else get(both.lab))


def checks(bench: Bench, horizon: str) -> list[Row]:
    """Table 1, and rates and latencies that programs read in virtual time."""
    days = bench.both(network.days_scenario(horizon, SEED), PAIR, experiments.measure_days)
    path = bench.both(network.path_scenario(horizon, SEED), PAIR, network.path_gbps)
    circuit = bench.both(network.circuit_scenario(horizon, SEED), PAIR, network.circuit_gbps)
    timings = [both.timing for both in (days, path, circuit) if both.timing]
    measured = network.table_1(PAIR, days.timing or None, path.lab, circuit.lab, timings)
    day, week = days.simulator
    simulated = (day, 0.0, week, 0.0, path.simulator, circuit.simulator, 0.0)
    notes = (*[days.note] * 4, path.note, circuit.note, "")
    rows = [
        row(
            "1",
            check.quantity,
            check.unit,
            Values(value, check.measured),
            paper=check.expected,
            expected=check.accepted,
            note=note,
        )
        for check, value, note in zip(measured, simulated, notes, strict=True)
    ]
    return [*rows, *map(_program, lab.check_programs())]


def _program(check: lab.Check) -> Row:
    """A row of a program in virtual time, whose value the paper does not have."""
    within = replace(check.accepted, text=f"{check.expected:.5g} {check.unit} {check.accepted.text}")
    values = Values(None, check.measured)
    note = check.note or f"dilation {check.dilation}"
    return row("1", check.quantity, check.unit, values, expected=within, note=note)


def _used(one: LongFlowRun) -> float:
    return one.used


def _median(one: LongFlowRun) -> float | None:
    return one.medians["all"]


def _tail(one: LongFlowRun) -> float:
    return one.tail


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _compare(one: Both[T], other: Both[T], get: Callable[[T], float | None]) -> Values:
    """A quantity of one run as a multiple of that of another."""
    first, second = _values(one, get), _values(other, get)
    return Values(_ratio(first.simulator, second.simulator), _ratio(first.lab, second.lab))


def _static(bench: Bench, horizon: str) -> list[Long]:
    return [_long(bench, horizon, voq) for voq in paper.VOQ]


def _grown(bench: Bench, horizon: str) -> list[Long]:
    return [_long(bench, horizon, 16, tau) for tau in paper.TAU]


def _curve(
    figure: str,
    quantity: str,
    unit: str,
    names: Sequence[str],
    runs: Sequence[Long],
    get: Callable[[LongFlowRun], float | None],
    papers: Sequence[float],
    expected: Sequence[Range | None],
    reason: Reason,
    points: bool = False,
) -> list[Row]:
    """Rows of the points of a curve, and how far the lab is from the simulator.

    `reason` is that of points that are far from the paper.
    """
    rows = [
        row(
            figure,
            f"{quantity}: {name}",
            unit,
            _values(one, get),
            paper=value,
            expected=within,
            note=one.note,
            reason=reason,
        )
        for name, one, value, within in zip(names, runs, papers, expected, strict=True)
    ]
    return [*rows, _agreement(rows, quantity, points=points)]


def _agreement(
    rows: Sequence[Row], quantity: str, points: bool = False, measured: str = "lab", note: str = ""
) -> Row:
    """A row with the largest difference between lab and simulator in some rows of a figure.

    The difference is in percentage points with `points`, and otherwise a share of the simulator's value.
    """
    pairs = [(one.simulator, one.ours) for one in rows]
    text = f"{quantity}: largest difference of {measured} and simulator"
    return agreement(rows[0].figure, text, "points" if points else "%", pairs, points=points, note=note)


_VOQ = [f"queues of {voq}" for voq in paper.VOQ]
_TAU = [f"queues grow {tau} us early" for tau in paper.TAU]


def static_used(bench: Bench, horizon: str) -> list[Row]:
    """Figure 6a."""
    runs = _static(bench, horizon)
    expected = [
        near(39, 10) if voq == 16 else at_least(88, "88 %") if voq >= 64 else None for voq in paper.VOQ
    ]
    papers, why = paper.STATIC_USED, comparison.USED
    rows = _curve("6a", "utilization", "%", _VOQ, runs, _used, papers, expected, why, points=True)
    for_all = [value for value in (one.ours for one in rows[:-1]) if value is not None]
    least = min(numpy.diff(for_all), default=None)
    text = "utilization: least step from one queue to the next larger"
    rows.append(row("6a", text, "points", Values(None, least), expected=at_least(0, "0")))
    return rows


def grown_used(bench: Bench, horizon: str) -> list[Row]:
    """Figure 6b."""
    runs = _grown(bench, horizon)
    none = [None] * len(paper.TAU)
    papers, why = paper.RESIZED_USED, comparison.USED
    rows = _curve("6b", "utilization", "%", _TAU, runs, _used, papers, none, why, points=True)
    early = runs[paper.TAU.index(1000)]
    values = _compare(early, _long(bench, horizon, 16), _used)
    text = "utilization: queues that grow 1000 us early against queues of 16"
    rows.append(row("6b", text, "x", values, paper=88 / 39, expected=at_least(1.8, "1.8x")))
    return rows


def medians(bench: Bench, horizon: str) -> list[Row]:
    """Figures 7a and 7b."""
    static, grown = _static(bench, horizon), _grown(bench, horizon)
    none, why = [None] * len(paper.TAU), comparison.MIX
    papers = paper.STATIC_MEDIANS["all"], paper.RESIZED_MEDIANS["all"]
    rows = [
        *_curve("7", "median latency", "us", _VOQ, static, _median, papers[0], none[:6], why),
        *_curve("7", "median latency", "us", _TAU, grown, _median, papers[1], none, why),
    ]
    early = grown[paper.TAU.index(1000)]
    for voq, most, text in ((16, 1.25, "1.25x"), (64, 0.75, "0.75x")):
        at = paper.VOQ.index(voq)
        quantity = f"median latency: queues that grow 1000 us early against queues of {voq}"
        of_paper = paper.RESIZED_MEDIANS["all"][5] / paper.STATIC_MEDIANS["all"][at]
        values = _compare(early, static[at], _median)
        rows.append(row("7", quantity, "x", values, paper=of_paper, expected=at_most(most, text)))
    return rows


def _told(bench: Bench, horizon: str) -> list[Long]:
    return [_long(bench, horizon, 16, tau, EARLY) for tau in paper.TAU[1:]]


def retcp(bench: Bench, horizon: str) -> list[Row]:
    """Figure 8."""
    alone = _long(bench, horizon, 16, None, EARLY)
    told, grown = _told(bench, horizon), _grown(bench, horizon)
    short = _long(bench, horizon, 16)
    names, none, why = _TAU[1:], [None] * len(told), comparison.RETCP
    rows = [
        row(
            "8",
            "utilization, reTCP: queues of 16",
            "%",
            _values(alone, _used),
            paper=paper.RETCP_STATIC[0],
            note=alone.note,
            reason=why,
        ),
        *_curve("8", "utilization, reTCP", "%", names, told, _used, paper.RETCP_USED, none, why, points=True),
        *_curve("8", "median latency, reTCP", "us", names, told, _median, paper.RETCP_MEDIANS, none, why),
    ]
    values = _compare(alone, short, _used)
    text = "utilization: reTCP alone against Reno, queues of 16"
    rows.append(row("8", text, "x", values, paper=38.1 / 39, expected=at_most(1.1, "1.1x")))
    for tau in (200, 400, 600, 800):
        one, other = told[paper.TAU.index(tau) - 1], grown[paper.TAU.index(tau)]
        of_paper = paper.RETCP_USED[paper.TAU.index(tau) - 1] / paper.RESIZED_USED[paper.TAU.index(tau)]
        text = f"utilization: reTCP against Reno, {tau} us early"
        values = _compare(one, other, _used)
        rows.append(row("8", text, "x", values, paper=of_paper, expected=at_least(1, "1x")))
    return rows


def tails(bench: Bench, horizon: str) -> list[Row]:
    """Figure 9."""
    told, largest = _told(bench, horizon), _long(bench, horizon, paper.VOQ[-1])
    none, why = [None] * len(told), comparison.TOLD
    rows = _curve("9", "p99 latency, reTCP", "us", _TAU[1:], told, _tail, paper.RETCP_TAILS, none, why)
    values, expected = _values(largest, _tail), about(944, 10)
    return [*rows, row("9", "p99 latency: queues of 128", "us", values, paper=944.0, expected=expected)]


def improvement(bench: Bench, horizon: str) -> list[Row]:
    """Figure 10, at some round trips within a day."""
    rows = []
    for trips in TRIPS:
        delay = 180 / (2 * trips)
        static = [_long(bench, horizon, voq, delay_us=delay) for voq in paper.VOQ]
        grown = _long(bench, horizon, 16, 1000, delay_us=delay)
        measured = [one.lab for one in static]
        simulated = experiments.improvement([one.simulator for one in static], grown.simulator)
        present = [one for one in measured if one is not None]
        complete = grown.lab is not None and len(present) == len(static)
        ours = experiments.improvement(present, grown.lab) if complete and grown.lab else None
        expected = at_most(15, "15 %") if trips < 1 else at_least(25, "25 %") if trips <= 3 else None
        rows.append(
            row(
                "10",
                f"lower median at equal utilization: {trips:g} round trips a day",
                "%",
                Values(simulated, ours),
                paper=paper.IMPROVED[paper.TRIPS.index(trips)],
                expected=expected,
                note=grown.note,
                reason=comparison.ENDS,
                is_change=True,
            )
        )
    return [*rows, _agreement(rows, "lower median at equal utilization", points=True)]


def _rings(bench: Bench, horizon: str, count: int, system: str) -> Both[Rings]:
    scenario = experiments.rings_scenario(SEED, horizon, count, system)
    is_slow = system.startswith("ADU+") or (count == 1 and system == "ToR VOQ")
    dilation = PACKETS if system.startswith("Packet") else SLOW if is_slow else ALL
    return bench.both(scenario, dilation, experiments.measure_rings)


def _percentile(kind: str, percent: float) -> Callable[[Rings], float | None]:
    def get(one: Rings) -> float | None:
        times = getattr(one, kind)
        return float(numpy.percentile(times, percent)) if len(times) else None

    return get


def ring(bench: Bench, horizon: str) -> list[Row]:
    """Figures 12 and 13: one ring."""
    runs = {system: _rings(bench, horizon, 1, system) for system in ("ToR VOQ", "ADU")}
    voq, adu = runs.values()
    rows = []
    for name, kind, percent, value, least in (
        ("big flows, median", "big", 50, paper.RING_GAINS[0], 5.0),
        ("big flows, p99", "big", 99, paper.RING_GAINS[1], 6.0),
        ("small flows, p99", "small", 99, paper.RING_GAINS[2], 1.0),
    ):
        values = _compare(voq, adu, _percentile(kind, percent))
        text = f"ADU faster than VOQ: {name}"
        expected = at_least(least, f"{least:g}x")
        note = _notes(runs, "ToR VOQ", "ADU")
        rows.append(row("12", text, "x", values, paper=value, expected=expected, note=note, reason=_SHORT))
    return [*rows, _agreement(rows, "ADU faster than VOQ")]


def two_rings(bench: Bench, horizon: str) -> list[Row]:
    """Table 2 and figure 16: two rings."""
    runs = {system: _rings(bench, horizon, 2, system) for system in RING_SYSTEMS}
    rows = []
    quantities = (
        ("big flows, median", "ms", _percentile("big", 50), paper.MEDIAN_BIG),
        ("big flows, p99", "ms", _percentile("big", 99), paper.TAIL_BIG),
        ("small flows, p99", "ms", _percentile("small", 99), paper.TAIL_SMALL),
        ("sent by circuits", "GiB", _circuit_gib, paper.BY_CIRCUITS),
    )
    for name, unit, get, papers in quantities:
        for system, both in runs.items():
            value = papers[paper.SYSTEMS.index(system)]
            text, of_run = f"{name}: {system}", _values(both, get)
            rows.append(row("16", text, unit, of_run, paper=value, note=both.note, reason=_SHORT))
        rows.append(_agreement(rows[-len(runs) :], name))
    median = _percentile("big", 50)
    values = _compare(runs["ADU+Resize"], runs["ToR VOQ"], median)
    text = "big flows, median: ADU+Resize against ToR VOQ"
    expected = at_most(0.2, "0.2x")
    rows.append(row("16", text, "x", values, paper=110.61 / 1162.04, expected=expected, reason=_SHORT))
    for one, other in (("VOQ+Resize", "ToR VOQ"), ("ADU+Resize", "VOQ+Resize")):
        values = _compare(runs[one], runs[other], _circuit_gib)
        of_paper = paper.BY_CIRCUITS[paper.SYSTEMS.index(one)] / paper.BY_CIRCUITS[paper.SYSTEMS.index(other)]
        text = f"sent by circuits: {one} against {other}"
        rows.append(row("16", text, "x", values, paper=of_paper, expected=at_least(1, "1x"), reason=_SHORT))
    return rows


def _notes(runs: Mapping[str, Both[T]], *systems: str) -> str:
    return "; ".join(f"{system}: {runs[system].note}" for system in systems)


def _write(percent: float) -> Callable[[WriteRun], float]:
    return lambda one: float(numpy.percentile(one.writes, percent))


def _circuit_gib(run: Rings) -> float:
    return run.circuit_gib


def writes(bench: Bench, size: str) -> list[Row]:
    """Figures 19 to 22, with a pipelined writer of chains instead of Hadoop."""

    def run(name: str, kind: str) -> Both[WriteRun]:
        scenario = files.writes_scenario(SEED, experiments.HORIZON, files.POLICIES[name], kind, size)
        return bench.both(scenario, SLOW if name == "reHDFS" else ALL, files.measure_writes)

    return write_rows(
        {name + kind: run(name, kind) for name in ("HDFS", "reHDFS") for kind in ("", "+Resize")}
    )


TAILS = "p99 of writes"
RATES = "aggregate throughput"
SENT = "sent by packets: reHDFS against HDFS"
_LARGE = "the simulator with files of 400 MiB"
_SIZE = Reason(
    "files of 100 MiB; with the paper's 400 MiB the simulator's tails are 1.7 to 3.1 times as long", _LARGE
)
_SIZES = {
    "median": Reason("files of 100 MiB; with the paper's 400 MiB the simulator has 4.77x", _LARGE),
    "p99": Reason(
        "files of 100 MiB; with 400 MiB the simulator has 4.80x; the rest as there: flows share a circuit"
        " unevenly",
        _LARGE,
    ),
}
_AT_ONCE = Reason(
    "DFSIO's rate of a file times 64 files: at the paper's 565 Gb/s a file of 400 MiB takes 0.18 s, in which"
    " the links of eight racks cannot carry 25 GiB (0.30 s); its mappers did not all write at once; these do",
    "the capacity of eight racks' links",
)


def write_rows(
    runs: Mapping[str, Both[WriteRun]], measured: str = "lab", remarks: Mapping[str, str] | None = None
) -> list[Row]:
    """Rows of figures 19 to 22, from runs by the names of `paper.FILES_SYSTEMS`.

    Args:
        runs: Runs, among them those of `HDFS` and `reHDFS`.
        measured: Name of what was measured beside the simulator.
        remarks: Remarks on what was measured there, by the quantity: `TAILS`, `RATES` or `SENT`.
    """
    remarks = remarks or {}
    rows = []
    for name, percent, value, least in (
        ("median", 50, paper.FILES_GAINS[0], 3.0),
        ("p99", 99, paper.FILES_GAINS[1], 4.0),
    ):
        values = _compare(runs["HDFS"], runs["reHDFS"], _write(percent))
        text = f"writes faster under reHDFS: {name}"
        expected = at_least(least, f"{least:g}x")
        note = _notes(runs, "HDFS", "reHDFS")
        rows.append(
            row(
                "19",
                text,
                "x",
                values,
                paper=value,
                expected=expected,
                note=note,
                reason=_SIZES[name],
            )
        )
    values = _compare(runs["reHDFS"], runs["HDFS"], lambda one: one.packet_gib)
    note, expected = remarks.get(SENT, ""), at_most(0.1, "0.1x")
    rows.append(row("19", SENT, "x", values, paper=0.5 / 15.1, expected=expected, note=note))
    for quantity, unit, papers, get in (
        (TAILS, "ms", paper.FILES_TAILS, _write(99)),
        (RATES, "Gb/s", paper.FILES_GBPS, lambda one: one.gbps),
    ):
        for system, both in runs.items():
            value = float(papers[paper.FILES_SYSTEMS.index(system)])
            text = f"{quantity}: {system}"
            of_run = _values(both, get)
            reason = _reason(quantity, system)
            rows.append(row("19", text, unit, of_run, paper=value, note=both.note, reason=reason))
        remark = remarks.get(quantity, "")
        rows.append(_agreement(rows[-len(runs) :], quantity, measured=measured, note=remark))
    return rows


def _reason(quantity: str, system: str) -> Reason | None:
    """Reason of a difference from the paper."""
    if quantity == TAILS:
        return _SIZE
    return _AT_ONCE if system.startswith("reHDFS") else None
