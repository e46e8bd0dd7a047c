"""A run: files that hosts write at set times over background traffic, and what is measured of it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from leeward_reproduce.hdfs import namenode
from leeward_reproduce.hdfs.namenode import source, target
from leeward_reproduce.hdfs.observed import CORE, ObservedCluster
from leeward_reproduce.hdfs.outcome import FileTime, Outcome
from leeward_reproduce.hdfs.settings import DATANODE_HTTP_PORT
from leeward_reproduce.hdfs.stored import StoredFiles
from leeward_reproduce.hdfs.usage import RejectedRunError, Usage

REPLICAS = 3
_PORT = 9
LEAD_S = 0.5
"""Time from the orders to the start of the run."""
PATIENCE_S = 180.0
"""Longest time of a file."""
_SETTLE_S = 30.0
"""Longest time until the NameNode knows the last copies, also if it had to replace one."""
_LEAST_BACKGROUND = 0.95
"""Smallest share of the planned background that a link carries, beside all other traffic."""
_WARM_UP = 1 << 20
"""Bytes of a file that is written before a run."""


@dataclass(frozen=True)
class Write:
    """A file that a host writes from a time on, in seconds from the start of the run."""

    at_s: float
    host: str
    bytes: int


@dataclass(frozen=True)
class Stream:
    """Background traffic from the core to a host, which does not slow down for other traffic."""

    at_s: float
    until_s: float | None
    """Its end; None for as long as files are written."""
    host: str
    rate_bps: float

    def bytes(self, seconds: float) -> float:
        """Its bytes on the wire in a run of a length."""
        end = seconds if self.until_s is None else min(self.until_s, seconds)
        return self.rate_bps * max(end - self.at_s, 0.0) / 8


@dataclass(frozen=True)
class Load:
    """Writes and background traffic of a run."""

    writes: Sequence[Write]
    streams: Sequence[Stream]
    seconds: float
    """Length of the run. Files that are not complete at its end are waited for."""


def run(
    cluster: ObservedCluster,
    load: Load,
    name: str,
    progress: Callable[[float], object] = lambda _: None,
    cache: int | None = None,
) -> Outcome:
    """Runs a load, and deletes its files.

    Args:
        cluster: The cluster.
        load: Writes and background traffic.
        name: Name of the folder of its files, which HDFS does not have yet.
        progress: Called with the share of complete files.
        cache: Bytes that a host may store; while one stores more, the oldest files are deleted. By default
            there is no limit.

    Raises:
        OSError: A file was not written, a process failed, or a link did not carry its background.
    """
    open_sinks(cluster, [one.host for one in load.streams])
    warm_up(cluster, f"{name}-before")
    stored = StoredFiles(cluster.files, REPLICAS, cache)
    usage = usage_of(cluster)
    with cluster.counters.sampling() as samples:
        start = time.monotonic() + LEAD_S
        last_s = load.seconds + PATIENCE_S
        streams = [send(cluster, one, start, last_s, name) for one in load.streams]
        files = [order(cluster, one, start, f"/{name}/{at}") for at, one in enumerate(load.writes)]
        sizes = {file: (f"/{name}/{at}", load.writes[at].bytes) for at, file in enumerate(files)}

        def store(complete: Iterable[Future[dict[str, Any]]]) -> None:
            for file in in_order(complete):
                stored.add(*sizes[file])
            if cache is not None:
                stored.update()

        wait_for(cluster, files, start + last_s, progress, store)
        time.sleep(max(start + load.seconds - time.monotonic(), 0.0))
    busy = usage.busy()
    cluster.check()
    streams.append(cluster.workers[CORE].order("stop", name=name))
    wait_for(cluster, streams, time.monotonic() + PATIENCE_S)
    times = [
        FileTime(one.host, one.bytes, future.result()["ended_s"] - future.result()["began_s"])
        for one, future in zip(load.writes, files, strict=True)
    ]
    stored.settle(_SETTLE_S)
    bytes_by_host = dict.fromkeys(cluster.hosts, 0) | stored.by_host()
    decisions = usage.decisions()
    cluster.delete(f"/{name}")
    outcome = Outcome(
        times, samples, start, load.seconds, bytes_by_host, stored.evicted, decisions=decisions, busy=busy
    )
    check_background(name, load, cluster.racks, outcome)
    return outcome


def usage_of(cluster: ObservedCluster) -> Usage:
    """Decisions and processors from now on.

    Raises:
        OSError: The NameNode does not answer.
    """
    return Usage(partial(namenode.decisions, cluster.namenode_url))


def in_order(files: Iterable[Future[dict[str, Any]]]) -> list[Future[dict[str, Any]]]:
    """Written files in the order of their ends."""
    return sorted(files, key=lambda file: file.result()["ended_s"])


def check_background(run: str, load: Load, racks: Mapping[str, str], outcome: Outcome) -> None:
    """Checks that the links into racks carried the background of a run.

    Args:
        run: Name of the run.
        load: Its load.
        racks: Name of the rack of each host.
        outcome: Its measurements.

    Raises:
        RejectedRunError: A link carried fewer bytes than its background has.
    """
    for rack in sorted({racks[one.host] for one in load.streams}):
        planned = sum(one.bytes(load.seconds) for one in load.streams if racks[one.host] == rack)
        carried = outcome.carried(f"{rack}:downlink")
        if carried < _LEAST_BACKGROUND * planned:
            raise RejectedRunError(
                f"{run}: the link into {rack} carried {carried / 1e6:.0f} MB, less than its background of"
                f" {planned / 1e6:.0f} MB; the machine is too busy to send it"
            )


def warm_up(cluster: ObservedCluster, name: str) -> None:
    """Lets each host write a small file, because programs of Java are slow at first.

    Raises:
        ProcessError: A file was not written.
    """
    now = time.monotonic()
    writes = [Write(0.0, host, _WARM_UP) for host in cluster.hosts]
    files = [order(cluster, one, now, f"/{name}/{one.host}") for one in writes]
    wait_for(cluster, files, now + PATIENCE_S)
    cluster.files.delete(f"/{name}")


def order(cluster: ObservedCluster, one: Write, start: float, path: str) -> Future[dict[str, Any]]:
    """Orders a file; the answer of the future has the times at which it began and ended."""
    request = target(path, cluster.core, cluster.shape.block, REPLICAS)
    return cluster.workers[one.host].order(
        "write",
        at=start + one.at_s,
        bytes=one.bytes,
        target=request,
        port=DATANODE_HTTP_PORT,
        timeout_s=PATIENCE_S,
    )


def order_read(
    cluster: ObservedCluster, host: str, at: float, path: str, size: int
) -> Future[dict[str, Any]]:
    """Orders a read of a whole file at a monotonic time; the answer has the times of its start and end."""
    return cluster.workers[host].order(
        "read",
        at=at,
        bytes=size,
        target=source(path, cluster.core),
        port=DATANODE_HTTP_PORT,
        timeout_s=PATIENCE_S,
    )


def send(
    cluster: ObservedCluster, one: Stream, start: float, last_s: float, name: str
) -> Future[dict[str, Any]]:
    """Orders background traffic to a host whose sink is open.

    Args:
        cluster: The cluster.
        one: The traffic.
        start: Monotonic time of the start of the run.
        last_s: End of traffic without an end, in seconds from the start.
        name: Name by which an order `stop` ends it.
    """
    return cluster.workers[CORE].order(
        "send",
        name=name,
        at=start + one.at_s,
        until=start + (last_s if one.until_s is None else one.until_s),
        address=cluster.network.machine(one.host).address,
        port=_PORT,
        rate_bps=one.rate_bps,
    )


def open_sinks(cluster: ObservedCluster, hosts: Iterable[str]) -> None:
    """Opens the ports to which background traffic goes. They stay open for later runs."""
    new = set(hosts) - cluster.sinks
    opened = [cluster.workers[host].order("sink", port=_PORT) for host in new]
    wait_for(cluster, opened, time.monotonic() + PATIENCE_S)
    cluster.sinks |= new


def wait_for(
    cluster: ObservedCluster,
    futures: Sequence[Future[dict[str, Any]]],
    deadline: float,
    progress: Callable[[float], object] = lambda _: None,
    take: Callable[[Iterable[Future[dict[str, Any]]]], object] = lambda _: None,
) -> None:
    """Waits for answers; the first error ends it, with the process that caused it if one has ended.

    Each second, `progress` is called with the share of answers, and `take` with those that are new.

    Raises:
        OSError: An order failed, or has no answer at the deadline.
    """
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_EXCEPTION)
        for future in done:
            if future.exception() is not None:
                cluster.check()
            future.result()
        take(done)
        progress(1 - len(waiting) / len(futures))
        if waiting and time.monotonic() > deadline:
            raise TimeoutError(f"{len(waiting)} of {len(futures)} orders have no answer")
