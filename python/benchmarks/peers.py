"""Other programs that benchmarks run beside Leeward: which are installed, their versions, and their times."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Seconds of a process.

    Attributes:
        elapsed: From its start to its end.
        cpu: Processor time of all its threads and of the processes that it waited for.
    """

    elapsed: float
    cpu: float


def timed(command: Sequence[str]) -> Times:
    """Runs a command and returns its times.

    Raises:
        subprocess.CalledProcessError: The command fails.
    """
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Times(elapsed, usage.ru_utime + usage.ru_stime)


def program_version(command: Sequence[str]) -> str | None:
    """First number like `1.7` or `4.0.17` in the output of a command; None if the program is not installed.

    Raises:
        ValueError: The output has no such number.
    """
    if shutil.which(command[0]) is None:
        return None
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", process.stdout + process.stderr)
    if found is None:
        raise ValueError(f"{' '.join(command)}: no version in its output")
    return found[0]


def package_version(name: str) -> str | None:
    """Version of a Python package; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
