"""Effect of placement on latency: queries before and after UTP (figure 19), HDD reads with CCP (figure 20).

The fluid simulator gives the loads of links under each policy, and the request simulator gives the times of
operations on links with these loads (`rack_storage`). They are joined by buckets of 5 % of utilization, as
the paper joins latencies and telemetry. The paper's own curves of inflation are not used.
"""

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy

from leeward._arrays import Floats, Ints
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.queries import BASE_S, BENCHMARKS, READ, Benchmark, Worker
from leeward_reproduce.hotspots.racks import CAPACITIES_BPS, RACK, UNEVEN
from leeward_reproduce.hotspots.reasons import OVER_TCP
from leeward_reproduce.hotspots.requests import reads
from leeward_reproduce.hotspots.sweeps import CHUNKS_LOADS, CHUNKS_PAIR, PILOT_PAIR, STORAGE
from leeward_reproduce.rows import Reason, Row, change_row, measured_row, row_key
from leeward_reproduce.sweeps import Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUERY_SWEEPS = (PILOT_PAIR,)
QUERY_EXPERIMENTS = (RACK,)
READ_SWEEPS = (CHUNKS_PAIR,)
READ_EXPERIMENTS = (UNEVEN,)
DRAWN = 4000
"""Number of queries of a benchmark, for each policy and seed."""
READS = 20_000
"""Number of HDD reads, for each policy and seed."""
HOT, FULL = 0.75, 0.95
_FULL = (
    "above 5 % the p95 before UTP is that of links that are all but full, where queues that no TCP holds back"
    " have no end"
)


def query_rows(results: Results) -> list[Row]:
    """Figure 19: change of the p95 of queries."""
    result: list[Row] = []
    hot: dict[tuple[str, float], list[float]] = {
        (name, threshold): [] for name in ("borg", "utp") for threshold in (HOT, FULL)
    }
    changes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for seed, before, after, same in loads_of_windows(results):
        worker = Worker(results.outcomes[RACK][seed - 1])
        for benchmark in BENCHMARKS:
            first, second, third = (_p95(worker, benchmark, loads, seed) for loads in (before, after, same))
            changes[benchmark.name, ""].append(100 * (second - first) / first)
            changes[benchmark.name, "same"].append(100 * (second - third) / third)
        for (policy, threshold), values in hot.items():
            loads = same if policy == "borg" else after
            values.append(100 * float((loads.max(axis=0) > threshold).mean()))
    for benchmark in BENCHMARKS:
        paper_value = paper.QUERY_GAINS.get(benchmark.name)
        label = f"p95 of queries: change, borg to utp, {benchmark.name}"
        note = "the paper: not significant" if paper_value == 0 else benchmark.note
        reason = Reason(_FULL, variant=row_key("19", label + OVER_TCP))
        result.append(change_row("19", label, changes[benchmark.name, ""], paper_value, note, reason))
        note = "one window, with the same tasks under both; ours"
        result.append(change_row("19", f"{label}, same tasks", changes[benchmark.name, "same"], None, note))
    for (policy, threshold), values in hot.items():
        label = f"time of network-intensive tasks behind a link over {threshold:.0%}, {policy}"
        note = _FULL if threshold == FULL and policy == "borg" else ""
        result.append(measured_row("19", label, "%", values, None, note))
    return result


def loads_of_windows(results: Results) -> list[tuple[int, Floats, Floats, Floats]]:
    """Loads of workers for each seed: before UTP; after UTP; and without UTP in the window after it."""
    cells = results[PILOT_PAIR]
    return [
        (
            seed,
            _workers(cells, "borg", seed, 0),
            _workers(cells, "utp", seed, 1),
            _workers(cells, "borg", seed, 1),
        )
        for seed in cells.seeds
    ]


def _p95(worker: Worker, benchmark: Benchmark, loads: Floats, seed: int) -> float:
    # Both policies share the draws: only the load differs.
    random = numpy.random.default_rng([seed, 19])
    down, up = loads
    storage = worker.storage_s(
        benchmark,
        benchmark.compute,
        worker.draw_intervals(down, "up", random),
        worker.draw_intervals(up, "down", random),
        random,
    )
    return float(numpy.percentile(benchmark.compute * BASE_S + storage, 95))


def _workers(cells: Cells, policy: str, seed: int, half: int) -> Floats:
    """Utilization of the links of racks with network-intensive tasks, at random times of these tasks.

    Returns:
        Shape (2, `DRAWN`): downlinks, which reads of the tasks cross, and uplinks, which their writes cross.
    """
    random = numpy.random.default_rng([seed, half])
    links = cells.table("links", policy, seed)
    start = numpy.unique(links["start_s"].to_numpy())
    middle = len(start) // 2
    first, last = (start[0], start[middle]) if half == 0 else (start[middle], start[-1])
    tasks = cells.table("tasks", policy, seed)
    placed, finished = (tasks[name].to_numpy(zero_copy_only=False) for name in ("placed_s", "finished_s"))
    begin, end = numpy.maximum(placed, first), numpy.fmin(finished, last)
    end = numpy.where(numpy.isnan(finished), last, end)
    there = tasks["intensive"].to_numpy(zero_copy_only=False) & (end > begin)
    spent = numpy.where(there, end - begin, 0.0)
    drawn = random.choice(len(spent), DRAWN, p=spent / spent.sum())
    at = begin[drawn] + random.random(DRAWN) * (end[drawn] - begin[drawn])
    hosts = tasks["host"].take(drawn).to_pylist()
    moved = _moves(cells, policy, seed)
    racks = []
    for task, time, host in zip(drawn.tolist(), at.tolist(), hosts, strict=True):
        # Until it is moved, a task runs on the source of the move.
        later = next((source for when, source in moved.get(task, ()) if when > time), host)
        racks.append(int(later.partition("h")[0][1:]))
    interval = numpy.searchsorted(start, at, side="right") - 1
    by_way = _loads(cells, policy, seed)
    result: Floats = numpy.array([by_way[way][interval, racks] for way in ("downlink", "uplink")])
    return result


@lru_cache(maxsize=4)
def _loads(cells: Cells, policy: str, seed: int) -> dict[str, Floats]:
    """Utilization by direction: shape (intervals, racks)."""
    links = cells.table("links", policy, seed)
    start = links["start_s"].to_numpy()
    row = numpy.searchsorted(numpy.unique(start), start)
    coded = links["link"].cast("string").dictionary_encode().combine_chunks()
    rack, way = zip(*(name[1:].split(":") for name in coded.dictionary.to_pylist()), strict=True)
    index = coded.indices.to_numpy()
    column, ways = numpy.array(rack, dtype=int)[index], numpy.array(way)[index]
    result = {name: numpy.zeros((row.max() + 1, column.max() + 1)) for name in ("uplink", "downlink")}
    for name, table in result.items():
        mine = ways == name
        table[row[mine], column[mine]] = links["utilization"].to_numpy()[mine]
    return result


def _moves(cells: Cells, policy: str, seed: int) -> dict[int, list[tuple[float, str]]]:
    """Time and source of each moved task, in order."""
    result: dict[int, list[tuple[float, str]]] = defaultdict(list)
    for row in cells.table("moves", policy, seed).select(["time_s", "task", "from"]).to_pylist():
        result[row["task"]].append((row["time_s"], row["from"]))
    return result


def read_rows(results: Results) -> list[Row]:
    """Figure 20: change of the p95 of HDD reads, at the same throughput of reads."""
    cells, result = results[CHUNKS_PAIR], []
    for load in CHUNKS_LOADS:
        changes: dict[str, list[float]] = {"network": [], "total": []}
        for seed in cells.seeds:
            before, after = (_read_times(results, policy, seed, load) for policy in ("uniform", "ccp"))
            for part, values in changes.items():
                values.append(100 * (after[part] - before[part]) / before[part])
        for part, values in changes.items():
            label = f"p95 of HDD reads, {part}: change, uniform to ccp, {load} of reads"
            result.append(change_row("20", label, values, paper.READ_GAINS[part], reason=_STRICT))
    return result


_STRICT = Reason("uplinks spread 2.25-fold here and are seldom hot, and most of a read's time is the disk's")


def _read_times(results: Results, policy: str, seed: int, load: str) -> dict[str, float]:
    """p95 of the time of reads, and p95 of their time on the network, in seconds."""
    random = numpy.random.default_rng([seed, 20])
    requests = reads(results[CHUNKS_PAIR], STORAGE, policy, seed, load)
    drawn: Ints = random.integers(0, len(requests.kind), READS)
    total, network = numpy.zeros(READS), numpy.zeros(READS)
    for kind, bps in enumerate(CAPACITIES_BPS):
        mine = numpy.flatnonzero(requests.kind[drawn] == kind)
        if len(mine):
            worker = Worker(results.outcomes[UNEVEN][seed - 1][bps])
            intervals = worker.draw_intervals(requests.utilization[drawn][mine], "up", random)
            total[mine], network[mine] = worker.operations_s(READ, intervals, 1, random)
    return {
        name: float(numpy.percentile(times, 95)) for name, times in (("total", total), ("network", network))
    }


def changes(_: Results, rows: list[Row]) -> "Figure":
    """Figures 19 and 20: our values with intervals, and the paper's values."""
    from matplotlib import pyplot

    visible = [row for row in rows if row.unit == "%" and "change" in row.quantity and row.ours is not None]
    fig, axes = pyplot.subplots(figsize=(7.4, 0.8 + 0.3 * len(visible)), layout="constrained")
    for at, row in enumerate(reversed(visible)):
        assert row.ours is not None
        ours = "#c4411d" if "same tasks" not in row.quantity else "#b9b9b9"
        axes.plot([row.ours], [at], "o", color=ours, markersize=5)
        if row.ci_low is not None and row.ci_high is not None:
            axes.plot([row.ci_low, row.ci_high], [at, at], color=ours, linewidth=2)
        if row.nearest is not None:
            axes.plot(
                [row.nearest], [at], "D", markerfacecolor="white", markeredgecolor="#111111", markersize=6
            )
    axes.axvline(0, color="#111111", linewidth=0.8)
    names = [
        row.quantity.partition(": change, ")[2].replace("borg to utp, ", "") for row in reversed(visible)
    ]
    if visible[0].figure == "20":
        names = [
            row.quantity.removeprefix("p95 of HDD reads, ").replace(": change, uniform to ccp", "")
            for row in reversed(visible)
        ]
    axes.set_yticks(range(len(visible)), names, fontsize=8)
    axes.set_xlabel("change of the p95, %; diamonds: the paper")
    return fig
