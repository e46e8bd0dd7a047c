"""Placements: requests and releases."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack, cast

from leeward._quantities import read_move_cost
from leeward.client.alone import ALONE, Request
from leeward.client.base import ClientBase
from leeward.client.http import dry_run_query, part, time_text
from leeward.client.types import BatchResult, Decision
from leeward.errors import InputError, names

Labels = Mapping[str, str | Sequence[str]]
"""Values of labels by key, or several accepted values."""

KINDS = {"/v1/place/replicas": "replicas", "/v1/place/tasks": "tasks"}
"""Kinds of placements that may be outage decisions, by path."""


class PlacementOptions(TypedDict, total=False):
    """Optional fields of every placement."""

    lasts: str | None
    """Time after which the placement ends by itself, such as `2h`."""
    reserve: str | None
    """Time for which the placement is held, such as `30s`: it ends then, unless `confirm` confirms it."""
    client: str | None
    """Name of a client that numbers its requests; requires `sequence`."""
    sequence: int | None
    """Number of the request, above those of earlier requests."""
    key: str | None
    """Unique key of the request; by default a new one, if the request has no number."""
    ref: str | None
    """Name of the placed thing in the caller's words, such as the id of a block; a search finds it."""
    dry_run: bool
    """True to decide without a commit: nothing is placed, and the key may be used again."""


class DecisionConditions(TypedDict, total=False):
    """Conditions of a search of decisions."""

    since: datetime | None
    """Earliest time of the decision, with a zone."""
    until: datetime | None
    """Time before which the decision was made."""
    client: str | None
    """Client of the request."""
    key: str | None
    """Idempotency key of the request."""
    ref: str | None
    """Name of the placed thing in the caller's words."""
    job: str | None
    """Job of the tasks, or name of the app without a job."""
    host: str | None
    """Host of the decision."""
    rack: str | None
    """Rack of one of the hosts."""
    policy: str | None
    """Policy, with or without its settings."""
    fallback: bool | None
    """True for decisions that Leeward's policy left to the default policy."""


class PlacementMethods(ClientBase):
    """Places blocks, tasks and volumes; the work of each decision counts until it is released."""

    def place_replicas(
        self,
        size: str,
        *,
        writer: str | None = None,
        replicas: int | None = None,
        coding: str | None = None,
        fault_domains: int | None = None,
        collocate: Sequence[str] | str = (),
        max_imbalance: float | None = None,
        existing: Sequence[str] | str = (),
        prefer: Sequence[str] | str = (),
        storage: str | None = None,
        blocks_left: int = 1,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        labels: Labels | None = None,
        **options: Unpack[PlacementOptions],
    ) -> Decision:
        """Chooses hosts for the copies of a block, or for the chunks of its stripe.

        The work counts until the decision is released.

        Args:
            size: Size of the block, such as `256MiB`.
            writer: Host that writes; None for a writer outside the cluster.
            replicas: Copies, the writer's included; by default 3. Not with `coding`.
            coding: Erasure code, such as `6+3`: instead of copies, each host holds a chunk.
            fault_domains: Number of fault domains, besides that of the first copy, that must hold a copy.
                With `coding`, number of fault domains that may be lost.
            collocate: Hosts of related files: no other host may hold a copy.
            max_imbalance: Greatest excess of a host's used share of storage over the average of all hosts,
                0 to 1.
            existing: Hosts that have a copy already: `replicas` counts the new copies only, and without a
                writer, one of these hosts sends them. With `coding`, hosts that have a chunk: only the others
                are placed, and the host of the first one rebuilds them.
            prefer: Hosts to try first, in this order.
            storage: Type of storage that holds the copies, as `type` of devices in the cluster file.
            blocks_left: Number of blocks of the file that are yet to be written, this one included.
            exclude: Hosts, racks and pods that must not hold a copy.
            tags: Tags that hosts must have.
            labels: Labels that hosts must have, each with its value or with one of several values.
            **options: Lifetime and client of the request, as in `PlacementOptions`.

        Raises:
            RefusedError: The policy finds no placement.
            ProblemError: The service refuses.
            UnreachableError: The service did not answer, so that the outcome is unknown; a request with the
                same key does not place again.
        """
        body = {
            "size": size,
            "writer": writer,
            "replicas": replicas,
            "coding": coding,
            "fault_domains": fault_domains,
            "collocate": names(collocate),
            "max_imbalance": max_imbalance,
            "existing": names(existing),
            "prefer": names(prefer),
            "storage": storage,
            "blocks_left": blocks_left,
            "exclude": names(exclude),
            "tags": names(tags),
            "labels": None if labels is None else dict(labels),
        }
        return self._place("/v1/place/replicas", body, **options)

    def place_tasks(
        self,
        app: Mapping[str, Any],
        *,
        job: str | None = None,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        labels: Labels | None = None,
        apart: Literal["host", "rack"] | None = None,
        apart_from: Mapping[str, Literal["host", "rack"]] | None = None,
        **options: Unpack[PlacementOptions],
    ) -> Decision:
        """Chooses hosts for tasks. The tasks count until the decision is released.

        Args:
            app: Tasks and the transfers between them, as in an app file without `matrix`.
            job: Job of the tasks, which are spread over racks.
            exclude: Hosts, racks and pods that must not run a task.
            tags: Tags that hosts must have.
            labels: Labels that hosts must have, each with its value or with one of several values.
            apart: Level at which the tasks of the job are apart, those that run already included.
            apart_from: Level at which the tasks are apart from those of other jobs, by job.
            **options: Lifetime and client of the request, as in `PlacementOptions`.

        Raises:
            RefusedError: The policy finds no placement.
            ProblemError: The service refuses.
            UnreachableError: The service did not answer; see `place_replicas`.
        """
        body = {
            "app": dict(app),
            "job": job,
            "exclude": names(exclude),
            "tags": names(tags),
            "labels": None if labels is None else dict(labels),
            "apart": apart,
            "apart_from": None if apart_from is None else dict(apart_from),
        }
        return self._place("/v1/place/tasks", body, **options)

    def promise(self, workload: Mapping[str, Any], **options: Unpack[PlacementOptions]) -> Decision:
        """Grants a workload its SLO on the server of its volume, if the SLO can be kept, until a release.

        Args:
            workload: Fields as in a file of workloads, with `server` and without names of files.
            **options: Lifetime and client of the request, as in `PlacementOptions`.

        Raises:
            RefusedError: The SLO of this or of another workload would not be kept.
            ProblemError: The service refuses.
            UnreachableError: The service did not answer; see `place_replicas`.
        """
        return self._place("/v1/workloads", {"workload": dict(workload)}, **options)

    def place_volume(self, workload: Mapping[str, Any], **options: Unpack[PlacementOptions]) -> Decision:
        """Finds a server for the volume of a workload without `server`, and grants its SLO."""
        return self._place("/v1/place/volumes", {"workload": dict(workload)}, **options)

    def _place(
        self,
        path: str,
        body: dict[str, Any],
        *,
        lasts: str | None = None,
        reserve: str | None = None,
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
        ref: str | None = None,
        dry_run: bool = False,
    ) -> Decision:
        body |= {"lasts": lasts, "reserve": reserve, "ref": ref}
        body = {name: value for name, value in body.items() if value is not None}
        sent = body
        if client is not None or sequence is not None:
            sent = body | {"client": client, "sequence": sequence}
        elif key is None:
            key = self._new_key()
        headers = None if key is None else {"idempotency-key": key}

        def send(**limits: float) -> Decision:
            query = dry_run_query(dry_run)
            return cast(Decision, self._http.ask("POST", path, query, sent, headers, **limits).body)

        is_named = key is not None or (client is not None and sequence is not None)
        # The question of a dry run is the choice of the service, and only the service knows running tasks and
        # holds reservations.
        needs_service = dry_run or any(name in body for name in ("reserve", "apart", "apart_from"))
        if self._standby is None or path not in KINDS or not is_named or needs_service:
            return send()
        return self._standby.place(Request(KINDS[path], body, client, sequence, key), send)

    def commit(
        self,
        hosts: Sequence[str],
        *,
        replicas: Mapping[str, Any] | None = None,
        tasks: Mapping[str, Any] | None = None,
        chosen: datetime | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Decision:
        """Commits a placement that the caller decided itself, until its decision is released.

        The placement is a fact, so the service refuses no host that it knows: `why` of the decision has the
        reason for which a policy would have refused a host.

        Args:
            hosts: The hosts: in the order of the chain of replicas, or of the tasks.
            replicas: Fields of the request, as in the body of `POST /v1/place/replicas`; this or `tasks`.
            tasks: Fields of the request, as in the body of `POST /v1/place/tasks`.
            chosen: Time of the choice, with a time zone; None for now. `lasts` of the request begins then.
            key: Unique key of the request; by default a new one, if the request has no `client`.
            dry_run: True to check the placement without a commit.

        Raises:
            ProblemError: The service refuses.
            UnreachableError: The service did not answer; see `place_replicas`.
        """
        body: dict[str, Any] = {"hosts": names(hosts)}
        for kind, request in (("replicas", replicas), ("tasks", tasks)):
            if request is not None:
                body[kind] = dict(request)
                if key is None and "client" not in request:
                    key = self._new_key()
        if chosen is not None:
            body["chosen"] = time_text("chosen", chosen)
        headers = None if key is None else {"idempotency-key": key}
        answer = self._http.ask("POST", "/v1/commitments", dry_run_query(dry_run), body, headers)
        return cast(Decision, answer.body)

    def place_batch(
        self, requests: Sequence[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[BatchResult]:
        """Places a list of requests, each with its own result, in one commit.

        Args:
            requests: At most 100 requests. Each has one of `replicas`, `tasks`, `volumes` and `workload`,
                with the body of the placement of this kind, and optionally a unique `key`; by default a new
                one, if the body has no `client`.
            dry_run: True to decide each request as if it were alone, without a commit.

        Returns:
            For each request its `status`, and its `decision` or its `problem`. A batch whose answer was lost
            may be sent again with its keys: each request is placed once.

        Raises:
            ProblemError: The service refuses the whole batch.
            UnreachableError: The service did not answer; see `place_replicas`.
        """
        items = [dict(request) for request in requests]
        for item in items:
            bodies = [body for kind, body in item.items() if kind != "key"]
            if "key" not in item and not any("client" in body for body in bodies):
                item["key"] = self._new_key()
        answer = self._http.ask("POST", "/v1/place/batch", dry_run_query(dry_run), {"requests": items})
        return cast(list[BatchResult], answer.body["results"])

    def commit_batch(
        self, commitments: Sequence[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[BatchResult]:
        """Commits a list of placements that the caller decided itself, each with its own result.

        Args:
            commitments: At most 100 placements, with the fields of `POST /v1/commitments`: `hosts`, either
                `replicas` or `tasks`, and optionally `chosen` (text of a time) and a unique `key`; by default
                a new one, if the request has no `client`.
            dry_run: True to check each placement as if it were alone, without a commit.

        Returns:
            For each placement its `status`, and its `decision` or its `problem`.

        Raises:
            ProblemError: The service refuses the whole batch.
            UnreachableError: The service did not answer; see `place_replicas`.
        """
        items = [dict(commitment) for commitment in commitments]
        for item in items:
            requests = (item.get(kind) or {} for kind in ("replicas", "tasks"))
            if "key" not in item and not any("client" in request for request in requests):
                item["key"] = self._new_key()
        body = {"commitments": items}
        answer = self._http.ask("POST", "/v1/commitments/batch", dry_run_query(dry_run), body)
        return cast(list[BatchResult], answer.body["results"])

    def release_batch(self, decisions: Sequence[str], *, dry_run: bool = False) -> list[BatchResult]:
        """Releases a list of at most 1,000 decisions of the service, each with its own result, in one commit.

        Returns:
            For each decision its `status`, and the `decision` or a `problem`.

        Raises:
            ProblemError: The service refuses the whole list.
            UnreachableError: The service did not answer. Another call changes nothing that has ended.
        """
        body = {"decisions": list(decisions)}
        answer = self._http.ask("POST", "/v1/release", dry_run_query(dry_run), body)
        return cast(list[BatchResult], answer.body["results"])

    def confirm(self, decision: str, *, dry_run: bool = False) -> Decision:
        """Confirms a decision that was placed with `reserve`, which then stays until its release.

        Raises:
            RefusedError: The decision has ended.
            ProblemError: The service refuses.
        """
        path = f"/v1/decisions/{part(decision)}/confirm"
        return cast(Decision, self._http.ask("POST", path, dry_run_query(dry_run)).body)

    def reevaluate(
        self,
        decision: str,
        *,
        remaining: Sequence[Mapping[str, Any]] | None = None,
        move_cost: str | float | None = None,
        margin: float = 0.1,
        dry_run: bool = False,
    ) -> Decision:
        """Decides if the tasks of a running app should move, and moves them if this is worth the cost.

        Args:
            decision: Id of the decision that placed the app.
            remaining: Transfers that are left, each with `from`, `to` (names of tasks) and `bytes` (a size
                with its unit); by default all transfers of the app.
            move_cost: A size: the state that each task which moves carries. Or a time, or a number of
                seconds: the app stands still for it. By default each task carries its memory.
            margin: Share of the remaining time that the moves must save, their cost included: 0 to 1.
            dry_run: True to decide without a move.

        Returns:
            The decision; its `reevaluation` has the moves, the forecasts and the reason.

        Raises:
            RefusedError: The decision has ended.
            ProblemError: The service refuses.
        """
        body: dict[str, Any] = {"margin": margin}
        if remaining is not None:
            body["remaining"] = [dict(transfer) for transfer in remaining]
        if move_cost is not None:
            pause_s, state = read_move_cost(move_cost)
            body |= {"pause": f"{pause_s:f}s", "state": f"{state}B"}
        path = f"/v1/decisions/{part(decision)}/reevaluate"
        return cast(Decision, self._http.ask("POST", path, dry_run_query(dry_run), body).body)

    def release(self, decision: str, *, dry_run: bool = False) -> Decision:
        """Ends the work of a decision, which stops counting. A second release changes nothing.

        An outage decision of this client ends at the service if it was handed over, and else only in
        `made_alone`. With `dry_run`, returns the decision and ends nothing.
        """
        if self._standby is not None and decision.startswith(ALONE):
            return self._standby.release(decision, dry_run)
        path = f"/v1/commitments/{part(decision)}"
        return cast(Decision, self._http.ask("DELETE", path, dry_run_query(dry_run)).body)

    def decision(self, decision: str) -> Decision:
        """A stored decision."""
        return cast(Decision, self._get(f"/v1/decisions/{part(decision)}"))

    def decisions(
        self, kind: str | None = None, most: int | None = None, **conditions: Unpack[DecisionConditions]
    ) -> Iterator[Decision]:
        """Stored decisions of one kind, or of all kinds, the latest first; at most `most`.

        Args:
            kind: `replicas`, `tasks`, `workload` or `volumes`.
            most: Largest number of decisions.
            **conditions: Further conditions, all of which must hold.
        """
        times = ((name, conditions.get(name)) for name in ("since", "until"))
        query = dict(conditions) | {
            name: time_text(name, at) for name, at in times if isinstance(at, datetime)
        }
        return self._all("/v1/decisions", most, kind=kind, **query)

    def commitments(self, kind: str | None = None) -> Iterator[Decision]:
        """Decisions that hold a part of the network."""
        return self._all("/v1/commitments", kind=kind)

    # ---- outage decisions -----------------------------------------------------------------------------

    @property
    def fallbacks(self) -> int:
        """Number of outage decisions, and of placements that the client refused in an outage."""
        return 0 if self._standby is None else self._standby.fallbacks

    @property
    def made_alone(self) -> list[Decision]:
        """Outage decisions that the client still holds, the earliest first.

        A decision leaves the list when it is handed over to the service, taken or released.
        """
        return [] if self._standby is None else self._standby.made()

    def take_made_alone(self) -> list[Decision]:
        """Returns the decisions of `made_alone` and forgets them, for a caller that hands them over."""
        return [] if self._standby is None else self._standby.take_made()

    def prepare_fallback(self) -> None:
        """Reads the cluster and the state of its hosts now, for outage decisions.

        The client also reads them by itself, in the background after placements.

        Raises:
            InputError: The client makes no outage decisions, or the service's cluster is invalid for it.
            ProblemError: The service refuses.
            UnreachableError: The service did not answer.
        """
        if self._standby is None:
            raise InputError.about("fallback", "the client has none; pass `fallback=Fallback()` to `Client`")
        self._standby.read()
