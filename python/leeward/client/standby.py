"""Placements by the service, or outage decisions of the client alone while the service is away.

The client reads cluster and hosts, and checks if the service is back, in threads of their own. Placements
never wait for these.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread
from typing import cast

from leeward._native import Cluster
from leeward._quantities import read_seconds
from leeward.client.alone import Choice, Request, State, choose, read_state
from leeward.client.breaker import Breaker
from leeward.client.fallback import Fallback
from leeward.client.handover import HandOver, MadeAlone
from leeward.client.http import Http, dry_run_query, is_away
from leeward.client.problems import ProblemError, UnreachableError
from leeward.client.types import Alone, Decision
from leeward.errors import InputError

NOTE = "the service is away, so the client decided alone"

log = logging.getLogger("leeward.client")


def _in_thread(task: Callable[[], None]) -> None:
    Thread(target=task, name="leeward-client", daemon=True).start()


def _now() -> datetime:
    return datetime.now(UTC)


class Standby:
    """Makes outage decisions, and stores them for the caller. Threads may share it."""

    def __init__(
        self,
        http: Http,
        settings: Fallback,
        start: Callable[[Callable[[], None]], None] = _in_thread,
        now: Callable[[], datetime] = _now,
    ) -> None:
        """A standby before the first placement.

        Args:
            http: Connection to the service.
            settings: Policies, times and limits.
            start: Runs a task in the background.
            now: Time of the day, for decisions.
        """
        self._http = http
        self._settings = settings
        self._start = start
        self._now = now
        self._breaker = Breaker(settings.retry_s, http.clock)
        self._lock = Lock()
        self._state = State(settings.cluster) if isinstance(settings.cluster, Cluster) else None
        self._reads = False
        self._next_read = -float("inf")
        self._cannot_read = False
        self._made = MadeAlone(settings.most)
        self._hand_over = HandOver(http, settings, self._made, start, now)
        self.fallbacks = 0

    # ---- placements -----------------------------------------------------------------------------------

    def place(self, request: Request, send: Callable[..., Decision]) -> Decision:
        """Decision of the service, or of the client alone while the service is away.

        Args:
            request: The request.
            send: Sends the request with limits (`timeout_s` and `patience_s`), and returns the decision.

        Raises:
            RefusedError: The policy finds no placement.
            ProblemError: A field is invalid, or the service refuses.
            UnreachableError: The service is away, and the client knows no cluster.
        """
        if (earlier := self._made_before(request)) is not None:
            return earlier
        if not self._breaker.admits():
            self._check_if_due()
            return self._decide(request, self._breaker.reason, outcome_unknown=False)
        wait_s = self._settings.wait_s
        limits = {"timeout_s": min(self._http.timeout_s or wait_s, wait_s), "patience_s": wait_s}
        try:
            # Without a cluster the client cannot decide, so it waits as a client without outage decisions.
            decision = send() if self._state is None else send(**limits)
        except (ProblemError, UnreachableError) as error:
            if not is_away(error):
                self._end_outage()
                raise
            if self._state is None:
                self._breaker.dropped()
                raise
            self._begin_outage(str(error))
            return self._decide(request, str(error), error.outcome_unknown)
        except BaseException:
            self._breaker.dropped()
            raise
        self._end_outage()
        self._read_if_due()
        return decision

    def _decide(self, request: Request, reason: str, outcome_unknown: bool) -> Decision:
        state = self._state
        assert state is not None, "an outage begins only with a state"
        settings = self._settings
        with self._lock:
            self.fallbacks += 1
        policy = settings.replicas if request.kind == "replicas" else settings.tasks
        choice = choose(state, request, policy, settings.seed)
        age_s = None if state.read_at is None else self._http.clock() - state.read_at
        reason = f"outcome unknown: {reason}" if outcome_unknown else reason
        alone: Alone = {"reason": reason, "outcome_unknown": outcome_unknown, "snapshot_age_s": age_s}
        # Another thread may have decided the same request meanwhile, on the same state.
        decision = self._made.add(self._decision(request, choice, alone))
        self._hand_over.begin()
        return decision

    def _decision(self, request: Request, choice: Choice, alone: Alone) -> Decision:
        now = self._now()
        lasts, expires = request.body.get("lasts"), None
        if lasts is not None:
            try:
                expires = now + timedelta(seconds=read_seconds("lasts", lasts))
            except (InputError, OverflowError) as error:
                message = error.message if isinstance(error, InputError) else f"`{lasts}`: it is too long"
                raise ProblemError("invalid", "Invalid field", 422, message, "lasts") from None
        return {
            "id": request.id,
            "time": _text(now),
            "kind": request.kind,
            "request": dict(request.body),
            "policy": choice.policy,
            "ref": request.body.get("ref"),
            "hosts": choice.hosts,
            "racks": [],
            "source": choice.source,
            "limit": None,
            "epoch": 0,
            "oldest_telemetry": None,
            "telemetry_age_s": None,
            "note": NOTE,
            "why": choice.why,
            "client": request.client,
            "sequence": request.sequence,
            "key": request.key,
            "expires": None if expires is None else _text(expires),
            "reserved_until": None,
            "released": None,
            "mode": "off",
            "by_default": True,
            "beside": None,
            "fallback": alone,
        }

    # ---- outage decisions -----------------------------------------------------------------------------

    def made(self) -> list[Decision]:
        """Outage decisions that were neither handed over, taken nor released, the earliest first."""
        return self._made.held()

    def take_made(self) -> list[Decision]:
        """Returns these decisions, and forgets them."""
        return self._made.take()

    def release(self, decision: str, dry_run: bool = False) -> Decision:
        """Ends an outage decision, unless this is a dry run: at the service, if it was handed over."""
        at_service = self._made.id_at_service(decision)
        if at_service is not None:
            path = f"/v1/commitments/{at_service}"
            released = self._http.ask("DELETE", path, dry_run_query(dry_run)).body
            if not dry_run:
                self._made.forget(decision)
            return cast(Decision, released)
        made = self._made.get(decision) if dry_run else self._made.remove(decision)
        if made is None:
            alone: Alone = {"reason": "", "outcome_unknown": False, "snapshot_age_s": None}
            made = self._decision(Request("", {}, None, None, None), Choice([], "", []), alone)
        return {**made, "id": decision, "released": _text(self._now())}

    def _made_before(self, request: Request) -> Decision | None:
        made = self._made.get(request.id)
        if made is not None and (made["kind"], made["request"]) != (request.kind, dict(request.body)):
            title = "The key or sequence belongs to another request"
            detail = f"this key or sequence was used for decision {made['id']}; each request needs its own"
            raise ProblemError("reused", title, 422, detail)
        return made

    # ---- the outage -----------------------------------------------------------------------------------

    def _begin_outage(self, reason: str) -> None:
        if self._breaker.failed(reason):
            policies = f"{self._settings.replicas} (replicas) and {self._settings.tasks} (tasks)"
            log.warning("the service is away: %s; the client decides alone by %s", reason, policies)

    def _end_outage(self) -> None:
        length_s = self._breaker.succeeded()
        if length_s is not None:
            log.warning(
                "the service is back after %.1f s; %d decisions made alone are not in its ledger%s",
                length_s,
                len(self.made()),
                " yet" if self._settings.hand_over else "",
            )

    def _check_if_due(self) -> None:
        if self._breaker.must_check():
            self._start(self._check)

    def _check(self) -> None:
        ready = False
        try:
            with self._http.open_response("GET", "/readyz", timeout_s=self._settings.wait_s):
                ready = True
        except (ProblemError, UnreachableError) as error:
            # Any other answer is one for the caller, who gets it from the next placement.
            ready = not is_away(error)
        finally:
            self._breaker.checked(ready)

    # ---- the state ------------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads cluster and hosts now.

        Raises:
            ProblemError: The service refuses.
            UnreachableError: The service did not answer.
            InputError: The service's cluster is invalid for this version of the package.
        """
        with self._lock:
            self._next_read = self._http.clock() + self._settings.refresh_s
        self._state = read_state(self._http, self._state)

    def _read_if_due(self) -> None:
        with self._lock:
            if self._reads or self._http.clock() < self._next_read:
                return
            self._reads = True
        self._start(self._read)

    def _read(self) -> None:
        try:
            self.read()
            self._cannot_read = False
        except (ProblemError, UnreachableError, InputError) as error:
            if not self._cannot_read:
                log.warning("the client cannot read the state of the cluster for outage decisions: %s", error)
            self._cannot_read = True
        finally:
            self._reads = False


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
