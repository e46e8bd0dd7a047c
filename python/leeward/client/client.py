"""The client: for each operation of the service a method."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Literal, cast
from uuid import uuid4

from leeward.client import events
from leeward.client.http import Answer, Http, part
from leeward.client.shapes import (
    Decision,
    History,
    Host,
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
from leeward.errors import names

URL = "http://127.0.0.1:7600"
"""Where a service listens unless it is told otherwise."""
PAGE = 1_000
"""Items that are asked for at once."""


def _new_key() -> str:
    return uuid4().hex


class Client:
    """A client of one service. It may be shared by threads.

    What the service does not do is a `ProblemError` with the document's fields; a policy that places
    something nowhere is a `RefusedError`. Where no answer comes it is an `UnreachableError`, after the
    request was sent again for as long as patience is. Placements have keys, so sending them again places
    nothing twice.
    """

    def __init__(
        self,
        url: str = URL,
        *,
        token: str | None = None,
        ca: str | PathLike[str] | None = None,
        timeout_s: float = 60.0,
        patience_s: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        new_key: Callable[[], str] = _new_key,
    ) -> None:
        """A client; nothing is sent yet.

        Args:
            url: Where the service listens.
            token: Who asks, where the service wants to know.
            ca: A PEM file of who signed the service's certificate; by default those that the system knows.
            timeout_s: How long an answer may take.
            patience_s: How long a request is sent again where no answer comes or the service is busy; 0 is
                not at all.
            sleep: Waits so many seconds.
            clock: Seconds from any origin.
            new_key: Makes a key that nobody else uses, for each placement.

        Raises:
            InputError: The address or the token is none.
        """
        self._http = Http(url.rstrip("/"), token, ca, timeout_s, patience_s, sleep, clock)
        self._new_key = new_key

    @property
    def url(self) -> str:
        """Where the service listens."""
        return self._http.url

    # ---- placing --------------------------------------------------------------------------------------

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
        lasts: str | None = None,
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Decides where the copies of a block go; they count until they are released.

        Args:
            size: Of the block, such as `256MiB`.
            writer: The host that writes; none if it is outside the cluster.
            replicas: Copies, the writer's included.
            fault_domains: Fault domains besides the first copy's that must hold one.
            collocate: Hosts of related files: no other may hold a copy.
            max_imbalance: How much more of its room, as a share, a host may fill than hosts do in the mean.
            blocks_left: Blocks of the file that are yet to be written, this one included.
            exclude: Hosts, racks and pods that must hold none.
            tags: Tags that hosts must have.
            lasts: After how long it ends by itself, such as `2h`.
            client: Who asks, where requests are numbered; with `sequence`.
            sequence: The number of the request, above those before.
            key: One that nobody else uses; by default, where requests are not numbered, a new one.

        Raises:
            RefusedError: The policy places it nowhere.
            ProblemError: The service does not do it.
            UnreachableError: No answer came. Whether it was placed is not known; asked again with the same
                key, it is not placed again.
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
            "lasts": lasts,
        }
        return self._place("/v1/place/replicas", body, client, sequence, key)

    def place_tasks(
        self,
        app: Mapping[str, Any],
        *,
        job: str | None = None,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        lasts: str | None = None,
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Decides where tasks go; they count until they are released.

        Args:
            app: The tasks and what they send each other, as in an app file without `matrix`.
            job: The job they belong to: its tasks are spread over racks.
            exclude: Hosts, racks and pods that must have none.
            tags: Tags that hosts must have.
            lasts: After how long they end by themselves, such as `2h`.
            client: Who asks, where requests are numbered; with `sequence`.
            sequence: The number of the request, above those before.
            key: One that nobody else uses; by default, where requests are not numbered, a new one.

        Raises:
            RefusedError: The policy places them nowhere.
            ProblemError: The service does not do it.
            UnreachableError: No answer came; see `place_replicas`.
        """
        body = {
            "app": dict(app),
            "job": job,
            "exclude": names(exclude),
            "tags": names(tags),
            "lasts": lasts,
        }
        return self._place("/v1/place/tasks", body, client, sequence, key)

    def promise(
        self,
        workload: Mapping[str, Any],
        *,
        lasts: str | None = None,
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Promises a workload its SLO where its volume is, if that can be kept, until it is released.

        Args:
            workload: Its fields as in a file of workloads, with `server`; it names no file.
            lasts: After how long it ends by itself, such as `2h`.
            client: Who asks, where requests are numbered; with `sequence`.
            sequence: The number of the request, above those before.
            key: One that nobody else uses; by default, where requests are not numbered, a new one.

        Raises:
            RefusedError: Its SLO, or that of another, would not be kept.
            ProblemError: The service does not do it.
            UnreachableError: No answer came; see `place_replicas`.
        """
        body = {"workload": dict(workload), "lasts": lasts}
        return self._place("/v1/workloads", body, client, sequence, key)

    def place_volume(
        self,
        workload: Mapping[str, Any],
        *,
        lasts: str | None = None,
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
    ) -> Decision:
        """Finds a server for the volume of a workload without `server`, and promises it its SLO; likewise."""
        body = {"workload": dict(workload), "lasts": lasts}
        return self._place("/v1/place/volumes", body, client, sequence, key)

    def _place(
        self, path: str, body: dict[str, Any], client: str | None, sequence: int | None, key: str | None
    ) -> Decision:
        body = {name: value for name, value in body.items() if value is not None}
        if client is not None or sequence is not None:
            body |= {"client": client, "sequence": sequence}
        elif key is None:
            key = self._new_key()
        headers = None if key is None else {"idempotency-key": key}
        return cast(Decision, self._http.ask("POST", path, None, body, headers).body)

    def release(self, decision: str) -> Decision:
        """Says that the work of a decision ended; it stops counting. Said again, it changes nothing."""
        return cast(Decision, self._http.ask("DELETE", f"/v1/commitments/{part(decision)}").body)

    def decision(self, decision: str) -> Decision:
        """A decision as it is kept."""
        return cast(Decision, self._get(f"/v1/decisions/{part(decision)}"))

    def decisions(self, kind: str | None = None, most: int | None = None) -> Iterator[Decision]:
        """The decisions that are kept, of one kind or all, the last ones first; at most so many."""
        return self._all("/v1/decisions", most, kind=kind)

    def commitments(self, kind: str | None = None) -> Iterator[Decision]:
        """Those that hold something of the network."""
        return self._all("/v1/commitments", kind=kind)

    # ---- telemetry ------------------------------------------------------------------------------------

    def report(
        self,
        since: datetime,
        until: datetime,
        *,
        links: Mapping[str, float] | None = None,
        hosts: Mapping[str, HostReport] | None = None,
        tasks: Sequence[TaskReport] = (),
        workloads: Mapping[str, float] | None = None,
    ) -> Reported:
        """Tells what was seen in a window of time.

        Args:
            since: Where it begins, with a zone.
            until: Where it ends.
            links: What each link carried in the mean, in bit/s.
            hosts: What each host says of itself.
            tasks: What tasks carry across the links of their racks.
            workloads: What requests of each took at the percentile of its SLO, in seconds.
        """
        seen = (workloads or {}).items()
        body = {
            "from": _time("since", since),
            "until": _time("until", until),
            "links": [{"link": link, "load_bps": load} for link, load in (links or {}).items()],
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
            version: The one that it takes the place of; if another counts by then, or the answer was lost and
                this one does already, that is a problem `version`.
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

    def _get(self, path: str, **query: Any) -> Any:
        return self._http.ask("GET", path, query).body

    def _all(self, path: str, most: int | None = None, **query: Any) -> Iterator[Any]:
        """The items of a list, part by part as they are wanted; at most so many of them."""
        after, left = None, most
        while left is None or left > 0:
            limit = PAGE if left is None else min(left, PAGE)
            page = self._get(path, limit=limit, after=after, **query)
            yield from page["items"]
            after = page["next"]
            left = None if left is None else left - len(page["items"])
            if after is None:
                return


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
