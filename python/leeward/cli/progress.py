"""Progress of a long command, on stderr.

On a terminal, progress is a bar; elsewhere, a line every few seconds. Work of less than two seconds shows
no progress. Work of unknown length shows its name once, after two seconds.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from leeward._quantities import duration_text, percent_text
from leeward.cli.notes import quiet

QUIET_S = 2.0
"""Seconds before the first output."""
INTERVAL = 5.0
"""Seconds between lines."""
STEPS = 1000
"""Steps in the progress of a simulation."""


class _Display(Protocol):
    def update(self, done: int, elapsed: float) -> None: ...

    def close(self) -> None: ...


@contextmanager
def progress(
    name: str,
    total: int,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
    amount: Callable[[float], str] | None = None,
) -> Iterator[Callable[[int], None]]:
    """Shows the progress of the block; yields a function that takes the number of newly completed steps.

    Args:
        name: Name of the work, such as `simulating days`.
        total: Number of steps.
        stream: Output; by default stderr.
        clock: Monotonic clock, in seconds.
        amount: Text for the completed share of the work, such as `16 min of 1 h`.
    """
    stream = stream or sys.stderr
    amount = amount or (lambda _: "")
    display: _Display = (_Bar if stream.isatty() else _Lines)(name, total, amount, stream)
    delay = math.inf if quiet.get() else QUIET_S
    start, done = clock(), 0

    def advance(steps: int = 1) -> None:
        nonlocal done
        done += steps
        elapsed = clock() - start
        if elapsed >= delay:
            display.update(done, elapsed)

    try:
        yield advance
    finally:
        display.close()


@contextmanager
def slow_notice(
    name: str, stream: TextIO | None = None, seconds: float = QUIET_S
) -> Iterator[Callable[[], None]]:
    """Shows the name of the block's work if it takes long; yields a function that prevents this output.

    Args:
        name: Name of the work, such as `reading racks.yaml`.
        stream: Output; by default stderr.
        seconds: Time before the output.
    """
    stream = stream or sys.stderr
    waiting = threading.Timer(seconds, print, [f"{name} ..."], {"file": stream, "flush": True})
    waiting.daemon = True
    if not quiet.get():
        waiting.start()
    try:
        yield waiting.cancel
    finally:
        waiting.cancel()


class _Lines:
    def __init__(self, name: str, total: int, amount: Callable[[float], str], stream: TextIO) -> None:
        self.name, self.total, self.amount, self.stream = name, total, amount, stream
        self.due = QUIET_S

    def update(self, done: int, elapsed: float) -> None:
        if elapsed >= self.due:
            self.due = elapsed + INTERVAL
            amount = self.amount(done / self.total)
            # Rounded down: 100 % is the end.
            share = percent_text(100 * done // self.total / 100, 0) + (f", {amount}" if amount else "")
            print(f"{self.name}: {share}, after {elapsed:.0f} s", file=self.stream, flush=True)

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, name: str, total: int, amount: Callable[[float], str], stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.table import Column

        self.total, self.amount = total, amount
        console = Console(file=stream)
        # By default, texts do not wrap, and a narrow terminal would cut words.
        self.progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(min_width=12)),
            BarColumn(bar_width=min(40, console.width // 6)),
            TaskProgressColumn(),
            TextColumn("{task.fields[amount]}", markup=False, table_column=Column(min_width=9)),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self.task = self.progress.add_task(name, total=total, amount="")

    def update(self, done: int, elapsed: float) -> None:
        self.progress.start()
        self.progress.update(self.task, completed=done, amount=self.amount(done / self.total))

    def close(self) -> None:
        self.progress.stop()


def simulated_time_text(total_s: float) -> Callable[[float], str]:
    """Text for the completed part of a simulated time."""
    return lambda share: f"{duration_text(share * total_s)} of {duration_text(total_s)} simulated"


def steps(
    advance: Callable[[int], None], on_begin: Callable[[], None] = lambda: None, steps_of_task: int = STEPS
) -> Callable[[int, float], None]:
    """Turns completed shares of tasks, reported from several threads, into steps.

    Args:
        advance: Called with a number of steps.
        on_begin: Called at the first share.
        steps_of_task: Number of steps of a task.
    """
    done: dict[int, int] = {}
    lock = threading.Lock()

    def update(task: int, share: float) -> None:
        with lock:
            if not done:
                on_begin()
            now, before = int(share * steps_of_task), done.setdefault(task, 0)
            if now > before:
                advance(now - before)
                done[task] = now

    return update
