"""Operations through a rack's link over TCP, at twenty utilizations (Hotspots, section 4.3 and appendices).

The rack is that of `rack_storage`: five hosts of 10 Gb/s, and a link of 3 Gb/s. Its servers have disks,
SSDs and memory. Clients are in a rack with enough bandwidth. The observed operations arrive at random;
other workers think and transfer chunks, so that the link has a given utilization in both directions
(`load`).

*Servers.* Disks of a server are one device, which reads 600 MB/s, as in `clusters/storage.yaml`, after a seek
of 8 ms. Writes end in a cache. Servers of files take 0.05 ms for an operation and process 2 Gb/s, so that the
network is 30 to 40 % of a write at idle links, as in the paper (section 4.3). Servers of memory take 0.05 ms
and process 20 Gb/s. Latencies at loaded links are results.

*TCP* is DCTCP with jumbo frames and a smallest timeout of 5 ms. The paper's hosts use Swift, which like
DCTCP keeps queues short.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy
import pyarrow
from pyarrow import compute, parquet

from leeward import Cluster, operations
from leeward.impact import Settings, measure, tables
from leeward.operations.logs import START_MS
from leeward.telemetry import Engine, Samples
from leeward_reproduce.figures import Experiment
from leeward_reproduce.hotspots import impact_figures, rack_storage
from leeward_reproduce.hotspots.rack_storage import CHUNK, LARGE, SMALL
from leeward_reproduce.hotspots.tcp.load import mean_bytes, think_s

NIC_BPS = 10e9
LINK_BPS = rack_storage.MEDIUM_BPS
SERVERS = rack_storage.HOSTS
CLIENTS = 20
OTHERS = 20
"""Number of other workers in each direction: four for each host."""
LEVELS = rack_storage.LEVELS
SHORT_LEVELS = (0.05, 0.475, 0.775, 0.975)
INTERVAL_S = 30
INTERVALS = 2
"""Windows of telemetry at each level."""
WARMUP_S = 3
LEAST = 50
"""Least number of latencies of a bucket that is judged."""

FILE_SERVER = {"processing": "50us", "processing_rate": "2Gbps"}
READ_BPS, WRITE_BPS, SEEK_S = 4.8e9, 4e9, 0.008
"""Rates of all disks of a server together, and the seek of a disk."""


def disks(count: int) -> dict[str, Any]:
    """The medium `hdd` as a number of disks, which share the rates of all."""
    rates = {"read": f"{READ_BPS / count:.0f}bps", "write": f"{WRITE_BPS / count:.0f}bps"}
    access = {"access": f"{1000 * SEEK_S:g}ms", "parallel": count, "cache": "1GB"}
    return {"name": "hdd"} | rates | access | FILE_SERVER


MEDIA: tuple[dict[str, Any], ...] = (
    disks(1),
    {"name": "ssd", "read": "500MB/s", "write": "400MB/s", "access": "80us"} | FILE_SERVER,
    {
        "name": "ram",
        "read": "10GB/s",
        "write": "10GB/s",
        "access": "1us",
        "processing": "50us",
        "processing_rate": "20Gbps",
    },
    {"name": "none", "read": "1000GB/s", "write": "1000GB/s", "parallel": 1000},
)
"""Media of servers; `none` is that of other traffic, whose servers take no time. The others have one access
at a time, so their rates are those of all accesses together."""


def media_with(count: int) -> list[dict[str, Any]]:
    """All media, with a number of disks instead of one."""
    return [disks(count), *MEDIA[1:]]


def read_s(count: int, size: float) -> float:
    """Time of a read of `size` bytes from one of `count` disks, on idle disks."""
    return SEEK_S + 8 * size / (READ_BPS / count)


@dataclass(frozen=True)
class ObservedOperation:
    """A kind of operations that is observed."""

    name: str
    """Its operation and medium are the first and second word: `file-read hdd small`."""
    kind: str
    sizes: tuple[int, int]
    rate: float
    """Operations per second."""


OBSERVED_OPERATIONS = (
    ObservedOperation("file-read hdd", "read", CHUNK, 5),
    ObservedOperation("file-read hdd small", "read", SMALL, 5),
    ObservedOperation("file-read hdd large", "read", LARGE, 2),
    ObservedOperation("file-read ssd", "read", CHUNK, 5),
    ObservedOperation("file-read ram", "read", CHUNK, 5),
    ObservedOperation("file-write hdd", "write", CHUNK, 5),
    ObservedOperation("file-write hdd small", "write", SMALL, 5),
    ObservedOperation("file-write hdd large", "write", LARGE, 2),
)
"""The operations of the request simulator."""
CLASSES = ("PC", "NC")
WEIGHTS = {"PC": 8, "NC": 4}
MIXES = (0.2, 0.5, 0.8)
"""Shares of PC in the traffic of a rack: one weighted-effective utilization has racks of all three."""
CLASS_LEVELS = tuple(0.05 + 0.1 * at for at in range(10))
BY_SIZE = tuple(
    ObservedOperation(f"{operation} hdd{size}", kind, sizes, rate)
    for operation, kind in (("file-read", "read"), ("file-write", "write"))
    for size, sizes, rate in (("", CHUNK, 5.0), (" small", SMALL, 5.0), (" large", LARGE, 2.0))
)


@dataclass(frozen=True)
class Logs:
    """Operations and telemetry of several runs, one after another in time.

    Attributes:
        operations: Columns of a latency file.
        loads: `t_ms` (end of a window), `link`, `class`, `bytes`.
        cluster: Fields of the cluster.
        interval_s: Length of a window.
        unfinished: Share of the operations of the last run, which has the fullest link, that had not ended.
    """

    operations: pyarrow.Table
    loads: pyarrow.Table
    cluster: Mapping[str, Any]
    interval_s: float
    unfinished: float = 0.0


def cluster(link_bps: float = LINK_BPS, servers: int = SERVERS) -> dict[str, Any]:
    """The observed rack `r0`, and the rack of all others `r1`."""
    return {
        "nic": f"{NIC_BPS:.0f}bps",
        "racks": [{"hosts": servers, "link": f"{link_bps:.0f}bps"}, {"hosts": CLIENTS, "link": "1Tbps"}],
    }


def scenario(
    seed: int,
    level: float,
    observed: Sequence[ObservedOperation],
    *,
    intervals: int = INTERVALS,
    mix: float | None = None,
    arrivals: bool = False,
) -> dict[str, Any]:
    """Scenario of a rack at a level of utilization.

    Args:
        seed: Seed of the run.
        level: Utilization of the link by operations and other traffic together, in both directions.
        observed: Observed operations; with a mix, each in both classes.
        intervals: Number of windows.
        mix: Share of PC in the traffic; None for a network without classes.
        arrivals: True if other transfers arrive at random and do not wait for each other.
    """
    groups: Sequence[str | None] = (None,) if mix is None else CLASSES
    shares: dict[str | None, float] = {None: 1.0} if mix is None else {"PC": mix, "NC": 1 - mix}
    kinds, jobs = [], []
    for one in observed:
        for group in groups:
            name = " ".join(filter(None, [one.name, group]))
            kinds.append(_kind(name, one.kind, one.name.split()[1], one.sizes, group))
            jobs.append({"name": name, "rate": one.rate, "hosts": "r1", "steps": [{"operation": name}]})
    for kind in ("read", "write"):
        own = sum(8 * one.rate * mean_bytes(one.sizes) for one in observed if one.kind == kind) * len(groups)
        for group in groups:
            name = " ".join(filter(None, ["other", kind, group]))
            kinds.append(_kind(name, kind, "none", CHUNK, group))
            target = max(level - own / LINK_BPS, 0.002) * shares[group]
            jobs.append(_others(name, target, level, arrivals))
    result = {
        "cluster": cluster(),
        "media": list(MEDIA),
        "operations": kinds,
        "jobs": jobs,
        "horizon": f"{WARMUP_S + intervals * INTERVAL_S}s",
        "warmup": f"{WARMUP_S}s",
        "sample": f"{INTERVAL_S}s",
        "seed": seed,
    }
    if mix is not None:
        result["classes"] = [{"name": name, "weight": WEIGHTS[name]} for name in CLASSES]
    return result


def _kind(name: str, kind: str, medium: str, sizes: tuple[int, int], group: str | None) -> dict[str, Any]:
    size = [f"{size}B" for size in sizes]
    result = {"name": name, "kind": kind, "medium": medium, "size": size, "servers": "r0"}
    return result if group is None else result | {"class": group}


def _others(name: str, target: float, level: float, arrivals: bool) -> dict[str, Any]:
    """Other traffic with a utilization; workers of a class have its share of the workers."""
    bits = 8 * mean_bytes(CHUNK)
    result: dict[str, Any] = {"name": name, "hosts": "r1", "record": False}
    if arrivals:
        return result | {"rate": target * LINK_BPS / bits, "steps": [{"operation": name}]}
    workers = max(round(OTHERS * target / max(level, target)), 1)
    # All other traffic of the link leaves this share of it.
    left = 1 - max(level - target, 0.0)
    think = think_s(min(target / left, 0.995), workers, bits, left * LINK_BPS, NIC_BPS)
    return result | {"concurrent": workers, "steps": [thinking(think), {"operation": name}]}


def thinking(mean_s: float) -> dict[str, Any]:
    """Step of a worker that thinks. C^2 is that of the gaps between bursts in the request simulator."""
    return {"compute": {"mean": f"{1e9 * mean_s:.0f}ns", "c2": rack_storage.burstiness()}}


def observe(
    seed: int,
    observed: Sequence[ObservedOperation],
    levels: Sequence[float],
    *,
    intervals: int = INTERVALS,
    mixes: Sequence[float | None] = (None,),
    arrivals: bool = False,
) -> Logs:
    """Runs a rack at all levels, and with all mixes. Arguments are those of `scenario`."""
    runs = [
        operations.simulate(scenario(seed, level, observed, intervals=intervals, mix=mix, arrivals=arrivals))
        for mix in mixes
        for level in levels
    ]
    return join(runs, cluster(), INTERVAL_S, intervals)


def join(
    runs: Sequence[operations.OperationsRun],
    of_cluster: Mapping[str, Any],
    interval_s: float,
    intervals: int,
    warmup_s: float = WARMUP_S,
    jobs: Sequence[str] | None = None,
) -> Logs:
    """Logs of runs, one after another, without their warm-ups.

    Args:
        runs: Runs of equal length.
        of_cluster: Fields of their cluster.
        interval_s: Length of a window.
        intervals: Windows of a run.
        warmup_s: Warm-up of a run.
        jobs: Kinds of jobs whose operations are kept; by default all.
    """
    kept, loads = [], []
    for number, run in enumerate(runs):
        start_ms = round(START_MS + 1000 * (number * intervals * interval_s - warmup_s))
        rows = operations.latencies(run, start_ms=start_ms)
        if jobs is not None:
            rows = rows.filter(compute.is_in(rows["job"], pyarrow.array(list(jobs), pyarrow.string())))
        kept.append(rows)
        table = run.links()
        ends = start_ms + 1000 * (table["start_s"].to_numpy() + interval_s)
        loads.append(
            pyarrow.table(
                {
                    "t_ms": numpy.rint(ends).astype(numpy.int64),
                    **{name: table[name] for name in ("link", "class", "bytes")},
                }
            )
        )
    left = unfinished(runs[-1], "operations")
    return Logs(pyarrow.concat_tables(kept), pyarrow.concat_tables(loads), of_cluster, interval_s, left)


def unfinished(run: operations.OperationsRun, things: Literal["operations", "jobs"]) -> float:
    """Share of the recorded operations or jobs of a run that had not ended at its end."""
    totals = run.totals()
    ended, open_ = totals[things], totals["unfinished" if things == "operations" else "unfinished_jobs"]
    return float(open_ / max(ended + open_, 1))


def concatenate(parts: Sequence[Logs]) -> Logs:
    """Logs of several seeds as those of one, one after another in time."""
    rows, loads, before = [], [], 0.0
    for part in parts:
        rows.append(shifted(part.operations, before))
        loads.append(shifted(part.loads, before))
        before += length_ms(part)
    left = float(numpy.mean([part.unfinished for part in parts]))
    tables = (pyarrow.concat_tables(rows), pyarrow.concat_tables(loads))
    return Logs(*tables, parts[0].cluster, parts[0].interval_s, left)


def length_ms(logs: Logs) -> float:
    """Length of the telemetry, in milliseconds."""
    return max(float(compute.max(logs.loads["t_ms"]).as_py()) - START_MS, 0.0)


def shifted(table: pyarrow.Table, milliseconds: float) -> pyarrow.Table:
    """The rows at later times."""
    column = table["t_ms"]
    moved = compute.add(column, pyarrow.scalar(round(milliseconds), pyarrow.int64()))
    return table.set_column(table.column_names.index("t_ms"), "t_ms", compute.cast(moved, column.type))


def samples(logs: Logs, engine: Engine, of_class: str | None = None) -> Samples:
    """Telemetry of the racks' links by all traffic, or by one class of service."""
    network = Cluster(dict(logs.cluster))
    links = network.links()
    number = dict(zip(links["name"].to_pylist(), range(len(links)), strict=True))
    rows = logs.loads
    if of_class is not None:
        rows = rows.filter(compute.equal(rows["class"], of_class))
    sums = rows.group_by(["t_ms", "link"], use_threads=False).aggregate([("bytes", "sum")])
    coded = sums["link"].combine_chunks().dictionary_encode()
    at = numpy.array([number[name] for name in coded.dictionary.to_pylist()])[coded.indices.to_numpy()]
    span = round(1000 * logs.interval_s)
    table = pyarrow.table(
        {
            "link": pyarrow.array(links["link"].to_numpy()[at], "int32"),
            "t_ms": sums["t_ms"],
            "span_ms": numpy.full(len(at), span),
            "bits": 8 * sums["bytes_sum"].to_numpy().astype(numpy.int64),
            "capacity_bps": links["capacity_bps"].to_numpy()[at],
        }
    )
    return Samples(engine, engine.table(table), links, network.rack_table(), span)


def inflation(
    logs: Logs,
    rows: pyarrow.Table,
    by: Sequence[str],
    weights: Mapping[str, int] | None = None,
    least: int = LEAST,
) -> impact_figures.Tables:
    """Joins latencies with the telemetry, as `leeward impact --by` does.

    Args:
        logs: Telemetry.
        rows: Latencies.
        by: Fields by which latencies are split.
        weights: Weights of classes of service, for weighted-effective utilization.
        least: Least number of latencies of a bucket that is judged.
    """
    # Confidence intervals are over seeds, so the bootstrap over a single run is off.
    settings = Settings(by=tuple(by), least=least, resamples=0, interval_ms=round(1000 * logs.interval_s))
    engine = Engine.duckdb(threads=1)
    with TemporaryDirectory(prefix="leeward-latencies-") as folder:
        path = f"{folder}/latencies.parquet"
        parquet.write_table(rows, path)
        if weights is None:
            result = measure(path, samples(logs, engine), settings)
        else:
            by_class = {name: samples(logs, engine, name) for name in weights}
            result = measure(path, by_class, settings, weights=weights)
    return impact_figures.Tables(tables.buckets(result), tables.tolerance(result))


def with_names(logs: Logs) -> pyarrow.Table:
    """Observed operations with the fields of their names: operation, medium, and the server's link alone.

    As in the paper (section 4.3), the link of a read is the uplink of the rack with the file, and that of a
    write its downlink. The link of the clients is never busy.
    """
    rows = logs.operations
    coded = rows["operation"].combine_chunks().dictionary_encode()
    words = [name.split() for name in coded.dictionary.to_pylist()]
    links = {"file-read": "r0:uplink", "file-write": "r0:downlink"}
    fields = {
        "operation": [word[0] for word in words],
        "medium": [word[1] for word in words],
        "class": [word[-1] if word[-1] in CLASSES else None for word in words],
        "links": [links[word[0]] for word in words],
    }
    for name, values in fields.items():
        column = pyarrow.array(values, pyarrow.string()).take(coded.indices)
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _rack(seed: int, short: bool, *, arrivals: bool = False) -> Logs:
    return observe(
        seed,
        OBSERVED_OPERATIONS,
        SHORT_LEVELS if short else LEVELS,
        intervals=1 if short or arrivals else INTERVALS,
        arrivals=arrivals,
    )


def _classes(seed: int, short: bool) -> Logs:
    levels = SHORT_LEVELS if short else CLASS_LEVELS
    return observe(seed, BY_SIZE, levels, intervals=1, mixes=MIXES)


TCP_RACK = Experiment("rack over TCP", _rack)
"""All operations at a storage rack."""
TCP_ARRIVALS = Experiment("rack over TCP with arrivals that do not wait", partial(_rack, arrivals=True))
"""The same; other transfers arrive at random, however many are under way."""
TCP_CLASSES = Experiment("classes over TCP", _classes)
"""Reads and writes of two classes of service, at racks with three mixes of them."""
