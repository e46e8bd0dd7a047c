"""Sequence plots: bytes of a pair of racks that have arrived since a day of its circuit ended."""

from dataclasses import dataclass
from typing import Any

import numpy

from leeward._arrays import Floats
from leeward._native import PacketRun

WEEKS = 3
"""Length of a plot in days of the pair, by default."""


@dataclass(frozen=True)
class Sequence:
    """Bytes and queue of a pair at moments, on average over its days.

    Attributes:
        source: Sending rack.
        destination: Receiving rack.
        over: Number of days of the average; 0 for the run itself, from its start.
        at_s: Moments: seconds since a day ended, or since the run began.
        arrived_bytes: Bytes of all flows of the pair that have arrived in order.
        queued_packets: Packets in its queue.
        capacity_packets: Capacity of its queue.
        up: Share of the days in which the pair has a circuit then.
    """

    source: int
    destination: int
    over: int
    at_s: Floats
    arrived_bytes: Floats
    queued_packets: Floats
    capacity_packets: Floats
    up: Floats


def sequence(
    run: PacketRun, source: int, destination: int, *, span_s: float | None = None, step_s: float | None = None
) -> Sequence | None:
    """Arrivals from the end of a day of a pair on, on average over days (Etalon, figure 5).

    Args:
        run: A run of a scenario with `sample`, whose `pairs` have this one.
        source: Sending rack.
        destination: Receiving rack.
        span_s: Length after each day; by default three days of the pair.
        step_s: Time between moments; by default the time between samples.

    Returns:
        The sequence: of the complete run if no day is followed by that much of it; None without two samples.
    """
    samples, days = _columns(run.samples(), source, destination), _columns(run.days(), source, destination)
    at = samples["time_s"]
    if len(at) < 2:
        return None
    ended = days["ended_s"]
    if span_s is None and len(ended) > 1:
        span_s = WEEKS * float(numpy.median(numpy.diff(ended)))
    step = step_s or float(numpy.median(numpy.diff(at)))
    whole = ended[:0] if span_s is None else ended[ended + span_s <= at[-1] + 1e-12]
    if span_s is None or not len(whole):
        since, starts = at, numpy.zeros(1)
    else:
        since, starts = step * numpy.arange(round(span_s / step) + 1), whole
    arrived = [numpy.interp(start + since, at, samples["delivered_bytes"]) for start in starts]
    # Queues change at once: the last sample holds.
    last = [numpy.searchsorted(at, start + since + 1e-12, side="right") - 1 for start in starts]
    up = [_up(start + since, days) for start in starts]
    return Sequence(
        source,
        destination,
        len(whole),
        since,
        numpy.mean([one - one[0] for one in arrived], axis=0),
        numpy.mean([samples["packets"][index] for index in last], axis=0),
        numpy.mean([samples["capacity"][index] for index in last], axis=0),
        numpy.mean(up, axis=0),
    )


def _up(at: Floats, days: dict[str, Any]) -> Any:
    """True at each moment within one of a pair's days, which do not overlap."""
    # Days are in the order of their ends, and so of their starts.
    last = numpy.searchsorted(days["began_s"], at + 1e-12, side="right") - 1
    return (last >= 0) & (at < numpy.append(days["ended_s"], -numpy.inf)[last])


def _columns(table: Any, source: int, destination: int) -> dict[str, Any]:
    """Rows of a pair, by column."""
    of = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    ours = (of["source"] == source) & (of["destination"] == destination)
    return {name: column[ours] for name, column in of.items()}
