"""The client: a method for each operation of the service."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from leeward.client import events
from leeward.client.http import Answer, dry_run_query, part, time_text
from leeward.client.placements import PlacementMethods
from leeward.client.probes import ProbeMethods
from leeward.client.promises import PromiseMethods
from leeward.client.snapshots import apply
from leeward.client.status_types import Status
from leeward.client.summary_types import Summary
from leeward.client.types import (
    ChosenCopies,
    Decision,
    DeviceReport,
    History,
    Host,
    HostHistory,
    HostReport,
    HotLink,
    Link,
    LinkPage,
    Migration,
    ModesInForce,
    NamedPods,
    Peak,
    PodName,
    PodReport,
    Rack,
    RackPage,
    Reloaded,
    Reported,
    Scores,
    Snapshot,
    StandingLab,
    TaskReport,
)
from leeward.errors import names

FOLLOW_S = 30.0
"""Seconds after which a follower of snapshots gets one even if nothing has changed."""


class Client(PlacementMethods, PromiseMethods, ProbeMethods):
    """A client of one service. Threads may share a client.

    A method raises `ProblemError`, with the fields of the problem document, if the service refuses;
    `RefusedError` if the policy finds no placement; and `UnreachableError` if the service does not answer
    within `patience_s`. Placements have keys, so that a repeated request places nothing twice.
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
        pods: Sequence[PodReport] = (),
        workloads: Mapping[str, float] | None = None,
    ) -> Reported:
        """Reports the measurements of a window of time.

        Args:
            since: Start of the window, with a time zone.
            until: End of the window.
            links: Average load of each link, in bit/s.
            devices: Load of each device; devices that the cluster does not have are ignored,
                and the answer names them.
            hosts: State of each host.
            tasks: Load of tasks on the links of their racks.
            pods: Traffic of pods, which counts towards their jobs (`name_pods`).
            workloads: Latency of each workload's requests at the percentile of its SLO, in seconds.
        """
        latencies = (workloads or {}).items()
        body = {
            "from": time_text("since", since),
            "until": time_text("until", until),
            "links": [{"link": link, "load_bps": load} for link, load in (links or {}).items()],
            "devices": list(devices),
            "hosts": [{"host": host, **state} for host, state in (hosts or {}).items()],
            "tasks": list(tasks),
            "pods": list(pods),
            "workloads": [{"workload": name, "latency_s": seconds} for name, seconds in latencies],
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
        """Links by name or the most loaded first: all, or only the hot or cool ones; at most `most`."""
        return self._all("/v1/links", most, hot=hot, sort=sort)

    def link(self, link: str) -> LinkPage:
        """A link by its name, `r3:uplink`, with the decisions that hold a part of it."""
        return cast(LinkPage, self._get(f"/v1/links/{part(link)}"))

    def link_history(self, link: str, *, since: datetime | None = None, step_s: int = 10) -> History:
        """Load of a link, in steps of a multiple of ten seconds.

        The last hour is in memory. Steps of ten minutes go back two days, hours 31 days.
        """
        query = _since(since, step_s)
        return cast(History, self._get(f"/v1/links/{part(link)}/history", **query))

    def history(
        self, kind: Literal["rack", "host"] = "rack", *, since: datetime | None = None, step_s: int = 10
    ) -> History:
        """Load of all links of racks, or of hosts."""
        return cast(History, self._get("/v1/history", kind=kind, **_since(since, step_s)))

    def racks(self) -> Iterator[Rack]:
        """Racks, with their links."""
        return self._all("/v1/racks")

    def rack(self, rack: str) -> RackPage:
        """A rack, with its hosts, devices and tasks."""
        return cast(RackPage, self._get(f"/v1/racks/{part(rack)}"))

    def hosts(self) -> Iterator[Host]:
        """Hosts."""
        return self._all("/v1/hosts")

    def host(self, host: str) -> Host:
        """A host."""
        return cast(Host, self._get(f"/v1/hosts/{part(host)}"))

    def host_history(self, host: str, *, since: datetime | None = None, step_s: int = 10) -> HostHistory:
        """Load of the links and devices of a host in the last hour, and its queues."""
        return cast(HostHistory, self._get(f"/v1/hosts/{part(host)}/history", **_since(since, step_s)))

    def hotspots(self) -> Iterator[HotLink]:
        """Hot links with the causes of their load, the longest first."""
        return self._all("/v1/hotspots")

    def labs(self) -> Iterator[StandingLab]:
        """Labs with circuits that stand on the service's machine, by name."""
        return self._all("/v1/labs")

    def snapshot(
        self,
        after: int | None = None,
        wait_s: float = 0.0,
        *,
        since: str | None = None,
        interval_s: float = 0.0,
        links: Sequence[str] | None = None,
        racks: Sequence[str] | None = None,
        hosts: Sequence[str] | None = None,
        devices: Sequence[str] | None = None,
        resolution: float | None = None,
    ) -> Snapshot:
        """The network in columns, with the epoch of the ledger.

        Args:
            after: Epoch of an earlier snapshot: the answer waits for a later epoch. By default the answer
                comes at once.
            wait_s: Longest wait for a later epoch, at most a minute. After it, the answer is the current
                state.
            since: Id of an earlier snapshot with the same columns: the answer is the difference from it, or
                a whole snapshot if the service no longer stores it. With `wait_s`, it waits for a later
                epoch.
            interval_s: Least time between the snapshot `since` and the answer, at most a minute.
            links: Columns of the links. Without `links`, `racks`, `hosts` and `devices`, the links have the
                columns `link`, `capacity_bps`, `measured_bps`, `until`, `residual_bps` and
                `expected_capacity_bps`.
            racks: Columns of the racks.
            hosts: Columns of the hosts.
            devices: Columns of the devices.
            resolution: Unit of the columns that end in `_steps`, as a share of the capacity; by default 0.01.
        """
        waits = after is not None or since is not None
        tables = {"links": links, "racks": racks, "hosts": hosts, "devices": devices}
        query: dict[str, Any] = {
            "after": after,
            "since": since,
            "wait": f"{round(1000 * wait_s)}ms" if waits else None,
            "interval": f"{round(1000 * interval_s)}ms" if interval_s > 0 else None,
            "resolution": resolution,
        }
        query |= {table: None if names is None else ",".join(names) for table, names in tables.items()}
        longest = self._http.timeout_s + wait_s + interval_s
        return cast(Snapshot, self._http.ask("GET", "/v1/snapshot", query, timeout_s=longest).body)

    def follow_snapshots(
        self,
        *,
        interval_s: float = 1.0,
        links: Sequence[str] | None = None,
        racks: Sequence[str] | None = None,
        hosts: Sequence[str] | None = None,
        devices: Sequence[str] | None = None,
        resolution: float | None = None,
    ) -> Iterator[Snapshot]:
        """Whole snapshots, without end: one now, and another whenever the network has changed.

        After the first snapshot, the service sends differences only.

        Args:
            interval_s: Least time between two snapshots, at most a minute.
            links: Columns of the links, as in `snapshot`.
            racks: Columns of the racks.
            hosts: Columns of the hosts.
            devices: Columns of the devices.
            resolution: Unit of the columns that end in `_steps`, as in `snapshot`.

        Raises:
            ProblemError: The service refuses.
            UnreachableError: The service has not answered for as long as `patience_s`.
        """

        def ask(since: str | None) -> Snapshot:
            return self.snapshot(
                since=since,
                wait_s=FOLLOW_S,
                interval_s=0.0 if since is None else interval_s,
                links=links,
                racks=racks,
                hosts=hosts,
                devices=devices,
                resolution=resolution,
            )

        snapshot = ask(None)
        while True:
            yield snapshot
            snapshot = apply(snapshot, ask(snapshot["id"]))

    # ---- moves ----------------------------------------------------------------------------------------

    def migrations(
        self,
        state: Literal["advised", "taken", "done", "refused", "failed", "expired", "considered"]
        | None = None,
    ) -> Iterator[Migration]:
        """Moves of tasks that the service advised, the latest first."""
        return self._all("/v1/migrations", state=state)

    def answer_migration(
        self,
        migration: str,
        answer: Literal["taken", "done", "refused", "failed"],
        reason: str | None = None,
        *,
        executor: str | None = None,
    ) -> Migration:
        """Reports that an executor takes a move, that the task was moved, or that it stays, with the reason.

        Args:
            migration: Id of the move.
            answer: `taken` before the move; afterwards `done`, `refused` or `failed`.
            reason: Reason for which the task stays; only with `refused` and `failed`.
            executor: Name of the executor; required with `taken`. Afterwards the one that took the move.
        """
        given = {"reason": reason, "executor": executor}
        body = {"answer": answer} | {field: value for field, value in given.items() if value is not None}
        return cast(Migration, self._http.ask("POST", f"/v1/migrations/{part(migration)}", None, body).body)

    def set_job(self, job: str, *, down: int | None = None, evictions_per_hour: int | None = None) -> None:
        """Sets the limits on moves of a job; None for no limit."""
        body = {"down": down, "evictions_per_hour": evictions_per_hour}
        self._http.ask("PUT", f"/v1/jobs/{part(job)}", None, body)

    def forget_job(self, job: str) -> None:
        """Removes the limits on moves of a job, or a job that has ended."""
        self._http.ask("DELETE", f"/v1/jobs/{part(job)}")

    # ---- measured demand --------------------------------------------------------------------------------

    def name_pods(self, pods: Sequence[PodName] = (), most: int = 100) -> NamedPods:
        """Names the jobs of pods whose traffic agents report, and lists pods without a job.

        Args:
            pods: Up to 1,000 pods; those without reported traffic are skipped.
            most: Largest number of listed pods, up to 1,000. The next call lists further ones.
        """
        body = {"pods": list(pods), "limit": most}
        return cast(NamedPods, self._http.ask("POST", "/v1/pods", None, body).body)

    def peaks(self) -> Iterator[Peak]:
        """Jobs with the observed traffic of their tasks, by name."""
        return self._all("/v1/peaks")

    # ---- scores and what-if ---------------------------------------------------------------------------

    def score_hosts(self, hosts: Sequence[str], **task: Any) -> Scores:
        """Scores hosts for a task. Commits nothing.

        Args:
            hosts: The hosts, up to 10,000.
            task: Fields of the task: `egress_bps`, `ingress_bps`, `peers`, `cpus`, `memory`, `job`, `tags`.
        """
        return cast(
            Scores, self._http.ask("POST", "/v1/score/hosts", None, {"hosts": list(hosts)} | task).body
        )

    def choose_read(
        self, hosts: Sequence[str], reader: str | None = None, key: str | None = None
    ) -> ChosenCopies:
        """Orders the copies of a block for a reader, the best first. Commits nothing.

        Args:
            hosts: Hosts with a copy, up to 255.
            reader: Host of the reader; None for a reader outside the cluster.
            key: Text that seeds the draw of two copies, such as the id of the block with the number of the
                read.

        Raises:
            RefusedError: No host with a copy is up.
            ProblemError: The service refuses.
        """
        body = {"hosts": names(hosts), "reader": reader, "key": key}
        return cast(ChosenCopies, self._http.ask("POST", "/v1/choose/read", None, body).body)

    def choose_delete(self, hosts: Sequence[str], count: int = 1, key: str | None = None) -> ChosenCopies:
        """Chooses copies of a block to delete, in order: the rest stays spread over fault domains.

        Args:
            hosts: Hosts with a copy, up to 255.
            count: Number of copies to delete.
            key: Text that breaks ties, such as the id of the block.

        Raises:
            ProblemError: The service refuses.
        """
        body = {"hosts": names(hosts), "count": count, "key": key}
        return cast(ChosenCopies, self._http.ask("POST", "/v1/choose/delete", None, body).body)

    def what_if(self, decision: str, policy: str) -> Decision:
        """Decides the request of a decision again by another policy. Commits nothing.

        Args:
            decision: Id of the decision.
            policy: A policy for this kind of decision; settings follow colons: `sinbad:remote_racks=2`.
        """
        path = f"/v1/decisions/{part(decision)}/what-if"
        return cast(Decision, self._http.ask("POST", path, None, {"policy": policy}).body)

    def policies(self) -> dict[str, list[dict[str, Any]]]:
        """Registered policies, by kind of decision."""
        return cast(dict[str, list[dict[str, Any]]], self._get("/v1/policies"))

    # ---- the service ----------------------------------------------------------------------------------

    def cluster(self) -> tuple[dict[str, Any], str]:
        """The content of the cluster file, and its version."""
        return _cluster(self._http.ask("GET", "/v1/cluster"))

    def set_cluster(
        self, cluster: Mapping[str, Any], version: str | None = None
    ) -> tuple[dict[str, Any], str]:
        """Replaces the cluster.

        Args:
            cluster: Fields of the cluster file.
            version: Version to replace; if the current version is another, raises the problem `version`.
        """
        return _cluster(self._http.ask("PUT", "/v1/cluster", None, dict(cluster), _version(version)))

    def change_cluster(
        self, fields: Mapping[str, Any], version: str | None = None
    ) -> tuple[dict[str, Any], str]:
        """Changes fields of the cluster (RFC 7396: None removes a field); `version` as in `set_cluster`."""
        return _cluster(self._http.ask("PATCH", "/v1/cluster", None, dict(fields), _version(version)))

    def summary(self, *, since: datetime | None = None, until: datetime | None = None) -> Summary:
        """Summary of a range of time, by default of the last 24 hours."""
        query = {
            name: None if at is None else time_text(name, at)
            for name, at in (("since", since), ("until", until))
        }
        return cast(Summary, self._get("/v1/summary", **query))

    def status(self) -> Status:
        """Version and counts of the service."""
        return cast(Status, self._get("/v1/status"))

    def reload(self, *, dry_run: bool = False) -> Reloaded:
        """Makes the service read its settings again; with `dry_run`, only says what would change."""
        return cast(Reloaded, self._http.ask("POST", "/v1/reload", dry_run_query(dry_run)).body)

    def modes(self) -> ModesInForce:
        """Who decides requests of each kind."""
        return cast(ModesInForce, self._get("/v1/modes"))

    def set_modes(
        self,
        all_kinds: str | None = None,
        *,
        reason: str | None = None,
        dry_run: bool = False,
        **modes: str,
    ) -> ModesInForce:
        """Changes who decides requests of each kind, at once and until the next change.

        Args:
            all_kinds: Mode of all kinds that `modes` does not name: `off`, `shadow`, `on`, or a canary such
                as `canary:10%` or `canary:10%:client`.
            reason: Reason of the change, for those who read the modes later.
            dry_run: True to check the change without making it.
            **modes: Mode of a kind: `replicas`, `tasks`, `moves`, `workload` or `volumes`.

        Raises:
            ProblemError: A mode is invalid, or the service refuses.
        """
        body = {"all": all_kinds, "reason": reason, **modes}
        body = {name: value for name, value in body.items() if value is not None}
        return cast(ModesInForce, self._http.ask("PATCH", "/v1/modes", dry_run_query(dry_run), body).body)

    def demo(self) -> dict[str, Any]:
        """Comparison of a demo."""
        return cast(dict[str, Any], self._get("/v1/demo"))

    def set_demo(self, demo: Mapping[str, Any]) -> None:
        """Updates the comparison of a demo."""
        self._http.ask("PUT", "/v1/demo", None, dict(demo))

    def events(
        self, after: str | None = None, *, racks: bool = True, decisions: bool = True
    ) -> Iterator[events.Event]:
        """Events as they happen, without end: from now on, or after a given event.

        The client reopens a broken connection, and gets all events that the service still stores. An event
        `missed` reports a gap.

        Args:
            after: Id of the event to resume after.
            racks: False for a stream without `racks`. `follow_snapshots` gives the same loads in fewer bytes.
            decisions: False for a stream without `decision`.

        Raises:
            ProblemError: The service refuses.
            UnreachableError: The service has not answered for as long as `patience_s`.
        """
        return events.follow(self._http, after, {"racks": racks, "decisions": decisions})


def _since(since: datetime | None, step_s: int) -> dict[str, Any]:
    return {"since": None if since is None else time_text("since", since), "step_s": step_s}


def _version(version: str | None) -> dict[str, str] | None:
    return None if version is None else {"if-match": version}


def _cluster(answer: Answer) -> tuple[dict[str, Any], str]:
    return answer.body, answer.headers.get("etag", "")
