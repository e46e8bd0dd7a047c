"""Outage decisions, and their hand-over to the service once it answers again."""

import logging
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from threading import Event, Lock
from typing import Any, cast

from leeward.client.fallback import Fallback
from leeward.client.http import Http, is_away
from leeward.client.problems import ProblemError, UnreachableError
from leeward.client.types import Decision

LONGEST_WAIT_S = 60.0
"""Longest time between two attempts to hand a decision over."""

log = logging.getLogger("leeward.client")


class MadeAlone:
    """Outage decisions of a client. Threads may share it."""

    def __init__(self, most: int) -> None:
        """No decisions yet; at most `most` of each state are stored, and the oldest are dropped."""
        self._most = most
        self._lock = Lock()
        self._held: dict[str, Decision] = {}
        self._handed: dict[str, tuple[Decision, str]] = {}

    def add(self, decision: Decision) -> Decision:
        """Stores a decision, and returns the earlier one if another thread decided the same request."""
        with self._lock:
            decision = self._held.setdefault(decision["id"], decision)
            while len(self._held) > self._most:
                del self._held[next(iter(self._held))]
        return decision

    def get(self, decision: str) -> Decision | None:
        """The decision of an id, held or handed over; None if it was taken or released."""
        with self._lock:
            handed = self._handed.get(decision)
            return self._held.get(decision) if handed is None else handed[0]

    def held(self) -> list[Decision]:
        """Decisions that were neither handed over, taken nor released, the earliest first."""
        with self._lock:
            return list(self._held.values())

    def take(self) -> list[Decision]:
        """Returns the held decisions, and forgets them."""
        with self._lock:
            held, self._held = self._held, {}
        return list(held.values())

    def remove(self, decision: str) -> Decision | None:
        """Forgets a held decision, and returns it; None if it is not held."""
        with self._lock:
            return self._held.pop(decision, None)

    def id_at_service(self, decision: str) -> str | None:
        """Id at the service of a decision that was handed over; None for another one."""
        with self._lock:
            handed = self._handed.get(decision)
        return None if handed is None else handed[1]

    def forget(self, decision: str) -> None:
        """Forgets a decision that was handed over and has ended."""
        with self._lock:
            self._handed.pop(decision, None)

    def note_handed(self, decision: str, at_service: str) -> bool:
        """Notes the id that a decision has at the service; false if it was taken or released meanwhile."""
        with self._lock:
            held = self._held.pop(decision, None)
            if held is None:
                return False
            self._handed[decision] = (held, at_service)
            while len(self._handed) > self._most:
                del self._handed[next(iter(self._handed))]
        return True


class HandOver:
    """Commits outage decisions to the service, in a thread of its own."""

    def __init__(
        self,
        http: Http,
        settings: Fallback,
        made: MadeAlone,
        start: Callable[[Callable[[], None]], None],
        now: Callable[[], datetime],
    ) -> None:
        """A hand-over of the decisions in `made`; nothing is sent before `begin`."""
        self._http = http
        self._settings = settings
        self._made = made
        self._start = start
        self._now = now
        self._lock = Lock()
        self._runs = False
        self._refused: set[str] = set()
        self._ended: list[str] = []

    def begin(self) -> None:
        """Begins to hand over, unless it has begun: the client has just decided alone."""
        with self._lock:
            if self._runs or not self._settings.hand_over:
                return
            self._runs = True
        self._start(self._run)

    def _run(self) -> None:
        wait_s, handed = self._settings.retry_s, 0
        try:
            while True:
                pending = self._pending()
                if not pending and self._release_ended():
                    # `begin` sees either the end of this thread, or its decision is in this list.
                    with self._lock:
                        if not self._pending() and not self._ended:
                            self._runs = False
                            break
                    continue
                Event().wait(wait_s)
                before = handed
                for decision in pending:
                    outcome = self._hand_over(decision)
                    if outcome is None:
                        break
                    handed += outcome
                is_back = handed > before
                wait_s = self._settings.retry_s if is_back else min(2 * wait_s, LONGEST_WAIT_S)
        except BaseException:
            self._runs = False
            raise
        if handed:
            log.warning("%d decisions made alone were handed over to the service", handed)

    def _pending(self) -> list[Decision]:
        held = self._made.held()
        self._refused &= {decision["id"] for decision in held}
        return [decision for decision in held if decision["id"] not in self._refused]

    def _hand_over(self, decision: Decision) -> bool | None:
        """Hands a decision over; false if there is nothing to hand over, None if the service is away."""
        if not self._release_ended():
            return None
        expires = decision["expires"]
        if expires is not None and datetime.fromisoformat(expires) <= self._now():
            self._made.remove(decision["id"])
            return False
        try:
            at_service = self._commit(decision)
        except (ProblemError, UnreachableError) as error:
            is_later = isinstance(error, ProblemError) and (error.passes or error.word == "follower")
            if is_away(error) or is_later:
                return None
            log.warning("the service does not accept decision %s, made alone: %s", decision["id"], error)
            self._refused.add(decision["id"])
            return False
        if not self._made.note_handed(decision["id"], at_service):
            # Its work ended, or its caller took it, while it was sent.
            self._ended.append(at_service)
            return False
        return True

    def _release_ended(self) -> bool:
        """Releases decisions whose work ended while they were handed over; false if the service is away."""
        while self._ended:
            try:
                self._http.ask("DELETE", f"/v1/commitments/{self._ended[0]}")
            except ProblemError as error:
                if is_away(error) or error.passes or error.word == "follower":
                    return False
            except UnreachableError:
                return False
            del self._ended[0]
        return True

    def _commit(self, decision: Decision) -> str:
        if decision["fallback"]["outcome_unknown"]:
            # The service may have decided the request too. Its key then belongs to that decision.
            try:
                return self._send(decision, decision["key"])
            except ProblemError as error:
                if error.word not in ("reused", "sequence"):
                    raise
                if error.word == "reused":
                    self._release_first(decision)
        return self._send(decision, "alone:" + sha256(decision["id"].encode()).hexdigest())

    def _send(self, decision: Decision, key: str | None) -> str:
        """Commits a decision under a key, or, without a key, under the sequence of its request."""
        request, headers = _named(decision, key)
        body = {"hosts": decision["hosts"], decision["kind"]: request, "chosen": decision["time"]}
        try:
            return self._ask("/v1/commitments", body, headers)
        except ProblemError as error:
            if error.field != "chosen":
                raise
        # The clock of the client is ahead of that of the service.
        del body["chosen"]
        return self._ask("/v1/commitments", body, headers)

    def _release_first(self, decision: Decision) -> None:
        """Releases the decision that the service made on a request: the work is on the client's hosts."""
        request, headers = _named(decision, decision["key"])
        first = self._ask(f"/v1/place/{decision['kind']}", request, headers)
        self._http.ask("DELETE", f"/v1/commitments/{first}")

    def _ask(self, path: str, body: dict[str, Any], headers: dict[str, str] | None) -> str:
        timeout_s = self._settings.wait_s
        answer = self._http.ask("POST", path, None, body, headers, timeout_s=timeout_s, patience_s=0)
        return cast(str, answer.body["id"])


def _named(decision: Decision, key: str | None) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Request of a decision and its headers, with a key or the sequence of the request."""
    if key is not None:
        return dict(decision["request"]), {"idempotency-key": key}
    return dict(decision["request"]) | {"client": decision["client"], "sequence": decision["sequence"]}, None
