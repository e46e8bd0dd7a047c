"""How far a long command has got, on stderr.

On a terminal it is a bar, elsewhere a line every few seconds; neither shows for what is done in two seconds.
"""

import sys
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
    what: str, total: int, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Shows the progress of what happens inside; gives a function to call with each number of steps done.

    Args:
        what: What is being done, such as `simulating days`.
        total: How many steps there are.
        stream: Where to show it; stderr unless told otherwise.
        clock: Seconds from any origin.
    """
    stream = stream or sys.stderr
    display: _Display = (_Bar if stream.isatty() else _Lines)(what, total, stream)
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


class _Lines:
    def __init__(self, what: str, total: int, stream: TextIO) -> None:
        self.what, self.total, self.stream = what, total, stream
        self.due = PATIENCE

    def update(self, done: int, elapsed: float) -> None:
        if elapsed >= self.due:
            self.due = elapsed + INTERVAL
            share = f"{done:,} of {self.total:,} ({100 * done // self.total} %)"
            print(f"{self.what}: {share} after {elapsed:.0f} s", file=self.stream, flush=True)

    def close(self) -> None:
        pass


class _Bar:
    def __init__(self, what: str, total: int, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.progress = Progress(console=Console(file=stream), transient=True)
        self.task = self.progress.add_task(what, total=total)

    def update(self, done: int, elapsed: float) -> None:
        self.progress.start()
        self.progress.update(self.task, completed=done)

    def close(self) -> None:
        self.progress.stop()
