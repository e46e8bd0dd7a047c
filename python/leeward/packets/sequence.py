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
    """Bytes and queue of a pair over time, on average over its days.

    Attributes:
        source: Sending rack.
        destination: Receiving rack.
        over: Number of days of the average; 0 for the run itself, from its start.
        at_s: Times, in seconds since a day ended or since the run began.
        arrived_bytes: Bytes of all flows of the pair that have arrived in order.
        queued_packets: Packets in its queue.
        capacity_packets: Capacity of its queue.
        up: Share of the days on which the pair has a circuit at this time.
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
    """Arrivals after the end of a day of a pair, on average over days (Etalon, figure 5).

    Args:
        run: A run of a scenario with `sample`, whose `pairs` include this pair.
        source: Sending rack.
        destination: Receiving rack.
        span_s: Length after each day; by default three days of the pair.
        step_s: Time between points of the plot; by default the time between samples.

    Returns:
        The sequence. It covers the complete run if the run ends within `span_s` of the end of every day. None
        without two samples.
    """
    samples, days = _columns(run.samples(), source, destination), _columns(run.days(), source, destination)
    times = samples["time_s"]
    if len(times) < 2:
        return None
    ended = days["ended_s"]
    if span_s is None and len(ended) > 1:
        span_s = WEEKS * float(numpy.median(numpy.diff(ended)))
    step = step_s or float(numpy.median(numpy.diff(times)))
    whole = ended[:0] if span_s is None else ended[ended + span_s <= times[-1] + 1e-12]
    if span_s is None or not len(whole):
        since, starts = times, numpy.zeros(1)
    else:
        since, starts = step * numpy.arange(round(span_s / step) + 1), whole
    arrived = [numpy.interp(start + since, times, samples["delivered_bytes"]) for start in starts]
    # Queues change abruptly, so the last sample counts, without interpolation.
    last = [numpy.searchsorted(times, start + since + 1e-12, side="right") - 1 for start in starts]
    up = [_up(start + since, days) for start in starts]
    return Sequence(
        source,
        destination,
        len(whole),
        since,
        numpy.mean([counts - counts[0] for counts in arrived], axis=0),
        numpy.mean([samples["packets"][index] for index in last], axis=0),
        numpy.mean([samples["capacity"][index] for index in last], axis=0),
        numpy.mean(up, axis=0),
    )


def _up(times: Floats, days: dict[str, Any]) -> Any:
    """True for each time within one of a pair's days, which do not overlap."""
    # Days are in the order of their ends, and so of their starts.
    last = numpy.searchsorted(days["began_s"], times + 1e-12, side="right") - 1
    return (last >= 0) & (times < numpy.append(days["ended_s"], -numpy.inf)[last])


def _columns(table: Any, source: int, destination: int) -> dict[str, Any]:
    """Rows of a pair, by column."""
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    is_pair = (columns["source"] == source) & (columns["destination"] == destination)
    return {name: column[is_pair] for name, column in columns.items()}
