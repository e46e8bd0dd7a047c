"""Decision if a request is sent to a service that may be away."""

from collections.abc import Callable
from threading import Lock

LONGEST_RETRY_S = 60.0
"""Longest time between checks of a service that seems to be back and does not answer requests."""


class Breaker:
    """A circuit breaker. Threads may share it.

    While the service answers, every request is sent. After a failure none is, until a check in the background
    finds the service ready. Then a single request is sent: if it succeeds, the service is back; if it fails,
    the next check follows after twice the time.
    """

    def __init__(self, retry_s: float, clock: Callable[[], float]) -> None:
        """A breaker of a service that is not away.

        Args:
            retry_s: Time between checks.
            clock: Clock in seconds, with any origin.
        """
        self._retry_s = retry_s
        self._clock = clock
        self._lock = Lock()
        self._since: float | None = None
        self._reason = ""
        self._wait_s = retry_s
        self._next_check = 0.0
        self._checks = False
        self._ready = False
        self._tries = False

    @property
    def reason(self) -> str:
        """Reason for which the service is away; empty if it is not."""
        return self._reason

    def admits(self) -> bool:
        """True if the caller must send a request, and call `failed`, `succeeded` or `dropped` after it."""
        with self._lock:
            if self._since is None:
                return True
            if not self._ready or self._tries:
                return False
            self._tries = True
            return True

    def must_check(self) -> bool:
        """True if the caller must check the service, and call `checked` after it."""
        with self._lock:
            is_due = self._since is not None and not self._ready and self._clock() >= self._next_check
            if not is_due or self._checks:
                return False
            self._checks = True
            return True

    def checked(self, ready: bool) -> None:
        """Takes the outcome of a check."""
        with self._lock:
            self._checks = False
            self._ready = ready and self._since is not None
            self._next_check = self._clock() + self._wait_s

    def failed(self, reason: str) -> bool:
        """Takes the failure of a request; true if the outage begins with it."""
        with self._lock:
            begins = self._since is None
            if begins:
                self._since = self._clock()
            elif self._tries:
                self._wait_s = min(2 * self._wait_s, max(LONGEST_RETRY_S, self._retry_s))
            self._reason, self._ready, self._tries = reason, False, False
            self._next_check = self._clock() + self._wait_s
            return begins

    def succeeded(self) -> float | None:
        """Takes the success of a request; the length of the outage in seconds, if it ends with it."""
        with self._lock:
            if self._since is None:
                return None
            length = self._clock() - self._since
            self._since, self._reason, self._wait_s = None, "", self._retry_s
            self._ready = self._tries = False
            return length

    def dropped(self) -> None:
        """Takes the end of a request without an outcome, such as an interrupt."""
        with self._lock:
            self._tries = False
