"""A run: files that hosts write at set times over background traffic, and what is measured of it."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from typing import Any

from leeward_reproduce.hdfs.cluster import CORE, HdfsCluster
from leeward_reproduce.hdfs.namenode import source, target
from leeward_reproduce.hdfs.outcome import FileTime, Outcome
from leeward_reproduce.hdfs.settings import DATANODE_HTTP_PORT

REPLICAS = 3
_PORT = 9
_LEAD_S = 0.5
"""Time from the orders to the start of the run."""
PATIENCE_S = 180.0
"""Longest time of a file."""
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
    until_s: float
    host: str
    rate_bps: float


@dataclass(frozen=True)
class Load:
    """Writes and background traffic of a run."""

    writes: Sequence[Write]
    streams: Sequence[Stream]
    seconds: float
    """Length of the run. Files that are not complete at its end are waited for."""


def run(
    cluster: HdfsCluster, load: Load, name: str, progress: Callable[[float], object] = lambda _: None
) -> Outcome:
    """Runs a load, and deletes its files.

    Args:
        cluster: The cluster.
        load: Writes and background traffic.
        name: Name of the folder of its files, which HDFS does not have yet.
        progress: Called with the share of complete files.

    Raises:
        ProcessError: A file was not written, or a process failed.
    """
    _open_sinks(cluster, load.streams)
    warm_up(cluster, f"{name}-before")
    with cluster.counters.sampling() as samples:
        start = time.monotonic() + _LEAD_S
        streams = [
            cluster.workers[CORE].order(
                "send",
                at=start + one.at_s,
                until=start + one.until_s,
                address=cluster.network.machine(one.host).address,
                port=_PORT,
                rate_bps=one.rate_bps,
            )
            for one in load.streams
        ]
        files = [order(cluster, one, start, f"/{name}/{at}") for at, one in enumerate(load.writes)]
        wait_for(cluster, files, start + load.seconds + PATIENCE_S, progress)
        time.sleep(max(start + load.seconds - time.monotonic(), 0.0))
    wait_for(cluster, streams, time.monotonic() + PATIENCE_S, lambda _: None)
    times = [
        FileTime(one.host, one.bytes, future.result()["ended_s"] - future.result()["began_s"])
        for one, future in zip(load.writes, files, strict=True)
    ]
    cluster.delete(f"/{name}")
    return Outcome(times, samples, start, load.seconds)


def warm_up(cluster: HdfsCluster, name: str) -> None:
    """Lets each host write a small file, because programs of Java are slow at first.

    Raises:
        ProcessError: A file was not written.
    """
    now = time.monotonic()
    writes = [Write(0.0, host, _WARM_UP) for host in cluster.hosts]
    files = [order(cluster, one, now, f"/{name}/{one.host}") for one in writes]
    wait_for(cluster, files, now + PATIENCE_S, lambda _: None)
    cluster.files.delete(f"/{name}")


def order(cluster: HdfsCluster, one: Write, start: float, path: str) -> Future[dict[str, Any]]:
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


def order_read(cluster: HdfsCluster, host: str, at: float, path: str, size: int) -> Future[dict[str, Any]]:
    """Orders a read of a whole file at a monotonic time; the answer has the times of its begin and end."""
    return cluster.workers[host].order(
        "read",
        at=at,
        bytes=size,
        target=source(path, cluster.core),
        port=DATANODE_HTTP_PORT,
        timeout_s=PATIENCE_S,
    )


def _open_sinks(cluster: HdfsCluster, streams: Sequence[Stream]) -> None:
    """Opens the ports to which background traffic goes. They stay open for later runs."""
    hosts = {one.host for one in streams} - cluster.sinks
    opened = [cluster.workers[host].order("sink", port=_PORT) for host in hosts]
    wait_for(cluster, opened, time.monotonic() + PATIENCE_S, lambda _: None)
    cluster.sinks |= hosts


def wait_for(
    cluster: HdfsCluster,
    futures: Sequence[Future[dict[str, Any]]],
    deadline: float,
    progress: Callable[[float], object],
) -> None:
    """Waits for answers; the first error ends it, with the process that caused it if one has ended.

    Args:
        cluster: The cluster.
        futures: Answers of helpers.
        deadline: Monotonic time at which the wait ends with an error.
        progress: Called with the share of the answers.
    """
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_EXCEPTION)
        for future in done:
            if future.exception() is not None:
                cluster.check()
            future.result()
        progress(1 - len(waiting) / len(futures))
        if waiting and time.monotonic() > deadline:
            raise TimeoutError(f"{len(waiting)} of {len(futures)} orders have no answer")
