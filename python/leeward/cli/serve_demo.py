"""`leeward serve --demo`: the service on a simulated cluster, and the same cluster without it."""

import json
import math
import os
import signal
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from leeward import _native
from leeward.cli.controller import controller_errors
from leeward.client import Client, UnreachableError
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.demo.cell import Cell

SPEED = 30.0
"""Default of `--speed`: simulated seconds in a second."""
FASTEST = 100_000.0
"""Greatest value of `--speed`."""
FIXED_OPTIONS = ("config", "cluster", "store", "durable", "tokens", "prometheus", "map", "http")
"""Options that a demo sets itself and rejects from the user."""
SHUTDOWN_S = 45.0
"""Seconds to wait for the service to end; it gives requests in progress half a minute."""


def serve(options: dict[str, str | int | None], speed: float) -> None:
    """Serves until a signal ends the process.

    Args:
        options: Options of `leeward serve`; None for options that were not given.
        speed: Simulated seconds in a second of real time.

    Raises:
        InputError: An option is invalid, or not valid in a demo.
    """
    from leeward.demo.cell import Cell

    if not (math.isfinite(speed) and 0 < speed <= FASTEST):
        message = f"{speed:g}: expected a number above 0, to {FASTEST:,.0f}"
        raise InputError.about("--speed", message)
    for name in FIXED_OPTIONS:
        if options[name] is not None:
            raise InputError.about(f"--{name}", "not valid with --demo, which sets its own")
    cell = Cell()
    options = {**options, "store": "memory", "interval": options["interval"] or "1s"}
    options |= {name: options[name] or "leeward" for name in ("task_policy", "moves")}
    with TemporaryDirectory(prefix="leeward-demo-") as folder:
        file = Path(folder) / "demo.json"
        file.write_text(json.dumps(cell.cluster), encoding="utf-8")
        options["cluster"] = str(file)
        _native.check_service(options)
        thread = _DriverThread(cell, options, speed)
        # The service handles the signal and stops. Python's own handler would raise an exception in it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            _native.serve(options, thread.begin, demo=True)
        finally:
            thread.end()
    if thread.failure is not None:
        with controller_errors():
            raise thread.failure


class _DriverThread:
    """Thread of the driver, which simulates the cluster and sends requests to the service."""

    def __init__(self, cell: "Cell", options: dict[str, str | int | None], speed: float) -> None:
        self.failure: Exception | None = None
        self._cell = cell
        self._seed = 1 if options["seed"] is None else int(options["seed"])
        self._interval_s = _native.seconds(str(options["interval"]))
        self._policy = f"{options['task_policy']}, moves by {options['moves']}"
        self._speed = speed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, url: str, _: str | None) -> None:
        """Starts the thread; called when the service listens."""
        cell, step = self._cell, self._speed * self._interval_s
        hosts = cell.racks * cell.hosts_per_rack
        _print_line(f"listening on {url}")
        _print_line(
            f"a simulated cluster of {hosts} hosts in {cell.racks} racks, {self._speed:g} times real time:"
        )
        _print_line(
            f"  every {self._interval_s:g} s the demo reports the link loads of {step:g} s of simulated time"
        )
        _print_line(
            "  the same jobs are placed by borg, which sees no network, and by this service over HTTP"
        )
        _print_line(f"open {url}/ in a browser, or run leeward top; Ctrl-C ends it")
        self._thread = threading.Thread(target=self._drive, args=(url,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stops the thread; called when the service has ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(SHUTDOWN_S)

    def _drive(self, url: str) -> None:
        from leeward.demo.live import build_driver, run

        client = Client(url, patience_s=1.0)
        try:
            step_s = self._speed * self._interval_s
            driver = build_driver(client, self._policy, self._cell, self._seed, step_s, self._interval_s)
            run(client, driver, self._interval_s, self._stop, _print_line)
        except UnreachableError as error:
            # A stopping service no longer answers; without a stop, the failure is an error.
            if not self._stop.wait(SHUTDOWN_S):
                self._fail(error)
        except Exception as error:  # a failed demo must not appear to run
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        os.kill(os.getpid(), signal.SIGTERM)


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
