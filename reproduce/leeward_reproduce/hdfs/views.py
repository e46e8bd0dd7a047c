"""Views of a lab with circuits while a job runs: bytes by switch, lateness and losses, and the processors."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy

from leeward_reproduce.hdfs.processors import Processors

_PERIOD_S = 0.25
"""Real time between views of a lab: `VIEW` in crates/lab/src/standing.rs."""
_POLL_S = _PERIOD_S / 2
_GAP_S = 3 * _PERIOD_S
"""Real time between two views from which on it counts as time without views. The switch and the thread that
writes its views are not in step, so that single ones are missed."""
View = Mapping[str, Any]
"""A view, as of `leeward.lab.view`."""


@dataclass(frozen=True)
class Carried:
    """Traffic of the switch during a job, and the state of the machine.

    Attributes:
        packet_bytes: Bytes between racks by the packet switch.
        circuit_bytes: Bytes between racks by circuits.
        late_s: Lateness of 99 % of the packets in virtual time, median over views; None without packets.
        late_share: Share of the views in which this lateness exceeds the bound.
        missed_share: Share of the time without views, in which late packets are not seen.
        lost_packets: Packets that were lost outside the switch.
        busy: Share of the processors' time in use, by all programs of the machine.
    """

    packet_bytes: int
    circuit_bytes: int
    late_s: float | None
    late_share: float
    missed_share: float
    lost_packets: int
    busy: float


class Watch:
    """Views of a lab since the start of a job."""

    def __init__(self, view: Callable[[], View]) -> None:
        """Takes the first view.

        Args:
            view: Function that returns the lab at a moment.
        """
        self._view = view
        self._views: list[View] = [view()]
        self._processors = Processors()
        self._busy = 0.0

    def look(self) -> None:
        """Adds the view of now, unless the lab has shown no other since the last one.

        Raises:
            OSError: The lab is not up.
        """
        view = self._view()
        if view["at_s"] != self._views[-1]["at_s"]:
            self._views.append(view)
        self._busy = self._processors.busy()

    @property
    def bytes(self) -> int:
        """Bytes between racks so far."""
        return self._sent("packet_bytes") + self._sent("circuit_bytes")

    def carried(self, bound_s: float) -> Carried:
        """The traffic so far.

        Args:
            bound_s: Largest lateness of packets that are in time, in virtual seconds.
        """
        late = [view["late_p99_s"] for view in self._views[1:] if view["late_p99_s"] is not None]
        return Carried(
            self._sent("packet_bytes"),
            self._sent("circuit_bytes"),
            float(numpy.median(late)) if late else None,
            sum(one > bound_s for one in late) / len(late) if late else 0.0,
            self._missed(),
            self._views[-1]["lost_packets"] - self._views[0]["lost_packets"],
            self._busy,
        )

    def _missed(self) -> float:
        """Share of the time since the first view in which the lab or this process showed none."""
        times = numpy.array([view["at_s"] * view["dilation"] for view in self._views])
        gaps = numpy.diff(times)
        return float(gaps[gaps > _GAP_S].sum() / gaps.sum()) if len(gaps) else 1.0

    def _sent(self, switch: str) -> int:
        return sum(self._views[-1][switch]) - sum(self._views[0][switch])


@contextmanager
def watching(view: Callable[[], View]) -> Iterator[Watch]:
    """Watches a lab until the end of the block, with a last view after it.

    Raises:
        OSError: The lab is not up at the start or at the end.
    """
    watch = Watch(view)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_POLL_S):
            try:
                watch.look()
            except OSError:
                # The last view says why.
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()
    # The lab writes its view as often, so that a view of now has all bytes of the job.
    threading.Event().wait(2 * _PERIOD_S)
    watch.look()
