"""Queries with stages over TCP: figures 11 and 12, table 1, and latencies for figure 19.

A query runs as in section 4.2 and appendix A: workers of a stage read chunks or memory, compute, and
write to memory or to files, and the next stage begins when the last of them has ended. Workers are on a
compute rack of the pilot cell, with ten hosts of 10 Gb/s and a link of 20 Gb/s; the servers are
elsewhere. Other workers of the rack think and transfer chunks, in both directions, up to twenty
utilizations of the link.

The paper publishes few compute ratios and no sizes of queries. `QUERIES` has its statements and, in the
notes, our values for the others. A query takes about a tenth of a second at idle links, so that queries
are a small part of the load. Computation takes the same time at every utilization: it follows from the
ratio and from the storage time of the slowest workers in a run without other traffic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
from pyarrow import compute

from leeward import operations
from leeward._arrays import Floats
from leeward.operations.logs import START_MS
from leeward_reproduce.figures import Experiment
from leeward_reproduce.hotspots import impact_figures, queries
from leeward_reproduce.hotspots.rack_storage import CHUNK
from leeward_reproduce.hotspots.tcp import rack
from leeward_reproduce.hotspots.tcp.load import mean_bytes, think_s
from leeward_reproduce.hotspots.tcp.rack import Logs

LINK_BPS = 20e9
HOSTS = 10
OTHERS = 40
"""Number of other workers in each direction: four for each host."""
INTERVAL_S = 20
"""Length of a window of telemetry. The paper has 30 s; here a level lasts for one window."""
WARMUP_S = 2
RATE = 2.0
"""Queries of each benchmark in a second."""
LEAST = 25
"""Least number of queries of a bucket that is judged; with a seed, a bucket has about forty."""
CALIBRATION_S = 12
OWN = 0.05
"""Approximate utilization of the link by the queries themselves, which other traffic leaves to them."""
IDLE_RATE = 1.0
"""Queries of each benchmark in a second for the compute times."""

Steps = tuple[tuple[str, int], ...]
"""Operations of a worker, with their number, one after another."""


@dataclass(frozen=True)
class Query:
    """A benchmark of section 4.2."""

    name: str
    ratio: float
    """Share of computation in the time of the slowest workers, on idle links."""
    stages: tuple[tuple[int, Steps], ...]
    """Number of workers of each stage, and their operations."""
    note: str


_NOTES = {one.name: one.note for one in queries.BENCHMARKS}
_RATIOS = {one.name: one.compute for one in queries.BENCHMARKS}


def _query(name: str, *stages: tuple[int, Steps]) -> Query:
    return Query(name, _RATIOS[name], stages, _NOTES[name])


QUERIES = (
    _query("shuffle-flush", (4, (("shuffle-read", 80), ("file-write", 20)))),
    _query("materialize", (4, (("chunk-read", 2), ("file-write", 11)))),
    _query("aggregation", (4, (("chunk-read", 3), ("shuffle-write", 18))), (2, (("shuffle-read", 18),))),
    _query("tpc-ds-q17", (4, (("chunk-read", 1), ("shuffle-write", 4))), (2, (("shuffle-read", 4),))),
    _query("tpc-h-q02", (4, (("chunk-read", 1), ("shuffle-write", 2))), (4, (("shuffle-read", 4),))),
    _query("shuffle", (4, (("shuffle-write", 10),)), (4, (("shuffle-read", 10),))),
    _query("streaming", (4, (("chunk-read", 2),))),
)
"""All seven, in the order of table 1. Numbers of operations follow the shares of storage in `queries`."""
KINDS: Mapping[str, tuple[str, str]] = {
    "chunk-read": ("read", "hdd"),
    "shuffle-read": ("read", "ram"),
    "shuffle-write": ("write", "ram"),
    "file-write": ("write", "hdd"),
}
"""Direction and medium of each operation; all have 100 KB to 1 MB."""


@dataclass(frozen=True)
class QueryRuns:
    """Queries of all levels.

    Attributes:
        logs: Operations of the aggregation, and telemetry.
        queries: Columns of a latency file, with `compute_s`, the time of computation of all stages.
        computed: For each query, its time of computation at its own ratio.
        unfinished: Share of the queries of the last run, which has the fullest link, that had not ended.
    """

    logs: Logs
    queries: pyarrow.Table
    computed: Mapping[str, float]
    unfinished: float = 0.0


def cluster() -> dict[str, Any]:
    """The rack of the workers `r0`, and that of all servers `r1`."""
    return rack.cluster(LINK_BPS, HOSTS)


def scenario(
    seed: int, level: float | None, computes: Mapping[str, Sequence[float]] | None
) -> dict[str, Any]:
    """Scenario of a rack of workers.

    Args:
        seed: Seed of the run.
        level: Utilization of the link by other traffic in both directions; None for no other traffic.
        computes: For each query the time of computation of a worker of each stage; None for no computation.
    """
    kinds = [
        {"name": name, "kind": kind, "medium": medium, "size": _SIZE, "servers": "r1"}
        for name, (kind, medium) in KINDS.items()
    ]
    rate = IDLE_RATE if level is None else RATE
    jobs: list[dict[str, Any]] = [
        {
            "name": one.name,
            "rate": rate,
            "hosts": "r0",
            "stages": [
                {"workers": workers, "steps": _steps(steps, computes[one.name][at] if computes else 0.0)}
                for at, (workers, steps) in enumerate(one.stages)
            ],
        }
        for one in QUERIES
    ]
    bits = 8 * mean_bytes(CHUNK)
    for kind in ("read", "write") if level is not None else ():
        name = f"other {kind}"
        kinds.append({"name": name, "kind": kind, "medium": "none", "size": _SIZE, "servers": "r1"})
        target = max((level or 0.0) - OWN, 0.002)
        think = think_s(target, OTHERS, bits, LINK_BPS, rack.NIC_BPS)
        steps = [rack.thinking(think), {"operation": name}]
        jobs.append({"name": name, "concurrent": OTHERS, "hosts": "r0", "record": False, "steps": steps})
    length = CALIBRATION_S if level is None else WARMUP_S + INTERVAL_S
    return {
        "cluster": cluster(),
        "media": list(rack.MEDIA),
        "operations": kinds,
        "jobs": jobs,
        "horizon": f"{length}s",
        "warmup": "0s" if level is None else f"{WARMUP_S}s",
        "sample": f"{length if level is None else INTERVAL_S}s",
        "seed": seed,
    }


_SIZE = [f"{size}B" for size in CHUNK]


def _steps(steps: Steps, seconds: float) -> list[dict[str, Any]]:
    """Operations of a worker; computation is after its reads."""
    result: list[dict[str, Any]] = [{"operation": name, "count": count} for name, count in steps]
    reads = sum(KINDS[name][0] == "read" for name, _ in steps)
    if seconds > 0:
        result.insert(reads, {"compute": f"{1e9 * seconds:.0f}ns"})
    return result


def storage_s(run: operations.OperationsRun) -> dict[str, list[Floats]]:
    """Storage time of the slowest worker of each stage, for each query of a kind; queries that ended only."""
    jobs, workers = run.jobs(), run.workers()
    result: dict[str, list[Floats]] = {}
    for one in QUERIES:
        mine = workers.filter(compute.equal(workers["job"], one.name))
        ended = jobs.filter(compute.equal(jobs["job"], one.name))["number"].to_numpy()
        columns = {
            name: mine[name].to_numpy() for name in ("number", "stage", "began_s", "ended_s", "computed_s")
        }
        storage = columns["ended_s"] - columns["began_s"] - columns["computed_s"]
        stages = []
        for stage in range(len(one.stages)):
            slowest = numpy.zeros(int(columns["number"].max(initial=0)) + 1)
            rows = columns["stage"] == stage
            numpy.maximum.at(slowest, columns["number"][rows], storage[rows])
            stages.append(slowest[ended])
        result[one.name] = stages
    return result


def calibrate(seed: int) -> dict[str, list[float]]:
    """Time of computation of a worker of each stage, by query: that of its ratio at idle links."""
    idle = storage_s(operations.simulate(scenario(seed, None, None)))
    return {
        one.name: [one.ratio / (1 - one.ratio) * float(stage.mean()) for stage in idle[one.name]]
        for one in QUERIES
    }


def _run(seed: int, short: bool) -> QueryRuns:
    computes = calibrate(seed)
    levels = rack.SHORT_LEVELS if short else rack.LEVELS
    runs = [operations.simulate(scenario(seed, level, computes)) for level in levels]
    logs = rack.join(runs, cluster(), INTERVAL_S, 1, WARMUP_S, ("aggregation",))
    parts = []
    for number, run in enumerate(runs):
        start_ms = round(START_MS + 1000 * (number * INTERVAL_S - WARMUP_S))
        rows = operations.queries(run, [one.name for one in QUERIES], start_ms=start_ms)
        # Queries of a kind are in the order of `OperationsRun.jobs`, as are their storage times.
        storage = storage_s(run)
        names = numpy.array(rows["operation"].to_pylist())
        total = numpy.zeros(len(rows))
        for one in QUERIES:
            total[names == one.name] = sum(storage[one.name])
        parts.append(rows.append_column("storage_s", pyarrow.array(total)))
    computed = {name: sum(stages) for name, stages in computes.items()}
    return QueryRuns(logs, pyarrow.concat_tables(parts), computed, rack.unfinished(runs[-1], "jobs"))


TCP_QUERIES = Experiment("queries over TCP", _run)
"""Queries of a compute rack at twenty utilizations."""


def query_tables(runs: QueryRuns) -> impact_figures.Tables:
    """Inflation of each query: table 1 and figure 12a."""
    return rack.inflation(runs.logs, runs.queries, impact_figures.TEMPLATES["12a"].by, least=LEAST)


def ratio_tables(runs: QueryRuns, ratios: Sequence[float]) -> impact_figures.Tables:
    """Inflation of each query by its compute ratio: figure 12b.

    A stage ends with its slowest worker, and all its workers compute equally long. So a query of another
    ratio takes the same time of storage, and the time of computation of that ratio.
    """
    parts = []
    names = numpy.array(runs.queries["operation"].to_pylist())
    storage = runs.queries["storage_s"].to_numpy()
    own = numpy.array([runs.computed[name] / odds(_RATIOS[name]) for name in names])
    for ratio in ratios:
        rows = runs.queries.set_column(
            runs.queries.column_names.index("latency_s"),
            "latency_s",
            pyarrow.array(storage + own * odds(ratio)),
        )
        parts.append(rows.append_column("compute_ratio", pyarrow.array(numpy.full(len(rows), ratio))))
    rows = pyarrow.concat_tables(parts)
    return rack.inflation(runs.logs, rows, impact_figures.TEMPLATES["12b"].by, least=LEAST)


def odds(ratio: float) -> float:
    """Time of computation over that of storage."""
    return ratio / (1 - ratio)


def aggregation_tables(runs: QueryRuns) -> impact_figures.Tables:
    """Inflation of an aggregation and of its parts: figure 11."""
    columns = ["t_ms", "latency_s", "operation", "links"]
    rows = runs.logs.operations
    # Both links of the rack are the workers'; those of the servers are idle.
    reads = compute.is_in(rows["operation"], pyarrow.array(["chunk-read", "shuffle-read"]))
    links = compute.if_else(reads, "r0:downlink", "r0:uplink")
    parts = rows.set_column(rows.column_names.index("links"), "links", links).select(columns)
    query = runs.queries.filter(compute.equal(runs.queries["operation"], "aggregation")).select(columns)
    both = pyarrow.concat_tables([parts, query])
    return rack.inflation(runs.logs, both, impact_figures.TEMPLATES["11"].by, least=LEAST)


def concatenate(parts: Sequence[QueryRuns]) -> QueryRuns:
    """Queries of several seeds as those of one."""
    rows, before = [], 0.0
    for part in parts:
        rows.append(rack.shifted(part.queries, before))
        before += rack.length_ms(part.logs)
    computed = {
        name: float(numpy.mean([part.computed[name] for part in parts])) for name in parts[0].computed
    }
    logs = rack.concatenate([part.logs for part in parts])
    left = float(numpy.mean([part.unfinished for part in parts]))
    return QueryRuns(logs, pyarrow.concat_tables(rows), computed, left)
