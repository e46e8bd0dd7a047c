"""Rows and pictures of section 6: figures 19 to 22, and `leeward` beside reHDFS."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy

from leeward_reproduce.etalon import paper
from leeward_reproduce.etalon.comparison import row
from leeward_reproduce.etalon.files import BESIDE_SEEDS, KINDS, LONG_SEEDS, WriteRun
from leeward_reproduce.rows import Reason, Row, change_row, measured_row, reference_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Systems = Sequence[dict[str, WriteRun]]
Beside = Sequence[dict[str, dict[str, WriteRun]]]

_COLOURS = {"HDFS": "#1f5fa8", "reHDFS": "#c25a00", "leeward": "#2f7d32"}
_EVEN = Reason(
    "eight Reno flows share a circuit and a queue unevenly here: a block takes 107 ms with even shares, which"
    " the paper's nearly are; as far as we know, since shorter timeouts, a lasting ring and smaller sockets"
    " each changed little"
)
_TAIL = Reason("the slowest of 192 writes; they differ much from seed to seed, and the paper's are of a run")
_RATE = Reason(
    "DFSIO's rate of a file times 64 files, halved, as in the paper's scripts. At 565 a file takes 0.18 s, in"
    " which eight racks' links cannot carry 25 GiB (0.30 s): the paper's mappers did not all write at once,"
    " as ours do from the start. Kernels in the lab are as slow",
    "the capacity of eight racks' links, and kernels in the lab",
)
_ALL = Reason("writes take longer too; all mappers begin at once here, and those of MapReduce do not")
_ELSE = Reason(
    "the paper's switch counts what Hadoop sends besides files, 2 to 5 GiB; here are files and answers"
)
_JOB = "of MapReduce's whole job, with what it takes to begin and to end; ours is of writes alone"


def _share(one: WriteRun, percent: float) -> float:
    return float(numpy.percentile(one.writes, percent))


def files(outcomes: Systems) -> list[Row]:
    """Figures 19 to 22."""
    gains: tuple[tuple[str, float, Callable[[WriteRun], float]], ...] = (
        ("median", paper.FILES_GAINS[0], lambda one: _share(one, 50)),
        ("p99", paper.FILES_GAINS[1], lambda one: _share(one, 99)),
        ("longest", paper.FILES_GAINS[2], lambda one: _share(one, 100)),
    )
    rows = [
        row(
            "19",
            f"writes faster under reHDFS: {name}",
            "x",
            [get(one["HDFS"]) / get(one["reHDFS"]) for one in outcomes],
            paper_value,
            _EVEN,
        )
        for name, paper_value, get in gains
    ]
    shorter = [100 * (1 - one["reHDFS"].job / one["HDFS"].job) for one in outcomes]
    rows.append(reference_row("19", "job shorter under reHDFS", "%", shorter, paper.FILES_JOB, _JOB))
    quantities: tuple[tuple[str, str, Sequence[float], Reason, Callable[[WriteRun], float]], ...] = (
        ("figure 20, p99 of writes", "ms", paper.FILES_TAILS, _EVEN, lambda one: _share(one, 99)),
        ("figure 21, aggregate throughput", "Gb/s", paper.FILES_GBPS, _RATE, lambda one: one.gbps),
        ("figure 22, sent by packets", "GiB", paper.FILES_PACKETS, _ELSE, lambda one: one.packet_gib),
        ("figure 22, sent by circuits", "GiB", paper.FILES_CIRCUITS, _ELSE, lambda one: one.circuit_gib),
    )
    for name, unit, papers, why, value in quantities:
        for system, paper_value in zip(paper.FILES_SYSTEMS, papers, strict=True):
            reason = {"ms": _TAIL, "Gb/s": _ALL}.get(unit, why) if system.startswith("HDFS") else why
            ours = [value(one[system]) for one in outcomes]
            rows.append(row("19", f"{name}: {system}", unit, ours, paper_value, reason))
    return rows


def leeward_rows(outcomes: Beside) -> list[Row]:
    """`leeward` with circuits beside reHDFS, and the number of racks with copies."""
    rows = []
    words = {
        "job": ("the paper's job", f"seeds 1 to {BESIDE_SEEDS}; within a turn, so that it is reHDFS"),
        "turn": (
            "a turn 300 ms into the job",
            f"seeds 1 to {BESIDE_SEEDS}, beside reHDFS without a turn; for a while racks send to two others",
        ),
        "several": (
            "files of 4 GiB, turns of 2 s",
            f"seed {LONG_SEEDS} alone; more than one block in a hundred is under way at a turn",
        ),
    }
    quantities: tuple[tuple[str, str, Callable[[WriteRun], float]], ...] = (
        ("p99 of writes", "ms", lambda one: _share(one, 99)),
        ("aggregate throughput", "Gb/s", lambda one: one.gbps),
        ("other racks with copies of a rack", "", lambda one: one.racks),
        ("of a rack's copies in the rack with most", "%", lambda one: one.worst),
    )
    for part, (where, note) in words.items():
        runs = [one[part] for one in outcomes if one[part]]
        for name, unit, get in quantities:
            for system in dict.fromkeys(system for one in runs for system in one):
                values = [get(one[system]) for one in runs]
                rows.append(measured_row("leeward", f"{name}, {where}: {system}", unit, values, None, note))
        for kind in KINDS:
            for name, _, get in quantities[:2]:
                base = [one[part if part == "several" else "job"] for one in outcomes if one[part]]
                ratios = [
                    100 * (get(one["leeward" + kind]) / get(reference["reHDFS" + kind]) - 1)
                    for one, reference in zip(runs, base, strict=True)
                ]
                label = f"{name} against reHDFS, {where}: leeward{kind}"
                rows.append(change_row("leeward", label, ratios, None, note))
    return rows


def picture(outcomes: Systems) -> "Figure":
    """Figures 19 to 22: writes, their tails, throughput and bytes by switch."""
    from matplotlib import pyplot

    figure, (writes, tails, rates, sent) = pyplot.subplots(1, 4, figsize=(12.0, 3.8), layout="constrained")
    for name in ("HDFS", "reHDFS"):
        values = numpy.sort(numpy.concatenate([one[name].writes for one in outcomes]))
        share = 100 * numpy.arange(1, len(values) + 1) / len(values)
        writes.plot(values, share, color=_COLOURS[name], label=name)
    writes.set_xlabel("write of a block, ms")
    writes.set_ylabel("writes with at most this, %")
    writes.legend(fontsize=8)
    at = numpy.arange(len(paper.FILES_SYSTEMS))
    colours = [_COLOURS[system.split("+")[0]] for system in paper.FILES_SYSTEMS]

    def mean(get: Callable[[WriteRun], float]) -> list[float]:
        return [float(numpy.mean([get(one[system]) for one in outcomes])) for system in paper.FILES_SYSTEMS]

    bars = (
        (tails, mean(lambda one: _share(one, 99)), paper.FILES_TAILS, "p99 of writes, ms"),
        (rates, mean(lambda one: one.gbps), paper.FILES_GBPS, "aggregate throughput, Gb/s"),
    )
    for axes, ours, papers, label in bars:
        axes.bar(at, ours, 0.6, color=colours)
        axes.plot(at, papers, "o", color="#111111", markerfacecolor="none", label="paper")
        axes.set_ylabel(label)
        axes.legend(fontsize=8)
    packet, circuit = mean(lambda one: one.packet_gib), mean(lambda one: one.circuit_gib)
    sent.bar(at, packet, 0.6, color="#1f5fa8", label="packets")
    sent.bar(at, circuit, 0.6, bottom=packet, color="#c25a00", label="circuits")
    both = numpy.add(paper.FILES_PACKETS, paper.FILES_CIRCUITS)
    sent.plot(at, paper.FILES_PACKETS, "o", color="#111111", markerfacecolor="none", label="packets, paper")
    sent.plot(at, both, "s", color="#111111", markerfacecolor="none", label="both, paper")
    sent.set_ylabel("sent, GiB")
    sent.set_ylim(top=45)
    sent.legend(fontsize=8)
    for axes in (tails, rates, sent):
        axes.set_xticks(at, paper.FILES_SYSTEMS, rotation=45, ha="right")
    return figure


def picture_beside(outcomes: Beside) -> "Figure":
    """Writes of reHDFS and `leeward`, and places of copies, over several turns."""
    from matplotlib import pyplot

    figure, (writes, racks) = pyplot.subplots(1, 2, figsize=(8.6, 3.8), layout="constrained")
    runs = [one["several"] for one in outcomes if one["several"]]
    for name in ("reHDFS", "leeward"):
        for kind, style in zip(KINDS, ("-", "--", ":"), strict=True):
            values = numpy.sort(numpy.concatenate([one[name + kind].writes for one in runs]))
            share = 100 * numpy.arange(1, len(values) + 1) / len(values)
            writes.plot(values, share, style, color=_COLOURS[name], label=name + kind)
    writes.set_xscale("log")
    writes.set_xlabel("write of a block, ms")
    writes.set_ylabel("writes with at most this, %")
    writes.legend(fontsize=8)
    names = ("reHDFS", "leeward")
    worst = [float(numpy.mean([one[name].worst for one in runs])) for name in names]
    racks.bar(names, worst, 0.5, color=[_COLOURS[name] for name in names])
    racks.set_ylabel("of a rack's copies in one other rack, %")
    return figure
