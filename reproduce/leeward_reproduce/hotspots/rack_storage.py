"""Storage operations through a loaded rack link, request by request (Hotspots, section 4.3 and appendices).

A rack serves the observed operations and other traffic. The utilization of the rack's link is given, in both
directions. In the request simulator, every request waits for the device and for each link on its path. The
results are the time of each operation and the load of the rack's link in each interval. The inflation of
latencies is a result of the simulation, not an input. Requests take these paths::

    read:   device of the server --> server's NIC --> rack's uplink   --> client's NIC
    write:  client's NIC --> rack's downlink --> server's NIC --> memory of the server

*Bursts.* The other traffic consists of chunks that each host of the rack sends and receives. The squared
coefficient of variation (C^2) of the gaps between chunks is the median of the published workloads (SLO table
3.1). Gaps are hyperexponential with balanced means. Chunks have the sizes of the paper's chunks. *Links* send
64 KiB at a time. Without classes of service, they serve requests in order of arrival.

*Left out.* There is no TCP: a sender puts a whole chunk into its NIC's queue, and only the links delay it.
Servers, RPCs and switches take no time. The load of devices does not depend on the load of the link.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import pyarrow
import yaml
from pyarrow import parquet

from leeward import Cluster, slo
from leeward._arrays import Floats, Ints
from leeward._native import published_workloads

HOSTS = 5
"""Number of hosts of the rack, as in `clusters/storage.yaml`."""
NIC = "10Gbps"
MEDIUM_BPS = 3e9
"""Rate of the uplink of a Medium-Uplink rack in that cluster, in bits per second."""
CHUNK = (100_000, 1_000_000)
SMALL, LARGE = (10_000, 100_000), (1_000_000, 10_000_000)
"""Smallest and largest operation, in bytes (section 4.3, appendix B). Sizes are log-uniform."""
FRAME = 65_536
INTERVAL_S = 30
"""Seconds of an interval of telemetry (section 4.1)."""
WARMUP_S = 15
LEVELS: tuple[float, ...] = tuple(0.025 + 0.05 * at for at in range(20))
"""Utilizations: the middles of buckets of 5 %."""

DEVICES: dict[str, dict[str, Any]] = {
    "hdd": {"disk": {"seek_seconds": 0.008, "read_bytes_per_second": 150e6, "write_bytes_per_second": 140e6}},
    "ssd": {
        "table": [
            {"size_bytes": 4096, "read_iops": 60000, "write_iops": 40000},
            {"size_bytes": 1 << 20, "read_iops": 480, "write_iops": 360},
        ]
    },
    "ram": {
        "table": [
            {"size_bytes": 4096, "read_iops": 1e6, "write_iops": 1e6},
            {"size_bytes": 1 << 20, "read_iops": 10000, "write_iops": 10000},
        ]
    },
}
"""A disk of 7,200 rpm, an SSD of 500 MB/s, and memory of 10 GB/s; all are round numbers of our choice."""


@dataclass(frozen=True)
class Operation:
    """A kind of operations."""

    name: str
    kind: str
    """`read` or `write`; writes end in a cache, as in the paper."""
    medium: str
    sizes: tuple[int, int]
    rate: float
    """Operations per second, with exponential gaps."""


OPERATIONS = (
    Operation("hdd-read", "read", "hdd", CHUNK, 5),
    Operation("hdd-read-small", "read", "hdd", SMALL, 5),
    Operation("hdd-read-large", "read", "hdd", LARGE, 2),
    Operation("ssd-read", "read", "ssd", CHUNK, 5),
    Operation("ram-read", "read", "ram", CHUNK, 5),
    Operation("hdd-write", "write", "ram", CHUNK, 5),
    Operation("hdd-write-small", "write", "ram", SMALL, 5),
    Operation("hdd-write-large", "write", "ram", LARGE, 2),
)
"""All observed operations; the link carries their bytes too."""
CLASSES = ("PC", "NC")
"""Classes of service (appendix C); links serve PC first."""
STAGES = {"read": ("storage", "network-out"), "write": ("network-in", "storage")}


def burstiness() -> float:
    """C^2 of the gaps between requests: the median of the workloads of SLO table 3.1."""
    return float(statistics.median(row["gap_c2"] for row in published_workloads().values()))


@dataclass(frozen=True)
class ServedOperations:
    """Operations at all levels of utilization, and the load of the link.

    Arrays without another description have a value for each operation.
    """

    operation: Ints
    """Position of the operation's kind in `operations`."""
    interval: Ints
    """Number of the interval in which the operation ended, counted from 0 over all levels."""
    end_s: Floats
    """End of the operation, in seconds from the start of the first interval. Levels follow one another."""
    bytes: Ints
    storage_s: Floats
    network_s: Floats
    level: Ints
    """Position of the level of each interval."""
    carried: Mapping[str, Floats]
    """Bits of each interval by direction, `up` or `down`. With classes, keys name the class too: `PC up`."""
    operations: tuple[str, ...]
    """Names of the operations."""
    link_bps: float

    @property
    def latency_s(self) -> Floats:
        """Latency of each operation, in seconds."""
        return self.storage_s + self.network_s

    def of(self, name: str) -> Any:
        """Mask of the operations of this kind."""
        return self.operation == self.operations.index(name)


def cluster(link_bps: float) -> Cluster:
    """A cluster with the rack `r0` and a second rack for all clients."""
    devices = [{"name": name, "read": "1GB/s", "write": "1GB/s"} for name in DEVICES]
    return Cluster(
        {
            "name": "a rack and all others",
            "nic": NIC,
            "racks": [
                {"hosts": HOSTS, "link": f"{link_bps:.0f}bps", "devices": devices},
                {"hosts": 2 * HOSTS + 2 * len(OPERATIONS), "link": "10Tbps"},
            ],
        }
    )


def serve(
    seed: int,
    intervals: int,
    *,
    levels: Sequence[float] = LEVELS,
    link_bps: float = MEDIUM_BPS,
    operations: Sequence[Operation] = OPERATIONS,
    classes: bool = False,
) -> ServedOperations:
    """Serves operations at each level of utilization.

    Args:
        seed: Seed of arrivals, sizes and offsets.
        intervals: Number of intervals of 30 s at each level.
        levels: Utilizations of the link, 0 to 1, by operations and other traffic together.
        link_bps: Rate of the rack's link.
        operations: Observed operations.
        classes: True if each of `CLASSES` has half of all requests, and links serve them by class.
    """
    parts = [
        _level(seed, at, level, intervals, link_bps, operations, classes) for at, level in enumerate(levels)
    ]
    names = [name for name in parts[0] if name != "carried"]
    whole = {name: numpy.concatenate([part[name] for part in parts]) for name in names}
    carried = {
        name: numpy.concatenate([part["carried"][name] for part in parts]) for name in parts[0]["carried"]
    }
    return ServedOperations(
        **whole,
        level=numpy.repeat(numpy.arange(len(levels)), intervals),
        carried=carried,
        operations=tuple(_names(operations, classes)),
        link_bps=link_bps,
    )


@dataclass(frozen=True)
class _Sender:
    """A sender of requests of one kind."""

    name: str
    kind: str
    place: int
    """Number of the host in the rack."""
    medium: str | None
    """None for other traffic, which counts only as load of links."""
    sizes: tuple[int, int]
    rate: float
    c2: float
    of_class: str | None


def _names(operations: Sequence[Operation], classes: bool) -> list[str]:
    if not classes:
        return [one.name for one in operations]
    return [f"{one.name}-{name}" for name in CLASSES for one in operations]


def _senders(level: float, link_bps: float, operations: Sequence[Operation], classes: bool) -> list[_Sender]:
    """Senders of operations in the order of `_names`, then senders of all other traffic."""
    groups: Sequence[str | None] = CLASSES if classes else (None,)
    result = [
        _Sender(name, one.kind, at % HOSTS, one.medium, one.sizes, one.rate, 1.0, group)
        for (at, (group, one)), name in zip(
            enumerate((group, one) for group in groups for one in operations),
            _names(operations, classes),
            strict=True,
        )
    ]
    for kind in dict.fromkeys(one.kind for one in operations):
        own = sum(one.rate * _mean(one.sizes) * 8 for one in result if one.kind == kind and one.medium)
        rate = max(level * link_bps - own, 0.0) / 8 / _mean(CHUNK) / HOSTS / len(groups)
        for group in groups:
            for host in range(HOSTS):
                name = "-".join(filter(None, [f"other-{kind}-{host}", group]))
                result.append(_Sender(name, kind, host, None, CHUNK, rate, burstiness(), group))
    return result


def _mean(sizes: tuple[int, int]) -> float:
    """Mean of log-uniform sizes."""
    return (sizes[1] - sizes[0]) / float(numpy.log(sizes[1] / sizes[0]))


def _level(
    seed: int,
    at: int,
    level: float,
    intervals: int,
    link_bps: float,
    operations: Sequence[Operation],
    classes: bool,
) -> dict[str, Any]:
    """Operations at one level, as the columns of `ServedOperations`."""
    length = WARMUP_S + intervals * INTERVAL_S
    sent = {}
    for number, one in enumerate(_senders(level, link_bps, operations, classes)):
        random = numpy.random.default_rng([seed, at, number, int(link_bps)])
        times = _arrivals(random, one.rate, one.c2, length)
        if len(times):
            low, high = numpy.log(one.sizes)
            sizes = numpy.exp(random.uniform(low, high, len(times))).astype(numpy.int64)
            sent[one] = times, sizes, random.integers(0, 1 << 40, len(times))
    with TemporaryDirectory(prefix="leeward-plant-") as folder:
        file = _write(Path(folder), sent, classes)
        order = "priority" if classes else "fifo"
        # Each sender is there from the start.
        _, rows = slo.check(file, cluster(link_bps), method="dnc", order=order, start="together", rows=True)
    assert rows is not None
    names = rows["workload"].to_numpy(zero_copy_only=False)
    column = {
        name: rows[name].to_numpy()
        for name in ("arrival_s", "latency_s", "storage_s", "network_in_s", "network_out_s")
    }
    carried = {
        name: numpy.zeros(intervals)
        for name in (
            [f"{one} {way}" for one in CLASSES for way in ("up", "down")] if classes else ("up", "down")
        )
    }
    columns: dict[str, list[Any]] = {
        name: [] for name in ("operation", "interval", "end_s", "bytes", "storage_s", "network_s")
    }
    position = {name: number for number, name in enumerate(_names(operations, classes))}
    for one, (_, sizes, _) in sent.items():
        mine = numpy.flatnonzero(names == one.name)
        mine = mine[numpy.argsort(column["arrival_s"][mine], kind="stable")]
        end = column["arrival_s"][mine] + column["latency_s"][mine] - WARMUP_S
        number = numpy.floor(end / INTERVAL_S).astype(numpy.int64)
        within = (number >= 0) & (number < intervals)
        way = " ".join(filter(None, [one.of_class, "up" if one.kind == "read" else "down"]))
        carried[way] += 8 * numpy.bincount(number[within], sizes[within], intervals)
        if one.medium is None:
            continue
        mine, number = mine[within], number[within]
        network = column["network_in_s"][mine] + column["network_out_s"][mine]
        values = (
            numpy.full(len(mine), position[one.name]),
            at * intervals + number,
            at * intervals * INTERVAL_S + end[within],
            sizes[within],
            column["storage_s"][mine],
            network,
        )
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    return {name: numpy.concatenate(values) for name, values in columns.items()} | {"carried": carried}


def _arrivals(random: numpy.random.Generator, rate: float, c2: float, length: float) -> Floats:
    """Arrival times from 0 to `length`. Gaps are exponential if `c2` is 1, otherwise hyperexponential."""
    if rate <= 0:
        return numpy.empty(0)
    count = int(1.3 * rate * length) + 100
    share = 0.5 * (1 + numpy.sqrt((c2 - 1) / (c2 + 1)))
    first = random.random(count) < share
    gaps = random.exponential(1 / rate, count) * numpy.where(first, 1 / (2 * share), 1 / (2 * (1 - share)))
    # The simulator has a resolution of one nanosecond, so times are rounded to it.
    times = numpy.unique(numpy.rint(numpy.cumsum(gaps) * 1e9)) / 1e9
    result: Floats = times[times < length]
    return result


def _write(folder: Path, sent: Mapping[_Sender, tuple[Floats, Ints, Ints]], classes: bool) -> Path:
    """Writes the file of workloads, and the files of their traces and devices beside it."""
    for name, device in DEVICES.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(device), encoding="utf-8")
    workloads, devices = [], {}
    for client, (one, (times, sizes, offsets)) in enumerate(sent.items()):
        trace = {"seconds": times, "kind": [one.kind] * len(times), "size": sizes, "offset": offsets}
        parquet.write_table(pyarrow.table(trace), folder / f"{one.name}.parquet")
        server = f"r0h{one.place}" + (f":{one.medium}" if one.medium else "")
        stages = [stage for stage in STAGES[one.kind] if one.medium or stage != "storage"]
        workload: dict[str, Any] = {"name": one.name, "client": f"r1h{client}", "server": server}
        workload |= {"trace": f"{one.name}.parquet", "stages": stages, "limits": {}}
        if one.medium:
            devices[server] = f"{one.medium}.yaml"
        if classes and one.of_class == CLASSES[0]:
            workload |= {"slo": {"percentile": 99, "latency": "1h"}, "priority": 0}
        workloads.append(workload)
    content = {
        "name": "a rack's link",
        "devices": devices,
        "network": {"overhead": 0, "payload": 1, "other": 0},
        "bounds": {"unit": "frames", "frame": FRAME},
        "workloads": workloads,
    }
    path = folder / "workloads.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path
