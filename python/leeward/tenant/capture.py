"""Captures of the traffic from this host to others, by tcpdump, for the profile of an app."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from leeward.tenant import commands

HEADERS = 96
"""Bytes of each packet that are kept: its headers."""
BUFFER_KIB = 16_384
"""Buffer of a capture in the kernel, in KiB."""


class CaptureError(Exception):
    """Reason for which a capture is impossible."""


class Capture:
    """A capture that runs until `stop`, of what this host sends to others."""

    def __init__(self, own: str, others: Sequence[str]) -> None:
        """Starts tcpdump on the interfaces towards the other hosts.

        Args:
            own: Address of this host.
            others: Addresses of the other hosts.

        Raises:
            CaptureError: A program is missing, or may not capture.
        """
        self._own = own
        self._others = list(others)
        self._folder = tempfile.TemporaryDirectory(prefix="leeward-capture-")
        self._running: list[subprocess.Popen[str]] = []
        try:
            for number, device in enumerate(sorted({_device(other) for other in others})):
                self._running.append(self._start(device, Path(self._folder.name, f"{number}.pcap")))
        except BaseException:
            self.close()
            raise

    def _start(self, device: str, file: Path) -> subprocess.Popen[str]:
        to = " or ".join(f"dst host {other}" for other in self._others)
        # Debian's tcpdump would otherwise write as another user.
        user = ("-Z", "root") if os.geteuid() == 0 else ()
        sizes = ("-s", str(HEADERS), "-B", str(BUFFER_KIB))
        command = [
            "tcpdump",
            "-n",
            "-i",
            device,
            *sizes,
            *user,
            "-w",
            str(file),
            f"src host {self._own} and ({to})",
        ]
        if shutil.which(command[0]) is None:
            raise CaptureError("tcpdump: No such file or directory")
        process = commands.start(f"exec {shlex.join(command)}", stderr=subprocess.PIPE)
        last = ""
        for line in process.stderr or ():
            if "listening on" in line:
                return process
            last = line.strip() or last
        process.wait()
        commands.kill(process)
        raise CaptureError(last or "tcpdump ended")

    def stop(self) -> tuple[dict[str, int], int]:
        """Ends the capture; returns the bytes to each other host, and the number of packets that were lost.

        Sizes are those of IP packets. Hosts to which nothing was sent are left out.

        Raises:
            CaptureError: The captured packets cannot be read.
        """
        from leeward.errors import InputError
        from leeward.matrix import capture

        try:
            lost = sum(map(_end, self._running))
            names = {address: str(number) for number, address in enumerate([self._own, *self._others])}
            mapping = Path(self._folder.name, "hosts.csv")
            rows = "".join(f"{address},{name}\n" for address, name in names.items())
            mapping.write_text(f"address,host\n{rows}", encoding="utf-8")
            # A capture without packets is a file with a header.
            files = [
                path for path in sorted(Path(self._folder.name).glob("*.pcap")) if path.stat().st_size > 24
            ]
            sent: dict[str, int] = {}
            if files:
                found = capture(files, mapping=mapping, content="packets", size="ip").total().to_pylist()
                sent = {cell["dst"]: int(cell["bytes"]) for cell in found if cell["src"] == names[self._own]}
            return {address: sent[name] for address, name in names.items() if name in sent}, lost
        except (InputError, OSError) as error:
            raise CaptureError(str(error)) from None
        finally:
            self.close()

    def close(self) -> None:
        """Ends tcpdump, and removes what it wrote."""
        for process in self._running:
            commands.kill(process)
            process.wait()
        self._running = []
        self._folder.cleanup()


def _end(process: subprocess.Popen[str]) -> int:
    """Ends a tcpdump; returns the number of packets that the kernel lost."""
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    text = process.stderr.read()
    process.wait()
    lost = re.search(r"^(\d+) packets? dropped by kernel", text, re.MULTILINE)
    return int(lost[1]) if lost else 0


def _device(other: str) -> str:
    """Interface by which this host sends to another."""
    try:
        result = subprocess.run(
            ["ip", "-o", "route", "get", other], capture_output=True, text=True, check=True
        )
    except OSError as error:
        raise CaptureError(f"ip: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise CaptureError(f"ip route get {other}: {error.stderr.strip()}") from None
    found = re.search(r"\bdev (\S+)", result.stdout)
    if not found:
        raise CaptureError(f"no route to {other}")
    return found[1]
