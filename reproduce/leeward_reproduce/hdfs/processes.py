"""Processes of a cluster: each has a name and a log, and ends by its process id."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

LINES = 12
"""Lines of a log in an error."""
_POLL_S = 0.1
_ENDS = (signal.SIGTERM, signal.SIGHUP)


class ProcessError(OSError):
    """A process of the cluster failed, or was not ready in time. The text has the end of its log."""


class Process:
    """A process with a name and a log."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        """Takes a running process that writes to a log."""
        self.name = name
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def error(self, problem: str) -> ProcessError:
        """An error about the process, with the end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        end = "\n".join(text.splitlines()[-LINES:])
        return ProcessError(f"{self.name} {problem}; " + (f"its log ends:\n{end}" if end else "no log"))

    def check(self) -> None:
        """Checks that it runs.

        Raises:
            ProcessError: It has ended.
        """
        status = self.process.poll()
        if status is not None:
            raise self.error(f"ended with status {status}")

    def finish(self, seconds: float) -> None:
        """Waits for its end.

        Raises:
            ProcessError: It failed, or did not end in time.
        """
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self.error(f"did not end within {seconds:g} s") from None
        if status:
            raise self.error(f"ended with status {status}")

    def wait_until(self, what: str, seconds: float, holds: Callable[[], bool]) -> None:
        """Waits until a condition about it holds.

        Raises:
            ProcessError: The process ended, or the condition did not hold in time.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            self.check()
            if time.monotonic() > deadline:
                raise self.error(f"did not {what} within {seconds:g} s")
            time.sleep(_POLL_S)


def kill(processes: Iterable[Process]) -> None:
    """Kills processes, and waits for their ends. Their files are removed after it, so none needs its time."""
    all_of_them = list(processes)
    for each in all_of_them:
        each.process.kill()
    for each in all_of_them:
        each.process.wait()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end the block as Ctrl-C does, so that the cluster is removed.

    Only the main thread receives signals; in others, the block is as without it. A signal that is ignored, as
    by `nohup`, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> NoReturn:
        # The removal takes seconds, and a second signal must not end it.
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {one: signal.getsignal(one) for one in _ENDS if signal.getsignal(one) != signal.SIG_IGN}
    try:
        for one in before:
            signal.signal(one, end)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
