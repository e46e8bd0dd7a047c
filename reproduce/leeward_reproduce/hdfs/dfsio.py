"""TestDFSIO, Hadoop's benchmark of files, at all hosts of a cluster at once.

Hadoop's job runner needs a daemon at each host and a program for each mapper. Here, TestDFSIO runs at each
host with MapReduce's runner for one program: its mappers are threads, and write to HDFS as those of a job.
Each host has a job of its own, with a reducer of its own.
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from leeward_reproduce.hdfs.circuits import CircuitCluster
from leeward_reproduce.hdfs.processes import Process
from leeward_reproduce.hdfs.traces import WRITE, Trace, of_datanodes
from leeward_reproduce.hdfs.views import Carried, watching

MEBIBYTE = 1 << 20
REPLICAS = 2
"""Copies of a block: one at the writer, and one in another rack."""
_LONGEST_S = 7200.0
"""Real time after which a job is stopped."""
_POLL_S = 0.5
_TIME = re.compile(r"TestDFSIO: Exec time = (\d+)")


@dataclass(frozen=True)
class Job:
    """Measurements of a job, in real time.

    Attributes:
        writes: Blocks of files, as the writers' own DataNodes took them.
        copies: Copies that other DataNodes took.
        files: Time of each file in seconds, by its mapper.
        carried: Traffic of the switch.
    """

    writes: list[Trace]
    copies: list[Trace]
    files: list[float]
    carried: Carried


def run(
    cluster: CircuitCluster,
    mappers: int,
    size: int,
    name: str,
    bound_s: float,
    progress: Callable[[float], object] = lambda _: None,
) -> Job:
    """Lets all mappers write a file each, and deletes the files.

    Args:
        cluster: The cluster.
        mappers: Mappers at each host.
        size: Size of a file in bytes, whole MiB.
        name: Name of the folder of the files, which HDFS does not have yet.
        bound_s: Largest lateness of packets that are in time, in virtual seconds.
        progress: Called with the share of the bytes that have crossed the switch.

    Raises:
        OSError: A process failed, or a file is not complete.
    """
    total = mappers * len(cluster.hosts) * size
    servers = cluster.processes
    began = time.time()
    with watching(cluster.circuits.view) as watch:
        jobs = [
            cluster.benchmark(host, *arguments(cluster, host, mappers, size, name)) for host in cluster.hosts
        ]
        _await(servers, jobs, lambda: progress(min(watch.bytes / total, 1.0)))
    files = [one for job in jobs for one in times(job.log.read_text(encoding="utf-8").splitlines())]
    for job in jobs:
        cluster.end(job)
    # Small files of the benchmark have no part in it.
    known = of_datanodes(cluster.processes, began)
    blocks = [one for one in known if one.operation == WRITE and one.bytes >= MEBIBYTE]
    writes = [one for one in blocks if not one.crosses]
    written = sum(one.bytes for one in writes)
    if written != total or len(files) != mappers * len(cluster.hosts):
        raise OSError(f"TestDFSIO wrote {len(files)} files of {written} bytes; expected {total} bytes")
    cluster.delete(f"/{name}")
    return Job(writes, [one for one in blocks if one.crosses], files, watch.carried(bound_s))


def arguments(cluster: CircuitCluster, host: str, mappers: int, size: int, name: str) -> list[str]:
    """Arguments of the benchmark at a host."""
    properties = {
        "dfs.replication": str(REPLICAS),
        "dfs.blocksize": str(cluster.shape.block),
        "mapreduce.framework.name": "local",
        "mapreduce.local.map.tasks.maximum": str(mappers),
        # Each mapper has a buffer of this size for its five numbers.
        "mapreduce.task.io.sort.mb": "1",
        "hadoop.tmp.dir": str(cluster.folder / "tmp" / host),
        "test.build.data": f"/{name}/{host}",
    }
    settings = [word for key, value in properties.items() for word in ("-D", f"{key}={value}")]
    result = str(cluster.folder / "tmp" / f"{host}-{name}.txt")
    files = ("-nrFiles", str(mappers), "-size", f"{size // MEBIBYTE}MB")
    return [*settings, "-write", *files, "-resFile", result]


def times(lines: Iterable[str]) -> list[float]:
    """Times of files in seconds, from the log of a benchmark."""
    return [int(found[1]) / 1000 for found in map(_TIME.search, lines) if found]


def _await(servers: Iterable[Process], jobs: Iterable[Process], progress: Callable[[], object]) -> None:
    """Waits for the end of jobs. A server that ends is an error."""
    deadline = time.monotonic() + _LONGEST_S
    running = list(jobs)
    while running:
        time.sleep(_POLL_S)
        for server in servers:
            server.check()
        for job in running:
            if job.process.poll() is not None:
                job.finish(0)
            elif time.monotonic() > deadline:
                raise job.error(f"did not end within {_LONGEST_S:g} s")
        running = [job for job in running if job.process.returncode is None]
        progress()
