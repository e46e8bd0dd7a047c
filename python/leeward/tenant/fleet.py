"""The helpers of a tenant's hosts: starts one on each host, gives orders, and returns events.

The helpers end with the fleet, in any case: their orders come through a pipe that only this process holds.
"""

import collections
import itertools
import json
import os
import queue
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TextIO

from leeward.tenant.hosts import Host

ANSWER_S = 20.0
"""Time in which a host must answer an order that takes no time by itself."""
END_S = 5.0
"""Time in which a helper ends by itself, before it is killed."""
SILENT_S = 60.0
"""Time without any sign of life after which a host counts as failed."""
_BEATS = 6
"""Signs of life in this time."""
_CHECK_S = 1.0
CAUSE_S = 0.5
"""Time after a failed order in which the end of a helper counts as its reason."""
PORT = 7602
"""Port for data on each host."""
_LAST_LINES = 20
Event = dict[str, Any]
"""What a helper says: `event`, `host`, and fields of the event."""


class HostError(OSError):
    """A host of the tenant fails: it is unreachable, does not answer, or its helper has ended."""

    def __init__(self, host: str, why: str) -> None:
        """Takes the name of the host, and the reason."""
        super().__init__(f"host {host}: {why}")
        self.host = host


class Fleet:
    """Helpers on hosts; a context manager that starts and ends them."""

    def __init__(
        self,
        hosts: Sequence[Host],
        *,
        port: int = PORT,
        answer_s: float = ANSWER_S,
        silent_s: float = SILENT_S,
    ) -> None:
        """Takes hosts and times.

        Args:
            hosts: Hosts on which to start helpers.
            port: Port for data; 0: any free port.
            answer_s: Time in which a host must answer an order.
            silent_s: Time in which a host must give a sign of life, for which it is asked more often.
        """
        self.hosts = {host.name: host for host in hosts}
        self.ports: dict[str, int] = {}
        self._port = port
        self._answer_s, self._silent_s = answer_s, silent_s
        self._helpers: dict[str, subprocess.Popen[str]] = {}
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self._writing: dict[str, threading.Lock] = {}
        self._heard_s: dict[str, float] = {}
        """Time of the last event of each host."""
        self._last_lines: dict[str, collections.deque[str]] = {}
        self._reading: dict[str, threading.Thread] = {}
        """Threads that store the last lines of each helper."""
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._token = secrets.token_hex(16)

    def __enter__(self) -> Self:
        """Starts the helpers.

        Raises:
            HostError: A helper does not start, or does not answer in time.
        """
        try:
            for host in self.hosts.values():
                self._start(host)
            beats = threading.Thread(target=self._ask_for_signs_of_life, daemon=True)
            self._threads.append(beats)
            beats.start()
            for name, host in self.hosts.items():
                listen = "::" if ":" in host.address else "0.0.0.0"
                self.order(name, "begin", address=listen, port=self._port, token=self._token)
            for event in self.answers("ready", self.hosts):
                self.ports[event["host"]] = event["port"]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the helpers with everything that they started."""
        self.close()

    def next_number(self) -> int:
        """A number for a transfer or a command, not used before."""
        return next(self._numbers)

    def order(self, host: str, do: str, **fields: Any) -> None:
        """Gives an order to the helper of a host.

        Raises:
            HostError: The helper has ended.
        """
        helper = self._helpers[host]
        assert helper.stdin is not None
        try:
            with self._writing[host]:
                helper.stdin.write(json.dumps({"do": do, **fields}) + "\n")
                helper.stdin.flush()
        except OSError:
            raise self._ended(host) from None

    def send(self, number: int, source: str, target: str, size: int) -> None:
        """Orders one host to send bytes to another."""
        to = [self.hosts[target].address, self.ports[target]]
        self.order(source, "send", id=number, to=to, bytes=size)

    def event(self, timeout_s: float) -> Event | None:
        """The next event, or None if there is none in time.

        Raises:
            HostError: A helper has ended, gives no sign of life, or refuses an order.
        """
        until, event = time.monotonic() + timeout_s, None
        while event is None:
            self._check_signs_of_life()
            left = until - time.monotonic()
            try:
                event = self._events.get(timeout=min(max(left, 0), _CHECK_S))
            except queue.Empty:
                if left <= _CHECK_S:
                    return None
        if event["event"] == "ended":
            raise self._ended(event["host"])
        if event["event"] in ("refused", "failed", "unmeasured"):
            raise self._cause(event)
        return event

    def answers(
        self, kind: str, hosts: Sequence[str] | dict[str, Host], timeout_s: float | None = None
    ) -> list[Event]:
        """The answer of each host to an order; other events are dropped.

        Raises:
            HostError: A host does not answer in time, has ended or refuses.
        """
        missing, result = set(hosts), []
        timeout_s = self._answer_s if timeout_s is None else timeout_s
        until = time.monotonic() + timeout_s
        while missing:
            event = self.event(until - time.monotonic())
            if event is None:
                first = next(name for name in hosts if name in missing)
                raise HostError(first, f"no answer within {timeout_s:g} s")
            if event["event"] == kind and event["host"] in missing:
                missing.remove(event["host"])
                result.append(event)
        return result

    def close(self) -> None:
        """Ends the helpers, and waits until they have ended."""
        self._closing.set()
        for name, helper in self._helpers.items():
            try:
                with self._writing[name]:
                    if helper.stdin:
                        helper.stdin.close()
            except OSError:
                # The helper has ended before it read everything.
                pass
        until = time.monotonic() + END_S
        for helper in self._helpers.values():
            try:
                helper.wait(max(until - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                # With the programs that `run` started.
                os.killpg(helper.pid, signal.SIGKILL)
                helper.wait()
        for thread in self._threads:
            thread.join()
        self._helpers, self._heard_s, self._threads, self._reading = {}, {}, [], {}

    def _start(self, host: Host) -> None:
        command = [*host.run, *host.leeward, "tenant", "worker"]
        pipe = subprocess.PIPE
        try:
            # In a session of its own: Ctrl-C reaches this process alone, which ends the helpers in order.
            helper = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise HostError(host.name, f"{command[0]}: {error.strerror or error}") from None
        self._helpers[host.name] = helper
        self._writing[host.name], self._heard_s[host.name] = threading.Lock(), time.monotonic()
        lines = self._last_lines[host.name] = collections.deque(maxlen=_LAST_LINES)
        errors = threading.Thread(target=_keep_last, args=(helper.stderr, lines), daemon=True)
        events = threading.Thread(target=self._read, args=(host.name, helper.stdout), daemon=True)
        self._reading[host.name] = errors
        self._threads += [errors, events]
        errors.start()
        events.start()

    def _read(self, name: str, stream: TextIO) -> None:
        """Passes the events of a helper on, until it ends."""
        with stream:
            for line in stream:
                try:
                    event = json.loads(line)
                    event["host"], kind = name, event["event"]
                except (ValueError, TypeError, KeyError):
                    # A login message of the host.
                    self._last_lines[name].append(line)
                    continue
                self._heard_s[name] = time.monotonic()
                if kind != "beat":
                    self._events.put(event)
        self._events.put({"event": "ended", "host": name})

    def _ask_for_signs_of_life(self) -> None:
        while not self._closing.wait(self._silent_s / _BEATS):
            for name, helper in self._helpers.items():
                # An order that waits for a silent host holds the lock; the end of a helper is an event.
                if self._writing[name].acquire(blocking=False):
                    try:
                        if helper.stdin and not helper.stdin.closed:
                            helper.stdin.write('{"do": "beat"}\n')
                            helper.stdin.flush()
                    except OSError:
                        pass
                    finally:
                        self._writing[name].release()

    def _check_signs_of_life(self) -> None:
        now_s = time.monotonic()
        for name, heard_s in self._heard_s.items():
            # A helper that has ended says why in an event.
            if now_s - heard_s > self._silent_s and self._helpers[name].poll() is None:
                raise HostError(name, f"no answer within {self._silent_s:g} s")

    def _cause(self, event: Event) -> HostError:
        """The error of an order that failed: a helper that ended shortly after is its reason."""
        until = time.monotonic() + CAUSE_S
        while (left := until - time.monotonic()) > 0:
            try:
                later = self._events.get(timeout=left)
            except queue.Empty:
                break
            if later["event"] == "ended":
                return self._ended(later["host"])
        return HostError(event["host"], event["why"])

    def _ended(self, name: str) -> HostError:
        """The error of a helper that has ended, with the last line that it or `ssh` printed."""
        try:
            code = self._helpers[name].wait(1)
        except subprocess.TimeoutExpired:
            return HostError(name, "the helper closed its connection")
        # The last lines may still be in the pipe. A program that the helper started can hold the pipe open.
        self._reading[name].join(1)
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        last = next((line.strip() for line in reversed(self._last_lines[name]) if line.strip()), "")
        return HostError(name, f"the helper ended {how}" + (f": {last}" if last else ""))


def _keep_last(stream: TextIO, lines: collections.deque[str]) -> None:
    with stream:
        lines.extend(stream)
