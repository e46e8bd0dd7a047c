"""Requests of a run, simulated and real: each with the class of its rack and the load of that rack's link.

Requests are those of figure 14: a read leaves the rack of its copy by the uplink, and a copy arrives in its
rack by the downlink. Requests within a rack and a writer's own copy cross no link of a rack, and do not
count.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pyarrow

from leeward import simulate
from leeward._native import Run
from leeward_reproduce.hdfs.machine import rack_number
from leeward_reproduce.hdfs.traces import READ, Trace
from leeward_reproduce.hotspots.real.run import ChunkRun
from leeward_reproduce.hotspots.real.scenario import LINKS_BPS, POLICIES, SHAPE, WARMUP_S, WINDOW_S
from leeward_reproduce.hotspots.requests import Requests, classes, join_loads
from leeward_reproduce.real.results import decisions_of

LINKS = {"reads": "uplink", "writes": "downlink"}
"""Link of a rack that requests of a kind cross."""
_RATES = [rate for rate in LINKS_BPS for _ in range(SHAPE.racks // len(LINKS_BPS))]
"""Rates of the links of racks, by number."""


@dataclass(frozen=True)
class Measures:
    """Measurements of a run.

    Attributes:
        kinds: Positions of the classes of requests in `requests.CLASSES`, of reads and of writes.
        utilization: Utilization of the link of each request, 0 to 1, of reads and of writes.
        seconds: Times of reads that crossed racks.
        stored: Copies in racks, by number of the rack.
        decisions: Number of decisions of the policy by reason; none under HDFS's own policy.
        busy: Share of the processors' time in use; None in the simulator.
    """

    kinds: dict[str, list[int]]
    utilization: dict[str, list[float]]
    seconds: list[float]
    stored: list[int]
    decisions: dict[str, int] = field(default_factory=dict)
    busy: float | None = None


@dataclass(frozen=True)
class _Request:
    host: str
    began_s: float
    ended_s: float


def measure(run: ChunkRun, cluster: Path, addresses: dict[str, str], racks: dict[str, str]) -> Measures:
    """Measures a run of the cluster.

    Args:
        run: The run.
        cluster: Its cluster file.
        addresses: Names of hosts by their addresses.
        racks: Names of racks by those of their hosts.
    """
    requests = {
        "reads": [
            _Request(addresses[one.source], one.began_s - run.unix_s, one.ended_s - run.unix_s)
            for one in run.traces
            if one.operation == READ and racks[addresses[one.source]] != racks[addresses[one.destination]]
        ],
        "writes": _remote_copies(run, addresses, racks),
    }
    found = {
        kind: _join(of_kind, _loads(run, way), cluster, way)
        for (kind, of_kind), way in zip(requests.items(), LINKS.values(), strict=True)
    }
    stored = [run.stored[f"r{rack}"] for rack in range(SHAPE.racks)]
    return _measures(found, run.reads, stored, run.outcome.decisions, run.outcome.busy)


def simulate_pair(file: Path) -> dict[str, Measures]:
    """Runs a scenario in the simulator under both policies."""
    runs = simulate(file, jobs=1)
    return {
        policy: _simulated(run, policy, file.parent / "cluster.yaml")
        for policy, run in zip(POLICIES, runs, strict=True)
    }


def _simulated(run: Run, policy: str, cluster: Path) -> Measures:
    links = run.links()
    blocks = [row for row in run.blocks().to_pylist() if row["finished_s"] is not None]
    reads = [
        row
        for row in run.reads().to_pylist()
        if row["finished_s"] is not None and rack_number(row["reader"]) != rack_number(row["holder"])
    ]
    requests = {
        "reads": [_Request(row["holder"], row["asked_s"], row["finished_s"]) for row in reads],
        "writes": [
            _Request(host, row["placed_s"], row["finished_s"])
            for row in blocks
            for host in row["hosts"]
            if rack_number(host) != rack_number(row["writer"])
        ],
    }
    found = {kind: _join(of_kind, links, cluster, LINKS[kind]) for kind, of_kind in requests.items()}
    stored = [
        sum(rack_number(host) == rack for row in blocks for host in row["hosts"])
        for rack in range(SHAPE.racks)
    ]
    seconds = [row["finished_s"] - row["asked_s"] for row in reads]
    return _measures(found, seconds, stored, {} if policy == "default" else decisions_of(run))


def _remote_copies(run: ChunkRun, addresses: dict[str, str], racks: dict[str, str]) -> list[_Request]:
    """Copies in other racks than that of the block's writer."""
    writes = [one for one in run.traces if one.operation != READ and one.bytes == SHAPE.block]
    writer = {block: racks[addresses[one]] for block, one in writers(writes).items()}
    return [
        _Request(addresses[one.destination], one.began_s - run.unix_s, one.ended_s - run.unix_s)
        for one in writes
        if racks[addresses[one.destination]] != writer[one.block]
    ]


def writers(writes: Iterable[Trace]) -> dict[str, str]:
    """Addresses of the writers of blocks, by the names of blocks.

    The writer's own DataNode takes the first copy from the same machine, unless HDFS finds it too busy. Then
    the writer is the only machine that sends the block and has no copy of it.

    Raises:
        OSError: DataNodes have not logged the first copy of a block.
    """
    of_block: dict[str, list[Trace]] = {}
    for one in writes:
        of_block.setdefault(one.block, []).append(one)
    result: dict[str, str] = {}
    for block, copies in of_block.items():
        holding = {one.destination for one in copies if one.crosses}
        senders = {one.source for one in copies if one.source not in holding}
        if len(senders) != 1:
            raise OSError(f"{block}: DataNodes have logged {len(senders)} writers; see their client trace")
        (result[block],) = senders
    return result


def _loads(run: ChunkRun, way: str) -> pyarrow.Table:
    """Utilization of the links of racks, as in the table `links` of a simulation."""
    loads = run.outcome.loads(way, WINDOW_S)[round(WARMUP_S / WINDOW_S) :]
    start = WARMUP_S + WINDOW_S * numpy.arange(len(loads))
    return pyarrow.table(
        {
            "link": [link for _ in start for link in run.outcome.links(way)],
            "start_s": numpy.repeat(start, loads.shape[1]),
            "utilization": (loads / numpy.array(_RATES)).ravel(),
        }
    )


def _join(requests: Sequence[_Request], links: pyarrow.Table, cluster: Path, way: str) -> Requests:
    hosts = pyarrow.chunked_array([pyarrow.array([one.host for one in requests], "string")])
    table = pyarrow.table(
        {
            "began_s": pyarrow.array([one.began_s for one in requests], "float64"),
            "finished_s": pyarrow.array([one.ended_s for one in requests], "float64"),
        }
    )
    count = numpy.ones(len(requests), dtype=int)
    return join_loads(links, classes(cluster), way, hosts, count, table, "began_s")


def _measures(
    found: dict[str, Requests],
    seconds: list[float],
    stored: list[int],
    decisions: dict[str, int],
    busy: float | None = None,
) -> Measures:
    kinds = {kind: [int(one) for one in requests.kind] for kind, requests in found.items()}
    loads = {kind: [float(one) for one in requests.utilization] for kind, requests in found.items()}
    return Measures(kinds, loads, seconds, stored, decisions, busy)
