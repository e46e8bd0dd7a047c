"""Reads a list of blocks with fio, in order and one at a time, and returns the latency of each.

fio replays an iolog of version 2, which has no times, so a read begins when the one before has ended. The
engine is synchronous, so the lines of the latency log are in the order of the reads. They have the offsets
too, and a log of other reads is an error.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from pathlib import Path

from leeward._disk import Read
from leeward._fio_log import LOG_LINE
from leeward._fio_run import fio_error, run_fio
from leeward.errors import InputError

IOLOG = "requests.iolog"
LOG = "replay"
SPARE_S = 60.0
"""Time that fio may take beyond the limit of a replay: it starts, and ends a read that it has begun."""
_VERSION = re.compile(r"fio-(\d{1,4})\.", re.ASCII)
_OFFSET = re.compile(r"\s*\d{1,19}\s*", re.ASCII)


def replay_command(path: str, seconds: int) -> list[str]:
    """Command line of a replay of the iolog in the current folder. It opens the device for reading only.

    Args:
        path: Absolute path of the device or file.
        seconds: Time limit.
    """
    return [
        "fio",
        "--readonly",
        "--name=replay",
        f"--read_iolog={IOLOG}",
        # The name in the iolog ends at a space.
        f"--replay_redirect={path}",
        "--ioengine=psync",
        "--direct=1",
        "--allow_file_create=0",
        # Direct reads need no flush of the page cache, and a flush would write out what others have changed.
        "--invalidate=0",
        f"--write_lat_log={LOG}",
        "--log_offset=1",
        f"--runtime={seconds}",
        "--output-format=json",
    ]


def iolog(reads: Iterable[Read]) -> str:
    """Text of an iolog that fio replays."""
    lines = ("fio version 2 iolog", "disk add", "disk open")
    return "\n".join((*lines, *(f"disk read {read.offset} {read.size}" for read in reads), "disk close\n"))


class FioReplay:
    """Replays reads from a device or file; see `leeward._disk.Replay`.

    Attributes:
        version: Version of fio, empty before the first replay.
    """

    def __init__(self, path: Path, keep: Callable[[str], object], keep_log: Callable[[str], object]) -> None:
        """A replay from an absolute path.

        Args:
            path: Device or file.
            keep: Called with each output of fio before it is interpreted.
            keep_log: Called with each log of latencies before it is interpreted.
        """
        self.version = ""
        self._path, self._keep, self._keep_log = path, keep, keep_log

    def __call__(self, reads: Sequence[Read], limit: float) -> list[float]:
        """Reads, and returns the seconds of each, or of the first few that ended within the limit in seconds.

        Raises:
            InputError: fio is not installed, or failed, or its log is not of these reads.
        """
        seconds = max(ceil(limit), 1)
        with tempfile.TemporaryDirectory(prefix="leeward-fio-") as folder:
            (Path(folder) / IOLOG).write_text(iolog(reads), encoding="utf-8")
            command = replay_command(str(self._path), seconds)
            what = f"{len(reads)} reads"
            _, self.version = run_fio(command, what, self._keep, limit=seconds + SPARE_S, folder=folder)
            # Its name has the number of the job, in most versions.
            logs = sorted(Path(folder).glob(f"{LOG}_lat*.log"))
            text = logs[0].read_text(encoding="utf-8", errors="replace") if logs else ""
        self._keep_log(text)
        return latencies(text, reads, self.version)


def latencies(text: str, reads: Sequence[Read], version: str) -> list[float]:
    """Seconds of reads, from the log of their latencies.

    Args:
        text: The log, with offsets.
        reads: The reads in order; the log may end before.
        version: Version of fio. Before 3.0, latencies are in microseconds.

    Raises:
        InputError: The log is of other requests, or has another form.
    """
    known = _VERSION.match(version)
    unit = 1e-6 if known and int(known[1]) < 3 else 1e-9
    result: list[float] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        fields = line.split(",") if LOG_LINE.fullmatch(line) else []
        if len(fields) < 5 or not _OFFSET.fullmatch(fields[4]):
            raise _log_error(version, len(result), f"`{line[:40]}`: expected time, latency, 0, size, offset")
        _, latency, kind, size, offset = (int(field) for field in fields[:5])
        if len(result) == len(reads):
            raise _log_error(version, len(result), f"more than {len(reads)} lines")
        read = reads[len(result)]
        if (kind, size, offset) != (0, read.size, read.offset):
            expected = f"a read of {read.size} bytes at {read.offset}"
            raise _log_error(version, len(result), f"`{line[:40]}`: expected {expected}")
        result.append(latency * unit)
    return result


def _log_error(version: str, line: int, message: str) -> InputError:
    return fio_error(f"{version or 'fio'}: line {line + 1} of its log of latencies: {message}")
