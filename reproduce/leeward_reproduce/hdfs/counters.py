"""Bytes on the links of racks and hosts, from the counters of the kernel."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leeward_reproduce.hdfs.processes import Process

_LINKS = {"rack": ("up0", "downlink", "uplink"), "host": ("eth0", "ingress", "egress")}
"""Device towards the core, and the links whose bytes it receives and sends, by kind of machine."""
_PERIOD_S = 0.25
Sample = tuple[float, dict[str, int]]
"""Monotonic time, and bytes by link since the start of the lab."""


class LinkCounters:
    """Counters of machines. A process in the namespace of a machine shows those of its devices."""

    def __init__(self) -> None:
        """Makes counters without machines."""
        self._machines: dict[str, tuple[str, Process]] = {}

    def add(self, kind: str, name: str, process: Process) -> None:
        """Adds a `rack` or a `host` by its name, with a process that runs there."""
        self._machines[name] = (kind, process)

    def wait(self) -> None:
        """Waits until each process has entered the namespace of its machine.

        Raises:
            ProcessError: A process failed.
        """
        ours = _namespace("self")
        for kind, process in self._machines.values():

            def has_device(process: Process = process, device: str = _LINKS[kind][0]) -> bool:
                return _namespace(process.pid) != ours and device in _devices(process.pid)

            process.wait_until("enter its namespace", 10.0, has_device)

    def read(self) -> dict[str, int]:
        """Bytes by link: those out of a rack are on its uplink, those into it on its downlink.

        Raises:
            OSError: The process of a machine has ended.
        """
        result: dict[str, int] = {}
        for name, (kind, process) in self._machines.items():
            device, into, out = _LINKS[kind]
            received, sent = _devices(process.pid)[device]
            result |= {f"{name}:{into}": received, f"{name}:{out}": sent}
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


def _namespace(process: int | str) -> int:
    """Network namespace of a process."""
    return os.stat(f"/proc/{process}/ns/net").st_ino


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
