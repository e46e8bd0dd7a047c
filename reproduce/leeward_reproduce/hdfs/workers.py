"""Orders to the helpers at machines of the lab."""

import contextlib
import json
import subprocess
import sys
import threading
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

from leeward_reproduce.hdfs.processes import Process

SCRIPT = Path(__file__).with_name("worker.py")
COMMAND = (sys.executable, "-I", str(SCRIPT))
"""Command of a helper."""


class Worker:
    """A helper at a machine."""

    def __init__(self, process: Process) -> None:
        """Takes the process of a helper, with pipes to its standard input and output."""
        self.process = process
        self._numbers = count()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def order(self, order: str, **fields: Any) -> Future[dict[str, Any]]:
        """Gives an order. The result of the future is the answer, and its error that of the helper."""
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = future
            stdin = self.process.process.stdin
            assert stdin is not None
            try:
                stdin.write(json.dumps({"id": number, "order": order, **fields}) + "\n")
                stdin.flush()
            except OSError:
                self._fail()
        return future

    def close(self) -> None:
        """Closes the pipes of a helper that has ended."""
        self._reader.join()
        for stream in (self.process.process.stdin, self.process.process.stdout):
            assert stream is not None
            # An order that the helper did not read is in the buffer.
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _read(self) -> None:
        stdout = self.process.process.stdout
        assert stdout is not None
        for line in stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer.pop("id"))
            if "error" in answer:
                future.set_exception(self.process.error(f"failed: {answer['error']}"))
            else:
                future.set_result(answer)
        with self._lock:
            self._fail()

    def _fail(self) -> None:
        for future in self._waiting.values():
            future.set_exception(self.process.error("ended"))
        self._waiting.clear()


def pipes() -> dict[str, Any]:
    """Options of a process of a helper."""
    return {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
