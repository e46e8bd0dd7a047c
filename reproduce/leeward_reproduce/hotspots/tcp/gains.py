"""Queries before and after UTP over TCP (figure 19).

The fluid simulator gives the loads of links before and after, as for `gains`. Queries with the same
utilization of their busier link are drawn from those over TCP (`queries`), in buckets of 5 %.
"""

from collections import defaultdict

import numpy

from leeward._arrays import Floats, Ints
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import gains, paper
from leeward_reproduce.hotspots.queries import BUCKET
from leeward_reproduce.hotspots.reasons import OVER_TCP
from leeward_reproduce.hotspots.tcp.queries import QUERIES, TCP_QUERIES, QueryRuns
from leeward_reproduce.rows import Reason, Row, change_row, row_key

_BUCKETS = round(1 / BUCKET)


def _buckets(utilization: Floats) -> Ints:
    result: Ints = numpy.clip((utilization / BUCKET).astype(numpy.int64), 0, _BUCKETS - 1)
    return result


class Pools:
    """Latencies of queries over TCP by the bucket of the busier direction of their rack's link."""

    def __init__(self, runs: QueryRuns) -> None:
        """Takes the queries of a seed."""
        busier = _busier(runs)
        end = runs.queries["t_ms"].to_numpy()
        window = numpy.searchsorted(busier["t_ms"], end)
        inside = window < len(busier["t_ms"])
        self._bucket = numpy.full(len(end), -1)
        self._bucket[inside] = _buckets(busier["utilization"][window[inside]])
        self._names = numpy.array(runs.queries["operation"].to_pylist())
        self._latency = runs.queries["latency_s"].to_numpy()

    def draw(self, name: str, loads: Floats, random: numpy.random.Generator) -> Floats:
        """Draws a latency for each load, from the bucket of the load or the nearest one with queries."""
        mine = self._names == name
        latency, bucket = self._latency[mine], self._bucket[mine]
        known = numpy.unique(bucket[bucket >= 0])
        needed = _buckets(loads)
        nearest = known[numpy.argmin(numpy.abs(known[None, :] - needed[:, None]), axis=1)]
        result = numpy.zeros(len(loads))
        for one in numpy.unique(nearest):
            pool, rows = latency[bucket == one], numpy.flatnonzero(nearest == one)
            result[rows] = pool[random.integers(0, len(pool), len(rows))]
        return result


def _busier(runs: QueryRuns) -> dict[str, Floats]:
    """End of each window, and the larger utilization of the two directions of the workers' link in it."""
    loads = runs.logs.loads
    names = numpy.array(loads["link"].to_pylist())
    times = loads["t_ms"].to_numpy()
    ends = numpy.unique(times)
    carried = numpy.zeros((2, len(ends)))
    for at, link in enumerate(("r0:uplink", "r0:downlink")):
        rows = names == link
        numpy.add.at(carried[at], numpy.searchsorted(ends, times[rows]), loads["bytes"].to_numpy()[rows])
    (capacity,) = {one["link"] for one in runs.logs.cluster["racks"][:1]}
    bps = float(capacity.removesuffix("bps"))
    return {"t_ms": ends, "utilization": 8 * carried.max(axis=0) / runs.logs.interval_s / bps}


def query_rows(results: Results) -> list[Row]:
    """Figure 19: change of the p95 of queries."""
    changes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for seed, before, after, same in gains.loads_of_windows(results):
        pools = Pools(results.outcomes[TCP_QUERIES][seed - 1])
        for number, one in enumerate(QUERIES):
            # Both policies share the draws: only the load differs.
            first, second, third = (
                _p95(pools, one.name, loads, numpy.random.default_rng([seed, number]))
                for loads in (before, after, same)
            )
            changes[one.name, ""].append(100 * (second - first) / first)
            changes[one.name, "same"].append(100 * (second - third) / third)
    result = []
    for one in QUERIES:
        value = paper.QUERY_GAINS.get(one.name)
        label = f"p95 of queries: change, borg to utp, {one.name}"
        note = "the paper: not significant" if value == 0 else one.note
        same_tasks = f"{label}, same tasks{OVER_TCP}"
        reason = Reason(
            "the two windows have other tasks, with other loads", variant=row_key("19", same_tasks)
        )
        result.append(change_row("19", f"{label}{OVER_TCP}", changes[one.name, ""], value, note, reason))
        note = "one window, with the same tasks under both; ours"
        result.append(change_row("19", same_tasks, changes[one.name, "same"], None, note))
    return result


def _p95(pools: Pools, name: str, loads: Floats, random: numpy.random.Generator) -> float:
    return float(numpy.percentile(pools.draw(name, loads.max(axis=0), random), 95))
