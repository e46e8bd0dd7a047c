"""Runs cells, several at once, on one of joblib's backends.

Each cell is a task of its own: reading a scenario and its arrivals takes a hundredth of the time of a run. So
sharing them among policies would save little, and a killed sweep would lose more. Threads are the default,
since the simulator releases the interpreter's lock while it runs and threads share memory. The results are
the same on every backend.
"""

import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing import resource_tracker
from typing import Any

from leeward.errors import InputError
from leeward.sweep.cell import Outcome, make
from leeward.sweep.plan import Cell

BACKENDS = ("threading", "loky", "ray")
_ROUND = 4
"""Cells per worker in a round on Ray. A killed sweep loses a round; in longer rounds, workers wait less."""
_PATIENCE = 2.0
"""Seconds to wait for stopping threads; they check several times a second."""

Progress = Callable[[int, float], object]


def outcomes(
    cells: Sequence[Cell], jobs: int, backend: str, tables: bool, progress: Progress | None
) -> Generator[tuple[int, Outcome], None, None]:
    """Runs cells and yields each with its number when it is finished.

    Args:
        cells: Cells to run.
        jobs: Number of runs at once.
        backend: One of `BACKENDS`.
        tables: True to keep the tables of the runs.
        progress: Called with the number of a cell and the completed share of it, from several threads; on
            backends with processes only when a cell is done.

    Raises:
        InputError: The backend is not available; or a cell's input is invalid.
    """
    import joblib

    check_backend(backend)
    if backend == "ray":
        from ray.util.joblib import register_ray

        register_ray()
        # Ray's pool returns results all at once, so finished cells are stored after each round.
        size = _ROUND * jobs
        with joblib.Parallel(jobs, backend=backend, batch_size=1) as parallel:
            for first in range(0, len(cells), size):
                round_cells = enumerate(cells[first : first + size], first)
                yield from _report_each(
                    parallel(joblib.delayed(_make)(*cell, tables) for cell in round_cells), progress
                )
        return
    threads = _RunThreads(progress)
    task = threads.make if backend == "threading" else _make
    parallel = joblib.Parallel(jobs, backend=backend, return_as="generator_unordered", batch_size=1)
    # The call starts the worker processes.
    with _interrupts_blocked() if backend == "loky" else nullcontext():
        results = parallel(joblib.delayed(task)(*cell, tables) for cell in enumerate(cells))
    with cancel_at_end(results):
        try:
            yield from _report_each(results, progress)
        finally:
            threads.stop()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Delays interrupts until the block ends; processes that the block starts never receive interrupts.

    On a terminal, an interrupt reaches all processes. Workers would each print a traceback; joblib ends them.
    """
    # The start of this process, which joblib needs too, would end the delay.
    resource_tracker.ensure_running()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def cancel_at_end(results: Generator[Any, None, None]) -> Iterator[None]:
    """Cancels the tasks of a joblib generator that are left when the block ends, as after an interrupt."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            # joblib warns of each task that it cancels.
            warnings.filterwarnings("ignore", category=UserWarning, module=r"joblib\b")
            results.close()


def _report_each(
    results: Iterable[tuple[int, Outcome]], progress: Progress | None
) -> Iterator[tuple[int, Outcome]]:
    for number, outcome in results:
        if progress:
            progress(number, 1.0)
        yield number, outcome


def _make(number: int, cell: Cell, tables: bool) -> tuple[int, Outcome]:
    return number, make(cell, tables, None)


class _StopError(Exception):
    """Raised in a run that should stop."""


class _RunThreads:
    """Threads that run cells. An interrupt reaches only the main thread, which has to stop them."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.stop_requested = False
        self.count = 0
        self.change = threading.Condition()

    def make(self, number: int, cell: Cell, tables: bool) -> tuple[int, Outcome]:
        def tell(_: int, share: float) -> None:
            if self.stop_requested:
                raise _StopError
            if self.progress:
                self.progress(number, share)

        with self._count_run():
            return number, make(cell, tables, tell)

    def stop(self) -> None:
        with self.change:
            self.stop_requested = True
            self.change.wait_for(lambda: self.count == 0, _PATIENCE)

    @contextmanager
    def _count_run(self) -> Iterator[None]:
        with self.change:
            self.count += 1
        try:
            yield
        finally:
            with self.change:
                self.count -= 1
                self.change.notify_all()


def check_backend(backend: str) -> None:
    """Checks that a backend is available.

    Raises:
        InputError: The backend is not in `BACKENDS`, or is not installed.
    """
    if backend not in BACKENDS:
        message = f"`{backend}`: expected one of {', '.join(BACKENDS)}"
        raise InputError.about("backend", message)
    if backend == "ray":
        try:
            import ray.util.joblib  # noqa: F401
        except ImportError:
            error = InputError.about("backend", "`ray`: Ray is not installed")
            error.add_note("pip install 'leeward[ray]' installs it")
            raise error from None
