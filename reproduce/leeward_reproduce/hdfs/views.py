"""Views of a lab with circuits while a job runs: bytes by switch, lateness and losses, and the processors."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

_PERIOD_S = 0.25
"""Time between views of a lab."""
_STAT = Path("/proc/stat")
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
        lost_packets: Packets that were lost outside the switch.
        busy: Share of the processors' time in use, by all programs of the machine.
    """

    packet_bytes: int
    circuit_bytes: int
    late_s: float | None
    late_share: float
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
        self._began = self._processors = _processors()

    def look(self) -> None:
        """Adds a view.

        Raises:
            OSError: The lab is not up.
        """
        self._views.append(self._view())
        self._processors = _processors()

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
        busy, total = (now - then for now, then in zip(self._processors, self._began, strict=True))
        return Carried(
            self._sent("packet_bytes"),
            self._sent("circuit_bytes"),
            float(numpy.median(late)) if late else None,
            sum(one > bound_s for one in late) / len(late) if late else 0.0,
            self._views[-1]["lost_packets"] - self._views[0]["lost_packets"],
            busy / total if total else 0.0,
        )

    def _sent(self, switch: str) -> int:
        return sum(self._views[-1][switch]) - sum(self._views[0][switch])


@contextmanager
def watching(view: Callable[[], View]) -> Iterator[Watch]:
    """Watches a lab until the end of the block, with a last view after it.

    Raises:
        OSError: The lab is not up at the begin or at the end.
    """
    watch = Watch(view)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_PERIOD_S):
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


def _processors() -> tuple[int, int]:
    """Ticks in which processors were in use since the start of the machine, and all ticks."""
    ticks = [int(field) for field in _STAT.read_text(encoding="ascii").partition("\n")[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
