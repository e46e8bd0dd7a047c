"""The client: for each operation of the service a method."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast

from leeward.client import events
from leeward.client.http import Answer, part
from leeward.client.placing import Placing
from leeward.client.probing import Probing
from leeward.client.shapes import (
    Decision,
    DeviceReport,
    History,
    Host,
    HostHistory,
    HostReport,
    Hotspot,
    Link,
    LinkPage,
    Migration,
    Rack,
    RackPage,
    Reloaded,
    Reported,
    Scores,
    Snapshot,
    Status,
    TaskReport,
    Workload,
)


class Client(Placing, Probing):
    """A client of one service. It may be shared by threads.

    What the service does not do is a `ProblemError` with the document's fields; a policy that places
    something nowhere is a `RefusedError`. Where no answer comes it is an `UnreachableError`, after the
    request was sent again for as long as patience is. Placements have keys, so sending them again places
    nothing twice.
    """

    # ---- telemetry ------------------------------------------------------------------------------------

    def report(
        self,
        since: datetime,
        until: datetime,
        *,
        links: Mapping[str, float] | None = None,
        devices: Sequence[DeviceReport] = (),
        hosts: Mapping[str, HostReport] | None = None,
        tasks: Sequence[TaskReport] = (),
        workloads: Mapping[str, float] | None = None,
    ) -> Reported:
        """Tells what was seen in a window of time.

        Args:
            since: Where it begins, with a zone.
            until: Where it ends.
            links: What each link carried in the mean, in bit/s.
            devices: What each device did; those that the cluster does not have are passed over and named.
            hosts: What each host says of itself.
            tasks: What tasks carry across the links of their racks.
            workloads: What requests of each took at the percentile of its SLO, in seconds.
        """
        seen = (workloads or {}).items()
        body = {
            "from": _time("since", since),
            "until": _time("until", until),
            "links": [{"link": link, "load_bps": load} for link, load in (links or {}).items()],
            "devices": list(devices),
            "hosts": [{"host": host, **said} for host, said in (hosts or {}).items()],
            "tasks": list(tasks),
            "workloads": [{"workload": name, "latency_s": seconds} for name, seconds in seen],
        }
        return cast(Reported, self._http.ask("POST", "/v1/reports", None, body).body)

    # ---- the network ----------------------------------------------------------------------------------

    def links(
        self,
        *,
        hot: bool | None = None,
        sort: Literal["name", "utilization"] = "name",
        most: int | None = None,
    ) -> Iterator[Link]:
        """The links, at most so many: those that are hot, or are not; the most loaded first, or by name."""
        return self._all("/v1/links", most, hot=hot, sort=sort)

    def link(self, link: str) -> LinkPage:
        """A link by its name, `r3:uplink`, with the decisions that hold something of it."""
        return cast(LinkPage, self._get(f"/v1/links/{part(link)}"))

    def link_history(self, link: str, *, since: datetime | None = None, step_s: int = 10) -> History:
        """What a link carried in the last hour, in steps of a multiple of ten seconds."""
        query = _since(since, step_s)
        return cast(History, self._get(f"/v1/links/{part(link)}/history", **query))

    def history(
        self, kind: Literal["rack", "host"] = "rack", *, since: datetime | None = None, step_s: int = 10
    ) -> History:
        """The same of all links of racks, or of hosts."""
        return cast(History, self._get("/v1/history", kind=kind, **_since(since, step_s)))

    def racks(self) -> Iterator[Rack]:
        """The racks, with their links."""
        return self._all("/v1/racks")

    def rack(self, rack: str) -> RackPage:
        """A rack, and all that is in it."""
        return cast(RackPage, self._get(f"/v1/racks/{part(rack)}"))

    def hosts(self) -> Iterator[Host]:
        """The hosts."""
        return self._all("/v1/hosts")

    def host(self, host: str) -> Host:
        """A host."""
        return cast(Host, self._get(f"/v1/hosts/{part(host)}"))

    def host_history(self, host: str, *, since: datetime | None = None, step_s: int = 10) -> HostHistory:
        """What the links and devices of a host carried in the last hour, and what waited there."""
        return cast(HostHistory, self._get(f"/v1/hosts/{part(host)}/history", **_since(since, step_s)))

    def hotspots(self) -> Iterator[Hotspot]:
        """The links that are hot, the longest first."""
        return self._all("/v1/hotspots")

    def snapshot(self, after: int | None = None, wait_s: float = 0.0) -> Snapshot:
        """Every link, small, and which placements are counted in.

        Args:
            after: Wait for a state of the ledger after this one; by default what there is, is shown at once.
            wait_s: How long; a minute at most. What there is then is shown.
        """
        wait = None if after is None else f"{round(1000 * wait_s)}ms"
        query = {"after": after, "wait": wait}
        longest = self._http.timeout_s + wait_s
        return cast(Snapshot, self._http.ask("GET", "/v1/snapshot", query, timeout_s=longest).body)

    # ---- moves ----------------------------------------------------------------------------------------

    def migrations(
        self, state: Literal["advised", "done", "refused", "expired"] | None = None
    ) -> Iterator[Migration]:
        """Moves that were advised, the last ones first."""
        return self._all("/v1/migrations", state=state)

    def answer_migration(
        self, migration: str, answer: Literal["done", "refused"], reason: str | None = None
    ) -> Migration:
        """Says that a task was moved, or that it stays where it is, and why."""
        body = {"answer": answer} | ({} if reason is None else {"reason": reason})
        return cast(Migration, self._http.ask("POST", f"/v1/migrations/{part(migration)}", None, body).body)

    def set_job(self, job: str, *, down: int | None = None, evictions_per_hour: int | None = None) -> None:
        """Says how many moves a job can bear; None is without limit."""
        body = {"down": down, "evictions_per_hour": evictions_per_hour}
        self._http.ask("PUT", f"/v1/jobs/{part(job)}", None, body)

    def forget_job(self, job: str) -> None:
        """Says that a job can bear all moves, or is over."""
        self._http.ask("DELETE", f"/v1/jobs/{part(job)}")

    # ---- workloads, and what would be -----------------------------------------------------------------

    def workloads(self) -> Iterator[Workload]:
        """Workloads that are promised their SLOs, those promised last first."""
        return self._all("/v1/workloads")

    def workload(self, name: str) -> Workload:
        """A workload that is promised its SLO, or the last of its name that was."""
        return cast(Workload, self._get(f"/v1/workloads/{part(name)}"))

    def score_hosts(self, hosts: Sequence[str], **task: Any) -> Scores:
        """Says how good hosts are for a task. Commits nothing.

        Args:
            hosts: The hosts, up to 10,000.
            task: Of the task `egress_bps`, `ingress_bps`, `peers`, `cpus`, `memory`, `job`, `tags`.
        """
        return cast(
            Scores, self._http.ask("POST", "/v1/score/hosts", None, {"hosts": list(hosts)} | task).body
        )

    def what_if(self, decision: str, policy: str) -> Decision:
        """Says what another policy would do now with what a decision was asked. Commits nothing.

        Args:
            decision: What the decision is called.
            policy: A policy of its kind, with settings after colons: `sinbad:remote_racks=2`.
        """
        path = f"/v1/decisions/{part(decision)}/what-if"
        return cast(Decision, self._http.ask("POST", path, None, {"policy": policy}).body)

    def policies(self) -> dict[str, list[dict[str, Any]]]:
        """The policies there are, by kind of decision."""
        return cast(dict[str, list[dict[str, Any]]], self._get("/v1/policies"))

    # ---- the service ----------------------------------------------------------------------------------

    def cluster(self) -> tuple[dict[str, Any], str]:
        """The cluster, as its file; and its version."""
        return _cluster(self._http.ask("GET", "/v1/cluster"))

    def set_cluster(
        self, cluster: Mapping[str, Any], version: str | None = None
    ) -> tuple[dict[str, Any], str]:
        """Makes another cluster the one that counts.

        Args:
            cluster: The fields of its file.
            version: The one that it takes the place of; if another counts by then, that is a problem
                `version`.
        """
        return _cluster(self._http.ask("PUT", "/v1/cluster", None, dict(cluster), _version(version)))

    def change_cluster(
        self, fields: Mapping[str, Any], version: str | None = None
    ) -> tuple[dict[str, Any], str]:
        """Changes fields of the cluster (RFC 7396: None takes one away), likewise."""
        return _cluster(self._http.ask("PATCH", "/v1/cluster", None, dict(fields), _version(version)))

    def status(self) -> Status:
        """What the service is, and how much it has."""
        return cast(Status, self._get("/v1/status"))

    def reload(self) -> Reloaded:
        """Lets the service read its settings again."""
        return cast(Reloaded, self._http.ask("POST", "/v1/reload").body)

    def demo(self) -> dict[str, Any]:
        """The comparison that a demo shows."""
        return cast(dict[str, Any], self._get("/v1/demo"))

    def set_demo(self, demo: Mapping[str, Any]) -> None:
        """Says how the comparison of a demo stands."""
        self._http.ask("PUT", "/v1/demo", None, dict(demo))

    def events(self, after: str | None = None) -> Iterator[events.Event]:
        """What happens, as it happens, without an end; after one event, or from now on.

        A connection that breaks off is opened again, and nothing is missed as long as the service keeps it;
        an event `missed` says so where it does not.

        Raises:
            ProblemError: The service refuses.
            UnreachableError: Nobody has answered for as long as patience is.
        """
        return events.follow(self._http, after)


def _time(argument: str, at: datetime) -> str:
    if at.tzinfo is None:
        raise ValueError(f"{argument}: {at}: expected a time with a zone")
    return at.astimezone(UTC).isoformat()


def _since(since: datetime | None, step_s: int) -> dict[str, Any]:
    return {"since": None if since is None else _time("since", since), "step_s": step_s}


def _version(version: str | None) -> dict[str, str] | None:
    return None if version is None else {"if-match": version}


def _cluster(answer: Answer) -> tuple[dict[str, Any], str]:
    return answer.body, answer.headers.get("etag", "")
