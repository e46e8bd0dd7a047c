"""Figure 4: the equivalent number of competing connections over time, in the packet simulator.

One connection, the probe, sends for ten seconds; others are on and off for exponential times of mean 5 s. In
(a) ten connections share a link of 1 Gb/s. In (b) hosts of 1 Gb/s share a link of 10 Gb/s, so the probe sees
other connections only if they fill the link (section 3.2, figure 3).

Each receiver is in a rack of its own: the simulator's switch has a queue for each pair of racks and serves
the queues in turn, so connections share the link evenly, as the method assumes. A sender gets as many bytes
as its even share of the link carries in its on-period; the simulator determines the end of the transfer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy

from leeward import packets
from leeward._arrays import Floats
from leeward.report.style import COLOURS, OTHER
from leeward_reproduce.choreo import paper
from leeward_reproduce.rows import Row, measured_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS = 10.0
WINDOW = 0.1
"""Length of a window of the probe, in seconds; the paper's is 10 ms."""
MEAN = 5.0
"""Mean of exponential times on and off, in seconds."""
NIC = 1e9


@dataclass(frozen=True)
class Kind:
    """A topology of figure 3."""

    title: str
    others: int
    link: float
    """Rate of the shared link, in bits per second."""


KINDS = {"a": Kind("a link of 1 Gb/s", 9, 1e9), "b": Kind("10 Gb/s above hosts of 1 Gb/s", 20, 10e9)}

_LEAST = {
    "b": (
        paper.LEAST_SEEN,
        "one host's 1 Gb/s of 10 leaves room for nine others by the paper's formula; its text says ten",
    )
}


@dataclass(frozen=True)
class ConnectionCounts:
    """Actual and estimated number of connections in each window."""

    actual: Floats
    estimated: Floats


def count_connections(seed: int) -> dict[str, ConnectionCounts]:
    """Runs both topologies under a seed."""
    return {
        name: _count(kind, numpy.random.default_rng([seed, 8, at]))
        for at, (name, kind) in enumerate(KINDS.items())
    }


def _count(kind: Kind, random: numpy.random.Generator) -> ConnectionCounts:
    on = [_periods(random) for _ in range(kind.others)]
    everything = [(k, start, end) for k, spans in enumerate(on) for start, end in spans]
    flows: list[dict[str, Any]] = [
        {"from": [0, 0], "to": [1, 0], "bytes": f"{int(2 * SECONDS * NIC / 8)}B"},
    ]
    for k, start, end in everything:
        size = max(int(_share(kind, everything, start, end)), 10_000)
        # Microseconds are precise enough.
        flows.append(
            {"from": [0, k + 1], "to": [k + 2, 0], "start": f"{round(1e6 * start)}us", "bytes": f"{size}B"}
        )
    run = packets.simulate(
        {
            "network": {
                "racks": kind.others + 2,
                "hosts_per_rack": kind.others + 1,
                "nic": f"{int(NIC)}bps",
                "packet_rate": f"{int(kind.link)}bps",
            },
            # Without this bound, a single connection would fill the queue of its own interface.
            "tcp": {"receive_window": 262_144},
            "workload": {"flows": flows},
            "horizon": f"{int(SECONDS)}s",
            "sample": {"every": f"{int(1e3 * WINDOW)}ms", "pairs": [[0, 1]]},
        }
    )
    result = packets.tables(run)
    delivered = numpy.array(result["samples"]["delivered_bytes"], dtype=float)
    times = numpy.array(result["samples"]["time_s"], dtype=float)
    seen = 8 * numpy.diff(delivered) / numpy.diff(times)
    began = numpy.array(result["flows"]["began_s"].to_pylist(), dtype=float)[1:]
    finished = numpy.array(
        [numpy.inf if one is None else one for one in result["flows"]["finished_s"].to_pylist()]
    )[1:]
    edges = list(pairwise(times))
    actual = [
        float((numpy.minimum(finished, end) - numpy.maximum(began, start)).clip(0).sum() / (end - start))
        for start, end in edges
    ]
    received = seen > 0
    return ConnectionCounts(numpy.array(actual)[received], numpy.maximum(kind.link / seen[received] - 1, 0))


def _periods(random: numpy.random.Generator) -> list[tuple[float, float]]:
    """Start and end of each on-period of a connection, in seconds."""
    now, is_on = 0.0, bool(random.random() < 0.5)
    result = []
    while now < SECONDS:
        end = now + float(random.exponential(MEAN))
        if is_on:
            result.append((now, min(end, SECONDS)))
        now, is_on = end, not is_on
    return result


def _share(kind: Kind, everything: Sequence[tuple[int, float, float]], start: float, end: float) -> float:
    """Bytes that an even share of the link carries between two times."""
    edges = sorted({start, end, *(edge for _, *span in everything for edge in span if start < edge < end)})
    total = 0.0
    for one, other in pairwise(edges):
        middle = (one + other) / 2
        active = 1 + sum(begins <= middle < ends for _, begins, ends in everything)
        total += (other - one) * min(NIC, kind.link / active) / 8
    return total


def rows(outcomes: Sequence[dict[str, ConnectionCounts]]) -> list[Row]:
    """Error of the estimate."""
    result = []
    for name, kind in KINDS.items():
        fitting = kind.link / NIC - 1
        errors = []
        for one in outcomes:
            # The probe cannot see fewer connections than fit on the link.
            actual = numpy.maximum(one[name].actual, fitting)
            errors.append(float(numpy.median(numpy.abs(one[name].estimated - actual))))
        note = f"{kind.title}, {kind.others} others on and off; windows of 100 ms; the paper shows pictures"
        result.append(
            measured_row(
                "4", f"({name}) error of the count of connections, median", "connections", errors, None, note
            )
        )
        least = [float(one[name].estimated.min()) for one in outcomes]
        paper_value, why = _LEAST.get(name, (None, ""))
        result.append(measured_row("4", f"({name}) least count", "connections", least, paper_value, why))
    return result


def draw(outcomes: Sequence[dict[str, ConnectionCounts]]) -> "Figure":
    """Figure 4, of the first seed."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(KINDS), figsize=(8.6, 3.2), layout="constrained")
    for axes, (name, kind) in zip(panels, KINDS.items(), strict=True):
        one = outcomes[0][name]
        times = WINDOW * numpy.arange(len(one.actual))
        axes.step(times, one.actual, color=OTHER, label="there")
        axes.plot(times, one.estimated, "--", color=COLOURS["choreo"], label="counted")
        axes.set_ylim(0)
        axes.set_xlabel(f"{kind.title}: seconds")
    panels[0].set_ylabel("competing connections")
    panels[0].legend(fontsize=8)
    return figure
