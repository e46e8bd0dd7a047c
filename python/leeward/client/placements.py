"""Placements: requests and releases."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack, cast

from leeward.client.alone import ALONE, Request
from leeward.client.base import ClientBase
from leeward.client.http import dry_run_query, part, time_text
from leeward.client.types import Decision
from leeward.errors import InputError, names

KINDS = {"/v1/place/replicas": "replicas", "/v1/place/tasks": "tasks"}
"""Kinds of placements that a client can decide alone, by path."""


class PlacementOptions(TypedDict, total=False):
    """Optional fields of every placement."""

    lasts: str | None
    """Time after which the placement ends by itself, such as `2h`."""
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
        replicas: int = 3,
        fault_domains: int | None = None,
        collocate: Sequence[str] | str = (),
        max_imbalance: float | None = None,
        blocks_left: int = 1,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        **options: Unpack[PlacementOptions],
    ) -> Decision:
        """Chooses hosts for the copies of a block. The copies count until the decision is released.

        Args:
            size: Size of the block, such as `256MiB`.
            writer: Host that writes; None for a writer outside the cluster.
            replicas: Copies, the writer's included.
            fault_domains: Number of fault domains, besides that of the first copy, that must hold a copy.
            collocate: Hosts of related files: no other host may hold a copy.
            max_imbalance: Greatest excess of a host's used share of storage over the average of all hosts,
                0 to 1.
            blocks_left: Number of blocks of the file that are yet to be written, this one included.
            exclude: Hosts, racks and pods that must not hold a copy.
            tags: Tags that hosts must have.
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
            "fault_domains": fault_domains,
            "collocate": names(collocate),
            "max_imbalance": max_imbalance,
            "blocks_left": blocks_left,
            "exclude": names(exclude),
            "tags": names(tags),
        }
        return self._place("/v1/place/replicas", body, **options)

    def place_tasks(
        self,
        app: Mapping[str, Any],
        *,
        job: str | None = None,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        **options: Unpack[PlacementOptions],
    ) -> Decision:
        """Chooses hosts for tasks. The tasks count until the decision is released.

        Args:
            app: Tasks and the transfers between them, as in an app file without `matrix`.
            job: Job of the tasks, which are spread over racks.
            exclude: Hosts, racks and pods that must not run a task.
            tags: Tags that hosts must have.
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
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
        ref: str | None = None,
        dry_run: bool = False,
    ) -> Decision:
        body = {
            name: value for name, value in (body | {"lasts": lasts, "ref": ref}).items() if value is not None
        }
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
        # The question of a dry run is the choice of the service.
        if self._standby is None or path not in KINDS or not is_named or dry_run:
            return send()
        return self._standby.place(Request(KINDS[path], body, client, sequence, key), send)

    def release(self, decision: str, *, dry_run: bool = False) -> Decision:
        """Ends the work of a decision, which stops counting. A second release changes nothing.

        A decision that this client made alone only ends in `made_alone`: the service does not have it. With
        `dry_run`, returns the decision and ends nothing.
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

    # ---- decisions while the service is away ----------------------------------------------------------

    @property
    def fallbacks(self) -> int:
        """Number of placements that the client decided alone or refused alone."""
        return 0 if self._standby is None else self._standby.fallbacks

    @property
    def made_alone(self) -> list[Decision]:
        """Decisions that the client made alone and nobody has taken or released, the earliest first."""
        return [] if self._standby is None else self._standby.made()

    def take_made_alone(self) -> list[Decision]:
        """Returns the decisions of `made_alone` and forgets them, for a caller that hands them over."""
        return [] if self._standby is None else self._standby.take_made()

    def prepare_fallback(self) -> None:
        """Reads the cluster and the state of its hosts now, for decisions while the service is away.

        The client also reads them by itself, in the background after placements.

        Raises:
            InputError: The client has no fallback, or the service's cluster is invalid for this version.
            ProblemError: The service refuses.
            UnreachableError: The service did not answer.
        """
        if self._standby is None:
            raise InputError.about("fallback", "the client has none; pass `fallback=Fallback()` to `Client`")
        self._standby.read()
