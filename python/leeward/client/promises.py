"""Workloads with granted SLOs, and enforcers, which apply their priorities and limits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from leeward.client.base import ClientBase
from leeward.client.http import dry_run_query, part
from leeward.client.promise_types import (
    AcknowledgedEnforcer,
    Enforcer,
    EnforcerPromises,
    TraceSource,
    Workload,
    WorkloadReport,
    Workloads,
)
from leeward.client.types import Decision


class PromiseMethods(ClientBase):
    """Reads workloads, decides again on changed ones, and speaks for enforcers."""

    def workloads(self) -> Iterator[Workload]:
        """Workloads with a granted SLO, the latest first."""
        return self._all("/v1/workloads")

    def workload(self, name: str) -> Workload:
        """A workload with a granted SLO, or the latest earlier workload of this name."""
        return cast(Workload, self._get(f"/v1/workloads/{part(name)}"))

    def workloads_page(
        self, *, since: int | None = None, wait_s: float = 0.0, after: str | None = None, limit: int = 1000
    ) -> Workloads:
        """A page of workloads, with the version of all promises.

        Args:
            since: Number of a version: the answer waits for another one. By default it comes at once.
            wait_s: Longest wait for another version, at most a minute.
            after: Value of `next` of the page before.
            limit: Largest number of workloads, at most 1,000.
        """
        query = {"since": since, "wait": _wait(since, wait_s), "after": after, "limit": limit}
        longest = self._http.timeout_s + wait_s
        return cast(Workloads, self._http.ask("GET", "/v1/workloads", query, timeout_s=longest).body)

    def change_workload(
        self,
        workload: Mapping[str, Any],
        *,
        trace: TraceSource | None = None,
        size: str | int | None = None,
        dry_run: bool = False,
    ) -> Decision:
        """Decides again on a workload with a granted SLO whose requests have changed.

        The answer is its decision. `redecision` says if the workload stays, gets other limits or priorities,
        or should move to another server, with a plan of the copy. `leeward.traces.workload_fields` has the
        fields of a trace.

        Args:
            workload: All fields of the workload, with its name. By default, the server is the present one.
            trace: Trace that curves and models were computed from.
            size: Size of the volume, for the plan of its copy.
            dry_run: True to decide without a change.

        Raises:
            ProblemError: No such workload has a granted SLO, a field is invalid, or the service refuses.
        """
        given = {"workload": dict(workload), "trace": trace, "bytes": size}
        body = {name: value for name, value in given.items() if value is not None}
        path = f"/v1/workloads/{part(str(workload.get('name', '')))}"
        return cast(Decision, self._http.ask("PUT", path, dry_run_query(dry_run), body).body)

    def enforcers(self) -> Iterator[Enforcer]:
        """Enforcers by name, with what they have applied."""
        return self._all("/v1/enforcers")

    def enforcer(self, name: str) -> Enforcer:
        """An enforcer, with what it has applied."""
        return cast(Enforcer, self._get(f"/v1/enforcers/{part(name)}"))

    def enforcer_promises(
        self, name: str, *, since: int | None = None, wait_s: float = 0.0
    ) -> EnforcerPromises:
        """Promises that an enforcer applies. The enforcer must have registered (`acknowledge`).

        Args:
            name: Name of the enforcer.
            since: Version of the promises that it has: the answer waits for another one.
            wait_s: Longest wait for another version, at most a minute.
        """
        query = {"since": since, "wait": _wait(since, wait_s)}
        path, longest = f"/v1/enforcers/{part(name)}/promises", self._http.timeout_s + wait_s
        return cast(EnforcerPromises, self._http.ask("GET", path, query, timeout_s=longest).body)

    def acknowledge(
        self,
        name: str,
        kind: Literal["net", "nfs"],
        host: str,
        *,
        applied: EnforcerPromises | None = None,
        workloads: Sequence[WorkloadReport] = (),
        device: str | None = None,
        instance: str | None = None,
        addresses: Sequence[str] = (),
        lease: str | None = None,
    ) -> AcknowledgedEnforcer:
        """Registers an enforcer, says what it has applied, and renews its lease.

        Without an answer for the length of the lease, the enforcer must treat everything as best effort.

        Args:
            name: Name of the enforcer, unique in the cluster.
            kind: `net` for packets that leave the host, `nfs` for requests to its volumes.
            host: Host whose promises it applies.
            applied: Promises that it has applied; None before the first ones, and after a restart.
            workloads: Workloads that it applies.
            device: Device whose volumes it serves; by default all of the host. Only for `nfs`.
            instance: Text that tells it from others of its name and stays the same after a restart. While
                another instance has a lease, the request is a problem `enforcer`.
            addresses: Addresses of the host, for enforcers at other hosts.
            lease: Length of the lease, 1s to 1h; by default 15s.

        Raises:
            ProblemError: The host is unknown, the version does not fit, or the service refuses.
        """
        body = {
            "kind": kind,
            "host": host,
            "device": device,
            "instance": instance,
            "addresses": list(addresses),
            "lease": lease,
            "set": None if applied is None else applied["set"],
            "version": None if applied is None else applied["version"],
            "workloads": list(workloads),
        }
        body = {field: value for field, value in body.items() if value is not None}
        path = f"/v1/enforcers/{part(name)}"
        return cast(AcknowledgedEnforcer, self._http.ask("PUT", path, None, body).body)

    def remove_enforcer(self, name: str) -> Enforcer:
        """Removes an enforcer that has ended."""
        return cast(Enforcer, self._http.ask("DELETE", f"/v1/enforcers/{part(name)}").body)


def _wait(since: int | None, wait_s: float) -> str | None:
    return None if since is None else f"{round(1000 * wait_s)}ms"
