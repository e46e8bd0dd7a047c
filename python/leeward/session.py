"""Sessions: an engine in this process, which places work, counts it, and learns of loads.

>>> import leeward
>>> cluster = {"racks": 4, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 2}
>>> session = leeward.Session(cluster, replicas="uniform")
>>> block = session.place_replicas("64MiB", writer="r1h0", replicas=2)
>>> block["hosts"][0], session.placements
('r1h0', 1)
>>> session.report({"r0:downlink": 2e8, "r1:downlink": 9e8})
0
>>> session.release(block)
[]
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from leeward import _native
from leeward._inputs import App, Document, app_document, json_text, link_rows, size_text
from leeward._policies import Policy, Started, choose_one
from leeward.decisions import BlockDecision, Reason, RunningDecision
from leeward.errors import MOST_SEED, InputError, label_values, name_arguments, names, whole_number
from leeward.simulation import name_policy

if TYPE_CHECKING:
    import pyarrow

    from leeward._arrays import Ids, Ints

__all__ = ["Batch", "Session"]

CALLER = "caller"
"""Policy of decisions of the caller, as the service names it."""
MOST_EXPLAINED = 65_535
"""This number of candidates, or more, is all of them."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Placements of blocks that were decided together.

    Attributes:
        ids: Number of each placement, for `Session.release`; -1 for a refused block. Shape: blocks.
        hosts: Numbers of the hosts of its copies, in the order of the chain; -1 for a refused block. Shape:
            blocks, copies.
        refused: Reasons of refusals, in the order of the refused blocks.
    """

    ids: "Ints"
    hosts: "Ids"
    refused: list[str]

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self.ids)


Placed = int | Batch | BlockDecision | RunningDecision
"""A placement: its number, or the answer with it."""


class Session:
    """An engine in this process, which places work, counts it until its release, and learns of loads.

    The decisions are those of `leeward serve` with the same policies and reports. The time is the session's
    own: it begins at 0 and moves with `report` and `advance` only. Threads may share a session: calls follow
    each other.
    """

    def __init__(
        self,
        cluster: _native.Cluster | Document,
        *,
        replicas: Policy = "sinbad",
        tasks: Policy = "leeward",
        ledger: Mapping[str, Any] | None = None,
        seed: int = 1,
        explain: int = 0,
    ) -> None:
        """Starts at time 0, without placements and with unknown loads.

        Args:
            cluster: A `Cluster`, or anything that `Cluster(...)` takes.
            replicas: Policy for copies of blocks: a name with settings, such as `sinbad:remote_racks=2`, or a
                policy of your own (see `leeward.policy`).
            tasks: Policy for tasks of apps, likewise.
            ledger: Settings of estimates, as `ledger` of a scenario, with the `interval` between reports.
            seed: Seed of tie-breaking.
            explain: Number of candidates of each level in `why` of decisions.

        Raises:
            InputError: The cluster, a policy or a setting is invalid.
        """
        whole_number("seed", seed, 0, MOST_SEED)
        whole_number("explain", explain, 0)
        self._cluster = _native.Cluster(cluster)
        of_blocks, own_replicas = _choose("replicas", replicas, "replicas")
        of_tasks, own_tasks = _choose("tasks", tasks, "apps")
        try:
            self._engine = _native.EngineSession(
                self._cluster,
                of_blocks,
                of_tasks,
                seed,
                min(explain, MOST_EXPLAINED),
                json_text(ledger or {}),
                own_replicas,
                own_tasks,
            )
        except InputError as error:
            if error.file != "settings":
                raise
            raise InputError("ledger", None, None, error.field, error.message) from None

    @property
    def cluster(self) -> _native.Cluster:
        """The cluster."""
        return self._cluster

    @property
    def now_s(self) -> float:
        """Time of the session, in seconds from its start."""
        return self._engine.now_s

    @property
    def interval_s(self) -> float:
        """Time between reports, in seconds."""
        return self._engine.interval_s

    @property
    def placements(self) -> int:
        """Number of placements that were not released."""
        return self._engine.placements

    def advance(self, now_s: float) -> None:
        """Moves the time forward. Loads without a report become unknown after a while, as the ledger says.

        Raises:
            InputError: The time is before that of the session.
        """
        self._engine.advance(now_s)

    def report(
        self,
        loads: Mapping[str, float | None] | Any,
        *,
        since_s: float | None = None,
        until_s: float | None = None,
    ) -> int:
        """Reports mean loads of links over a window, and moves the time to its end.

        Args:
            loads: Bits per second by name of link, or a table with the columns `link` and `load_bps`. A link
                without a load is not reported.
            since_s: Start of the window; by default an interval before its end.
            until_s: End of the window; by default an interval after the time of the session.

        Returns:
            Number of loads that did not count, such as those of an earlier window.

        Raises:
            InputError: A link, a load or the window is invalid.
        """
        return self._engine.report(link_rows(loads, "loads", "load_bps"), since_s, until_s)

    def set_host(self, host: str, *, up: bool | None = None, draining: bool | None = None) -> None:
        """Marks a host as up or down, or as draining: then it takes no more work.

        Raises:
            InputError: The cluster has no such host.
        """
        self._engine.set_host(host, up, draining)

    def place_replicas(
        self,
        size: str | int,
        *,
        writer: str | None = None,
        replicas: int | None = None,
        coding: str | None = None,
        fault_domains: int | None = None,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        collocate: Sequence[str] | str = (),
        max_imbalance: float | None = None,
        existing: Sequence[str] | str = (),
        prefer: Sequence[str] | str = (),
        storage: str | None = None,
        labels: Mapping[str, str | Sequence[str]] | None = None,
    ) -> BlockDecision:
        """Places the copies of a block, or the chunks of its stripe, until a release.

        The arguments are those of `leeward.place_replicas`.

        Raises:
            InputError: An argument is invalid.
        """
        request = _block(
            size=size,
            writer=writer,
            replicas=replicas,
            coding=coding,
            fault_domains=fault_domains,
            exclude=exclude,
            tags=tags,
            collocate=collocate,
            max_imbalance=max_imbalance,
            existing=existing,
            prefer=prefer,
            storage=storage,
            labels=labels,
        )
        with name_arguments():
            return cast(BlockDecision, self._engine.place_replicas(request))

    def place_batch(
        self,
        sizes: Any,
        writers: Any = None,
        *,
        replicas: int = 3,
        fault_domains: int | None = None,
    ) -> Batch:
        """Places blocks together, until a release; a policy with `place_batch` sees all of them at once.

        Args:
            sizes: Bytes of each block, as an array or a sequence.
            writers: Host that writes each block, by name, or by number with -1 for a writer outside the
                cluster; by default all writers are.
            replicas: Copies of each block, the writer's included: 1 to 255.
            fault_domains: As in `leeward.place_replicas`.

        Raises:
            InputError: An argument is invalid.
        """
        import numpy

        whole_number("replicas", replicas, 1, 255)
        if fault_domains is not None:
            whole_number("fault_domains", fault_domains, 0, 255)
        amounts = _whole_numbers("sizes", sizes)
        hosts = numpy.full(len(amounts), -1, numpy.int64) if writers is None else self._writers(writers)
        ids, chosen, refused = self._engine.place_batch(amounts, hosts, replicas, fault_domains)
        rows = numpy.array(chosen, numpy.int32).reshape(len(amounts), replicas)
        return Batch(numpy.array(ids, numpy.int64), rows, refused)

    def place_tasks(
        self,
        app: App,
        *,
        exclude: Sequence[str] | str = (),
        tags: Sequence[str] | str = (),
        labels: Mapping[str, str | Sequence[str]] | None = None,
        apart: str | None = None,
    ) -> RunningDecision:
        """Places the tasks of an app, completely or not at all, until a release.

        The arguments are those of `leeward.place_tasks`.

        Raises:
            InputError: The app or an argument is invalid.
        """
        constraints = _constraints(exclude, tags, labels, apart)
        with name_arguments():
            answer = self._engine.place_tasks(app_document(app), constraints)
        return cast(RunningDecision, answer)

    def commit_replicas(
        self,
        hosts: Sequence[str] | str,
        size: str | int,
        *,
        writer: str | None = None,
        coding: str | None = None,
        existing: Sequence[str] | str = (),
    ) -> BlockDecision:
        """Counts copies of a block on hosts that the caller chose, until a release.

        The placement is a fact, so no host is refused: `why` has the reason for which a policy would have
        refused each host.

        Args:
            hosts: Hosts in the order of the chain.
            size: Size of the block, such as `256MiB`; a number is one of bytes.
            writer: Host that writes; None for a writer outside the cluster.
            coding: Erasure code, such as `6+3`: each host holds a chunk.
            existing: Hosts that have a copy already, or a chunk.

        Raises:
            InputError: An argument is invalid.
        """
        chosen = names(hosts)
        whole_number("hosts", len(chosen), 1, 255)
        replicas = None if coding is not None else len(chosen)
        request = _block(size=size, writer=writer, coding=coding, existing=existing, replicas=replicas)
        with name_arguments():
            number, objections = self._engine.commit_replicas(request, chosen)
        return {
            "id": number,
            "policy": CALLER,
            "hosts": chosen,
            "source": None,
            "refused": None,
            "note": None,
            "why": _given(chosen, objections),
            "oldest_telemetry_s": None,
        }

    def commit_tasks(self, hosts: Sequence[str] | str, app: App) -> RunningDecision:
        """Counts the tasks of an app on hosts that the caller chose, until a release.

        Args:
            hosts: Host of each task, in the order of the app.
            app: Tasks and the transfers between them, as in `leeward.place_tasks`.

        Returns:
            As `commit_replicas`.

        Raises:
            InputError: The app or a host is invalid.
        """
        chosen = names(hosts)
        with name_arguments():
            number, name, tasks = self._engine.commit_tasks(app_document(app), _constraints(), chosen)
        reasons = _given(chosen, [objection for _, objection in tasks])
        return {
            "id": number,
            "app": name,
            "policy": CALLER,
            "tasks": [{"task": task, "host": host} for (task, _), host in zip(tasks, chosen, strict=True)],
            "refused": None,
            "why": [{"task": task, "reason": one} for (task, _), one in zip(tasks, reasons, strict=True)],
            "oldest_telemetry_s": None,
        }

    def release(self, placed: Placed | Iterable[Placed], *, stored: bool = True) -> list[int]:
        """Ends placements: their traffic counts no longer, and tasks leave their hosts.

        Args:
            placed: A placement, or several: numbers, or answers of `place_...` and `commit_...`.
            stored: True if the blocks stay on their hosts: they are written. False if they are deleted.

        Returns:
            Numbers that the session does not have, or no longer. Refused blocks are left out.
        """
        return self._engine.release([number for number in _numbers(placed) if number >= 0], stored)

    def links(self) -> "pyarrow.Table":
        """All links now, with their loads.

        Returns:
            A table with the columns `link`, `capacity_bps`, `load_bps` (null: unknown), `residual_bps` and
            `utilization` (null: unknown). Loads have what was placed since the last report.
        """
        return self._engine.links()

    def __repr__(self) -> str:
        """Cluster, time and number of placements."""
        name, now_s, count = self._cluster.name, self.now_s, self.placements
        return f"<Session {name}: {count:,} placements at {now_s:g} s>"

    def _writers(self, writers: Any) -> "Ints":
        """Numbers of hosts."""
        if isinstance(writers, Sequence) and any(isinstance(writer, str) for writer in writers):
            known = {name: at for at, name in enumerate(self._cluster.host_names())}
            for writer in writers:
                if writer is not None and writer not in known:
                    message = f"`{str(writer)[:40]}`: the cluster has no such host"
                    raise InputError.about("writers", message)
            writers = [-1 if writer is None else known[writer] for writer in writers]
        return _whole_numbers("writers", writers)


def _choose(argument: str, policy: Policy, kind: str) -> tuple[str, Callable[[int], Started] | None]:
    """Name of a policy, and the function that starts it if it is the user's own.

    Raises:
        InputError: The policy does not exist, or is not for this kind of runs.
    """
    label, start = choose_one(policy, argument)
    if start is None:
        with name_policy(argument):
            _native.check_policy(label, kind)
    return label, start


def _block(
    *,
    size: str | int,
    replicas: int | None,
    fault_domains: int | None = None,
    exclude: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    collocate: Sequence[str] | str = (),
    existing: Sequence[str] | str = (),
    prefer: Sequence[str] | str = (),
    labels: Mapping[str, str | Sequence[str]] | None = None,
    **others: str | float | None,
) -> str:
    """Fields of a request for a block, as JSON."""
    if replicas is not None:
        whole_number("replicas", replicas, 1, 255)
    if fault_domains is not None:
        whole_number("fault_domains", fault_domains, 0, 255)
    lists = {"exclude": exclude, "tags": tags, "collocate": collocate, "existing": existing, "prefer": prefer}
    return json.dumps(
        {
            "size": size_text("size", size),
            # Zero is the default of the session.
            "replicas": replicas or 0,
            "fault_domains": fault_domains,
            "labels": label_values(labels),
            **{field: names(value) for field, value in lists.items()},
            **others,
        }
    )


def _constraints(
    exclude: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    labels: Mapping[str, str | Sequence[str]] | None = None,
    apart: str | None = None,
) -> str:
    """Constraints of a request for tasks, as JSON."""
    lists = {"exclude": names(exclude), "tags": names(tags), "labels": label_values(labels)}
    return json.dumps(lists | {"apart": apart})


def _given(hosts: list[str], objections: list[str | None]) -> list[Reason]:
    """Hosts of the caller, with the reasons for which a policy would have refused them."""
    return [
        {
            "candidate": host,
            "limit": None,
            "sight": None,
            "value_bps": None,
            "verdict": "chosen",
            "because": objection,
        }
        for host, objection in zip(hosts, objections, strict=True)
    ]


def _numbers(placed: Any) -> list[int]:
    """Numbers of placements; refused ones are left out."""
    if isinstance(placed, Batch):
        return [int(number) for number in placed.ids]
    if isinstance(placed, Mapping):
        return [] if placed["id"] is None else [int(placed["id"])]
    if isinstance(placed, Iterable):
        return [number for one in placed for number in _numbers(one)]
    return [int(placed)]


def _whole_numbers(argument: str, values: Any) -> "Ints":
    """An array of whole numbers with one dimension.

    Raises:
        InputError: The values are something else.
    """
    import numpy

    try:
        array = numpy.asarray(values)
        if array.size == 0:
            array = array.astype(numpy.int64)
    except (TypeError, ValueError):
        array = numpy.empty(0, numpy.object_)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError.about(argument, "expected whole numbers, one for each block")
    return numpy.ascontiguousarray(array, numpy.int64)
