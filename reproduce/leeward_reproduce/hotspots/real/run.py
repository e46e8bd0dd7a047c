"""A run on a cluster: hosts write files of one block, and read them when all are written."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from leeward_reproduce.hdfs import ObservedCluster
from leeward_reproduce.hdfs.load import (
    LEAD_S,
    PATIENCE_S,
    REPLICAS,
    order,
    order_read,
    usage_of,
    wait_for,
    warm_up,
)
from leeward_reproduce.hdfs.namenode import Replica
from leeward_reproduce.hdfs.outcome import Outcome
from leeward_reproduce.hdfs.traces import READ, Trace, of_datanodes
from leeward_reproduce.hotspots.real.scenario import Plan
from leeward_reproduce.real.bench import Advance

_SETTLE_S = 30.0
"""Longest time until the NameNode knows the copies of a file, and DataNodes have logged its reads."""
_POLL_S = 0.2


@dataclass(frozen=True)
class ChunkRun:
    """Measurements of a run.

    Attributes:
        traces: Blocks that DataNodes wrote and read.
        unix_s: Unix time of the start.
        outcome: Loads of the links of racks.
        reads: Times of reads in seconds, by their readers.
        stored: Copies in each rack, by its name.
    """

    traces: list[Trace]
    unix_s: float
    outcome: Outcome
    reads: list[float]
    stored: dict[str, int]


def run(cluster: ObservedCluster, plan: Plan, name: str, progress: Advance = lambda _: None) -> ChunkRun:
    """Runs a plan, and deletes its files.

    Args:
        cluster: The cluster.
        plan: Writes and reads.
        name: Name of the folder of its files, which HDFS does not have yet.
        progress: Called with the share of complete writes and reads.

    Raises:
        OSError: A file was not written or read, or a process failed.
    """
    warm_up(cluster, f"{name}-before")
    usage = usage_of(cluster)
    part = len(plan.writes) / (len(plan.writes) + len(plan.reads))
    with cluster.counters.sampling() as samples:
        start = time.monotonic() + LEAD_S
        unix_s = time.time() + LEAD_S
        paths = [f"/{name}/{at}" for at in range(len(plan.writes))]
        files = [order(cluster, one, start, path) for one, path in zip(plan.writes, paths, strict=True)]
        deadline = start + plan.reads_from_s + PATIENCE_S
        wait_for(cluster, files, deadline, lambda share: progress(part * share))
        copies = [_replicas(cluster, path) for path in paths]
        # Reads are as far apart as planned, also if the last file was late.
        late_s = max(time.monotonic() - start - plan.reads_from_s, 0.0)
        reads = [
            order_read(
                cluster,
                reader(cluster.racks, copies[one.file], one.draw),
                start + late_s + one.at_s,
                paths[one.file],
                plan.writes[one.file].bytes,
            )
            for one in plan.reads
        ]
        seconds = plan.seconds + late_s
        wait_for(
            cluster, reads, start + seconds + PATIENCE_S, lambda share: progress(part + (1 - part) * share)
        )
        time.sleep(max(start + seconds - time.monotonic(), 0.0))
    busy = usage.busy()
    cluster.check()
    decisions = usage.decisions()
    traces = _traces(cluster, unix_s, len(reads))
    times = [one.result()["ended_s"] - one.result()["began_s"] for one in reads]
    stored = dict.fromkeys(cluster.racks.values(), 0)
    for block in copies:
        for copy in block:
            stored[copy.rack] += 1
    cluster.delete(f"/{name}")
    outcome = Outcome([], samples, start, seconds, decisions=decisions, busy=busy)
    return ChunkRun(traces, unix_s, outcome, times, stored)


def reader(racks: dict[str, str], copies: Sequence[Replica], draw: float) -> str:
    """The host that reads a file: one in a rack without a copy, as the paper's readers are.

    Args:
        racks: Name of the rack of each host.
        copies: Copies of the file.
        draw: Number from 0 to 1.
    """
    holding = {one.rack for one in copies}
    others = [host for host, rack in racks.items() if rack not in holding]
    return others[int(draw * len(others))]


def _replicas(cluster: ObservedCluster, path: str) -> list[Replica]:
    """The copies of a file. It is complete before the NameNode knows the last of them."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        (replicas,) = cluster.files.replicas(path)
        if len(replicas) >= REPLICAS:
            return replicas
        if time.monotonic() > deadline:
            raise OSError(f"{path}: {len(replicas)} of {REPLICAS} copies after {_SETTLE_S:g} s")
        time.sleep(_POLL_S)


def _traces(cluster: ObservedCluster, since_s: float, reads: int) -> list[Trace]:
    """The client traces of a run. A DataNode logs a read after it has sent the last byte."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        traces = of_datanodes(cluster.processes, since_s)
        sent = sum(one.operation == READ for one in traces)
        if sent >= reads:
            return traces
        if time.monotonic() > deadline:
            raise OSError(f"DataNodes have logged {sent} of {reads} reads; see their client trace")
        time.sleep(_POLL_S)
