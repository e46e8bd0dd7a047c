"""Outage decisions: a policy without loads, on the last known state of the cluster.

A decision depends on the state, the policy, the seed and the request with its key, and on nothing else.
"""

import json
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from leeward import placement
from leeward._native import Cluster
from leeward._quantities import read_bytes
from leeward.client.http import Http
from leeward.client.problems import ProblemError, RefusedError
from leeward.decisions import Reason
from leeward.errors import InputError

ALONE = "alone:"
"""Prefix of the id of a decision that the service does not have."""
CANDIDATES = 8
"""Greatest number of candidates of each level in `why`, as in decisions of the service."""


@dataclass(frozen=True)
class State:
    """Cluster and state of its hosts, at one time.

    Attributes:
        cluster: The cluster.
        version: Version of the cluster at the service; None for a cluster of the settings.
        read_at: Time by the client's clock; None for a cluster of the settings.
        closed: Hosts that are down or draining.
        storage: For each host with limited storage: stored bytes, and all bytes that it can store.
    """

    cluster: Cluster
    version: str | None = None
    read_at: float | None = None
    closed: frozenset[str] = frozenset()
    storage: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def by_room(self) -> list[tuple[int, str]]:
        """Bytes that each host with limited storage can still store, the least first, with its name."""
        return sorted((capacity - stored, host) for host, (stored, capacity) in self.storage.items())

    @cached_property
    def average_fill(self) -> float:
        """Stored bytes as a share of all bytes that hosts with limited storage can store."""
        total = sum(capacity for _, capacity in self.storage.values())
        return sum(stored for stored, _ in self.storage.values()) / total if total else 0.0


@dataclass(frozen=True)
class Request:
    """A placement.

    Attributes:
        kind: `replicas` or `tasks`.
        body: Fields of the body, without those that name the request.
        client: Name of the client that numbers its requests; None for a request with a key.
        sequence: Number of the request.
        key: Key of the request; None for a request with a number.
    """

    kind: str
    body: Mapping[str, Any]
    client: str | None
    sequence: int | None
    key: str | None

    @property
    def id(self) -> str:
        """Id of the client's decision on this request."""
        name = f"key:{self.key}" if self.key is not None else f"sequence:{self.sequence}:{self.client}"
        return ALONE + name


@dataclass(frozen=True)
class Choice:
    """Hosts, with the policy that chose them, its candidates, and the sender of new copies."""

    hosts: list[str]
    policy: str
    why: list[Reason]
    source: str | None = None


def read_state(http: Http, last: State | None) -> State:
    """State of the service's cluster now. The cluster is read only if its version is new.

    Raises:
        ProblemError: The service refuses.
        UnreachableError: The service did not answer.
        InputError: The service's cluster is invalid for this version of the package.
    """
    read_at = http.clock()
    version = http.ask("GET", "/v1/status", patience_s=0).body["cluster_version"]
    if last is not None and last.version == version:
        cluster = last.cluster
    else:
        cluster = Cluster(http.ask("GET", "/v1/cluster", patience_s=0).body)
    names, closed, storage = set(cluster.host_names()), set(), {}
    for host in http.items("/v1/hosts", patience_s=0):
        name = host["host"]
        if name not in names:
            continue
        if host["draining"] or not host["up"]:
            closed.add(name)
        if host["storage"] is not None:
            storage[name] = (read_bytes("stored", host["stored"]), read_bytes("storage", host["storage"]))
    return State(cluster, version, read_at, frozenset(closed), storage)


def choose(state: State, request: Request, policy: str, seed: int) -> Choice:
    """Hosts for a request.

    Raises:
        RefusedError: The policy finds no placement.
        ProblemError: A field is invalid.
    """
    identity = json.dumps([seed, request.kind, request.id])
    draws = int.from_bytes(sha256(identity.encode()).digest()[:8], "big")
    with _errors_as_problems():
        choice = (_replicas if request.kind == "replicas" else _tasks)(state, request.body, policy, draws)
    if isinstance(choice, str):
        detail = f"{choice}; the client decided alone, because the service is away"
        raise RefusedError("refused", "Placement rejected", 409, detail)
    return choice


def _replicas(state: State, body: Mapping[str, Any], policy: str, seed: int) -> Choice | str:
    fields = {name: value for name, value in body.items() if name not in ("blocks_left", "lasts", "ref")}
    fields["exclude"] = _excluded(state, body)
    if state.storage:
        # The policy knows no stored bytes, so hosts above the limit are excluded here.
        most = fields.pop("max_imbalance", None)
        if most is not None and not 0 <= most <= 1:
            raise InputError.about("max_imbalance", f"{most}: expected a share from 0 to 1")
        fields["exclude"] += _too_full(state, _piece(body), most)
    placed = placement.place_replicas(state.cluster, policy=policy, seed=seed, explain=CANDIDATES, **fields)
    if placed["hosts"] is None:
        return placed["refused"] or ""
    return Choice(placed["hosts"], placed["policy"], placed["why"], placed["source"])


def _piece(body: Mapping[str, Any]) -> int:
    """Bytes that each host stores: the whole block, or a chunk of its stripe."""
    size = read_bytes("size", body["size"])
    data = str(body.get("coding") or "1").partition("+")[0].strip()
    # The placement rejects an invalid code.
    return -(-size // int(data)) if data.isdecimal() and int(data) else size


def _tasks(state: State, body: Mapping[str, Any], policy: str, seed: int) -> Choice | str:
    phases = body["app"].get("phases") or []
    if "matrix" in body["app"] or any("matrix" in phase for phase in phases):
        raise InputError.about("app.matrix", "files cannot be named here; give `transfers`")
    with _file(json.dumps(body["app"], allow_nan=False)) as path:
        placed = placement.place_tasks(
            state.cluster,
            path,
            policy=policy,
            exclude=_excluded(state, body),
            tags=body["tags"],
            labels=body.get("labels"),
            seed=seed,
            explain=CANDIDATES,
        )
    why = [reason["reason"] for reason in placed["why"]]
    hosts = [task["host"] for task in placed["tasks"] if task["host"] is not None]
    return "; ".join(placed["refused"] or ()) or Choice(hosts, placed["policy"], why)


def _excluded(state: State, body: Mapping[str, Any]) -> list[str]:
    return [*body["exclude"], *sorted(state.closed)]


def _too_full(state: State, size: int, most: float | None) -> list[str]:
    """Hosts without room for a block, or with it too far above the average share of used storage."""
    full = [host for _, host in state.by_room[: bisect_left(state.by_room, (size, ""))]]
    if most is None:
        return full
    limit = state.average_fill + most
    return full + [
        host for host, (stored, capacity) in state.storage.items() if stored + size > limit * capacity
    ]


@contextmanager
def _file(text: str) -> Iterator[str]:
    """A file in memory with a text; yields its path."""
    descriptor = os.memfd_create("app")
    try:
        with open(descriptor, "w", closefd=False) as file:
            file.write(text)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@contextmanager
def _errors_as_problems() -> Iterator[None]:
    """Replaces invalid input by the problem that the service answers."""
    try:
        yield
    except InputError as error:
        is_app = error.file.startswith("/proc/self/fd/")
        path = ".".join(part for part in ("app" if is_app else error.file, error.field) if part)
        raise ProblemError("invalid", "Invalid field", 422, error.message, path) from None
