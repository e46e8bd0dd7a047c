"""How far a long command has got, on stderr.

On a terminal it is a bar, elsewhere a line every few seconds; neither shows for what is done in two seconds.
What cannot say how far it is says what it is, once, after the same time.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

PATIENCE = 2.0
"""Seconds without a word."""
INTERVAL = 5.0
"""Seconds between lines."""


class _Display(Protocol):
    def update(self, done: int, elapsed: float) -> None: ...

    def close(self) -> None: ...


@contextmanager
def progress(
    what: str,
    total: int,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
    amount: Callable[[float], str] | None = None,
) -> Iterator[Callable[[int], None]]:
    """Shows the progress of what happens inside; gives a function to call with each number of steps done.

    Args:
        what: What is being done, such as `simulating days`.
        total: How many steps there are.
        stream: Where to show it; stderr unless told otherwise.
        clock: Seconds from any origin.
        amount: Says in words how much a share of the whole is, such as `16 min of 1 h`.
    """
    stream = stream or sys.stderr
    amount = amount or (lambda _: "")
    display: _Display = (_Bar if stream.isatty() else _Lines)(what, total, amount, stream)
    start, done = clock(), 0

    def advance(steps: int = 1) -> None:
        nonlocal done
        done += steps
        elapsed = clock() - start
        if elapsed >= PATIENCE:
            display.update(done, elapsed)

    try:
        yield advance
    finally:
        display.close()


@contextmanager
def patience(
    what: str, stream: TextIO | None = None, seconds: float = PATIENCE
) -> Iterator[Callable[[], None]]:
    """Says what is being done inside, if it takes long; gives a function that ends it before the block ends.

    Args:
        what: What is being done, such as `reading racks.yaml`.
        stream: Where to say it; stderr unless told otherwise.
        seconds: How long is long.
    """
    stream = stream or sys.stderr
    waiting = threading.Timer(seconds, print, [f"{what} ..."], {"file": stream, "flush": True})
    waiting.daemon = True
    waiting.start()
    try:
        yield waiting.cancel
    finally:
        waiting.cancel()


class _Lines:
    def __init__(self, what: str, total: int, amount: Callable[[float], str], stream: TextIO) -> None:
        self.what, self.total, self.amount, self.stream = what, total, amount, stream
        self.due = PATIENCE

    def update(self, done: int, elapsed: float) -> None:
        if elapsed >= self.due:
            self.due = elapsed + INTERVAL
            words = self.amount(done / self.total)
            much = f"{100 * done // self.total} %" + (f", {words}" if words else "")
            print(f"{self.what}: {much}, after {elapsed:.0f} s", file=self.stream, flush=True)

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, what: str, total: int, amount: Callable[[float], str], stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self.total, self.amount = total, amount
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(),
            console=Console(file=stream),
            transient=True,
        )
        self.task = self.progress.add_task(what, total=total, amount="")

    def update(self, done: int, elapsed: float) -> None:
        self.progress.start()
        self.progress.update(self.task, completed=done, amount=self.amount(done / self.total))

    def close(self) -> None:
        self.progress.stop()
