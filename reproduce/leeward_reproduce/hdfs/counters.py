"""Bytes on the links of racks, from the counters of the kernel."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leeward_reproduce.hdfs.processes import Process

DEVICE = "up0"
"""Device of a rack towards the core."""
_PERIOD_S = 0.25
Sample = tuple[float, dict[str, int]]
"""Monotonic time, and bytes by link since the start of the lab."""


class LinkCounters:
    """Counters of racks. A process in the namespace of a rack shows those of its devices."""

    def __init__(self) -> None:
        """Makes counters without racks."""
        self._racks: dict[str, Process] = {}

    def add(self, rack: str, process: Process) -> None:
        """Adds a rack, with a process that runs there."""
        self._racks[rack] = process

    def wait(self) -> None:
        """Waits until each process has entered the namespace of its rack.

        Raises:
            ProcessError: A process failed.
        """
        for process in self._racks.values():

            def has_device(process: Process = process) -> bool:
                return DEVICE in _devices(process.pid)

            process.wait_until("enter its namespace", 10.0, has_device)

    def read(self) -> dict[str, int]:
        """Bytes by link: those out of a rack are on its uplink, those into it on its downlink.

        Raises:
            OSError: The process of a rack has ended.
        """
        result: dict[str, int] = {}
        for rack, process in self._racks.items():
            received, sent = _devices(process.pid)[DEVICE]
            result |= {f"{rack}:uplink": sent, f"{rack}:downlink": received}
        return result

    @contextmanager
    def sampling(self) -> Iterator[list[Sample]]:
        """Reads the counters again and again; yields the list to which samples are added."""
        samples: list[Sample] = [(time.monotonic(), self.read())]
        ended = threading.Event()

        def sample() -> None:
            while not ended.wait(_PERIOD_S):
                samples.append((time.monotonic(), self.read()))

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield samples
        finally:
            ended.set()
            thread.join()
        samples.append((time.monotonic(), self.read()))


def _devices(pid: int) -> dict[str, tuple[int, int]]:
    """Bytes received and sent by the devices in the network of a process."""
    # The first two lines are headers.
    lines = Path(f"/proc/{pid}/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    result = {}
    for line in lines:
        name, _, numbers = line.partition(":")
        fields = numbers.split()
        result[name.strip()] = int(fields[0]), int(fields[8])
    return result
