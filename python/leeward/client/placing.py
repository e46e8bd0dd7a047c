"""Placements: what is asked for, and what is let go again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

from leeward.client.asking import Asker
from leeward.client.http import part
from leeward.client.shapes import Decision
from leeward.errors import names


class Asked(TypedDict, total=False):
    """What every placement may be asked with besides."""

    lasts: str | None
    """After how long it ends by itself, such as `2h`."""
    client: str | None
    """Who asks, where requests are numbered; with `sequence`."""
    sequence: int | None
    """The number of the request, above those before."""
    key: str | None
    """One that nobody else uses; by default, where requests are not numbered, a new one."""


class Placing(Asker):
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
        **asked: Unpack[Asked],
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
            **asked: How long it lasts and who asks, as of `Asked`.

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
        }
        return self._place("/v1/place/replicas", body, **asked)

    def place_tasks(
        self,
        app: Mapping[str, Any],
        *,
        job: str | None = None,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        **asked: Unpack[Asked],
    ) -> Decision:
        """Decides where tasks go; they count until they are released.

        Args:
            app: The tasks and what they send each other, as in an app file without `matrix`.
            job: The job they belong to: its tasks are spread over racks.
            exclude: Hosts, racks and pods that must have none.
            tags: Tags that hosts must have.
            **asked: How long it lasts and who asks, as of `Asked`.

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
        }
        return self._place("/v1/place/tasks", body, **asked)

    def promise(self, workload: Mapping[str, Any], **asked: Unpack[Asked]) -> Decision:
        """Promises a workload its SLO where its volume is, if that can be kept, until it is released.

        Args:
            workload: Its fields as in a file of workloads, with `server`; it names no file.
            **asked: How long it lasts and who asks, as of `Asked`.

        Raises:
            RefusedError: Its SLO, or that of another, would not be kept.
            ProblemError: The service does not do it.
            UnreachableError: No answer came; see `place_replicas`.
        """
        return self._place("/v1/workloads", {"workload": dict(workload)}, **asked)

    def place_volume(self, workload: Mapping[str, Any], **asked: Unpack[Asked]) -> Decision:
        """Finds a server for the volume of a workload without `server`, and promises it its SLO; likewise."""
        return self._place("/v1/place/volumes", {"workload": dict(workload)}, **asked)

    def _place(
        self,
        path: str,
        body: dict[str, Any],
        *,
        lasts: str | None = None,
        client: str | None = None,
        sequence: int | None = None,
        key: str | None = None,
    ) -> Decision:
        body = {name: value for name, value in (body | {"lasts": lasts}).items() if value is not None}
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
