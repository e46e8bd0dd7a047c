"""What has arrived of a pair of racks since a day of its circuit ended: sequence plots."""

from dataclasses import dataclass
from typing import Any

import numpy

from leeward._arrays import Floats
from leeward._native import PacketRun

WEEKS = 3
"""How many days of the pair a plot goes on for, if that is not said."""


@dataclass(frozen=True)
class Sequence:
    """A pair's bytes and queue at moments, in the mean over its days.

    Attributes:
        source: The rack that sends.
        destination: The rack that receives.
        over: How many days it is a mean over; 0 where it is the run itself, from its start.
        at_s: The moments: seconds since a day ended, or since the run began.
        arrived_bytes: What has arrived in order by then of all flows of the pair.
        queued_packets: What is in its queue.
        capacity_packets: What that may hold.
        up: The share of them in which the pair has a circuit then.
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
    """What arrives from the end of a day of a pair on, in the mean over days (Etalon, figure 5).

    Args:
        run: A run of a scenario with `sample`, whose `pairs` have this one.
        source: The rack that sends.
        destination: The rack that receives.
        span_s: For how long from each day on; by default as long as three days take to come.
        step_s: How far moments are apart; by default as far as samples are.

    Returns:
        The sequence: of the whole run where no day is followed by so much of it; None without two samples.
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
    # Queues change at once: what was there when they were looked at last.
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
    """Whether one of a pair's days, which do not overlap, is at each moment."""
    # Days end in order, and so do they begin.
    last = numpy.searchsorted(days["began_s"], at + 1e-12, side="right") - 1
    return (last >= 0) & (at < numpy.append(days["ended_s"], -numpy.inf)[last])


def _columns(table: Any, source: int, destination: int) -> dict[str, Any]:
    """The rows of a pair, by column."""
    of = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    ours = (of["source"] == source) & (of["destination"] == destination)
    return {name: column[ours] for name, column in of.items()}
