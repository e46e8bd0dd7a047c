"""The four incidents of section 3.4, as scenarios for users to start from.

The paper states the events and the slow-down factors, but neither loads nor sizes. The first two incidents
have the load of the pilot cell here, the others the loads of their files. The factors are results.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy
import yaml

from leeward._arrays import Mask
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.sweeps import (
    DEGRADED,
    DEGRADED_NONE,
    HERDING,
    HERDING_NONE,
    IN_CELL,
    LEARNS,
    REPLICATION,
    UPLINKS,
    UPLINKS_FILE,
    UPLINKS_TOLD,
    UPLINKS_WHOLE,
)
from leeward_reproduce.hotspots.tcp import incidents as tcp
from leeward_reproduce.hotspots.windows import run
from leeward_reproduce.rows import Reason, Row, measured_row, row_key
from leeward_reproduce.sweeps import Cells

SWEEPS = (
    *(UPLINKS, UPLINKS_TOLD, UPLINKS_WHOLE, HERDING, HERDING_NONE),
    *(DEGRADED, DEGRADED_NONE, REPLICATION),
)

_DAY_S = 86_400.0
_FROM_S, _UNTIL_S = _DAY_S, 2 * _DAY_S
"""Start and end of the first incident."""
_INCAST_S = (900.0, 960.0)
"""Start and end of the incast of the third incident."""
_HOT_S = (600.0, 1200.0)
"""Start and end of the hotspot of the fourth incident."""
_FLUID = "links are fluids, which slow nobody before they are full"

Wanted = Callable[[Cells, str, int], Mask]
"""Selects the rows of the table `tasks` to compare, under a policy and a seed."""


def rows(results: Results) -> list[Row]:
    """Incidents in the order of the paper."""
    return _uplinks(results) + _herding(results) + _degraded_rows(results) + _replication(results)


def _uplinks(results: Results) -> list[Row]:
    result = []
    events = yaml.safe_load(UPLINKS_FILE.read_text(encoding="utf-8"))["events"]
    racks = sorted({event["link"].partition(":")[0] for event in events})
    pairs = [(policy, sweep) for policy in IN_CELL for sweep in (UPLINKS, UPLINKS_TOLD)]
    for policy, sweep in [*pairs, (LEARNS, UPLINKS)]:
        is_paper = policy == "borg" and sweep is UPLINKS
        values = _factors(results[sweep], results[UPLINKS_WHOLE], policy, partial(_on, racks))
        paper_value = paper.CAPACITY_STRETCH if is_paper else None
        note = ""
        if policy == "utp" and sweep is UPLINKS:
            note = "goes by capacities that it believes in: half a link looks half empty"
        words = "untold" if sweep is UPLINKS else "told"
        name = "utp that learns capacities" if policy == LEARNS else policy
        label = f"uplinks halved, {words}: time of batch tasks on those racks, {name}, over whole uplinks"
        reason = _over_tcp(tcp.halved_label(tcp.LOADS[0], crowded=True))
        result.append(measured_row("incidents", label, "x", values, paper_value, note, reason))
    return result


def _over_tcp(label: str) -> Reason:
    """The reason of fluid links, with a row over TCP that tests it."""
    return Reason(_FLUID, variant=row_key("incidents", label))


def _herding(results: Results) -> list[Row]:
    result = []
    herding, none = results[HERDING], results[HERDING_NONE]
    for policy in IN_CELL:
        values = _factors(herding, none, policy, _intensive)
        is_paper = policy == "borg"
        paper_value = paper.CONSTRAINT_LATENCY if is_paper else None
        note = "the paper: read latency" if is_paper else ""
        label = f"constraint: time of network-intensive batch tasks, {policy}, over no constraint"
        reason = _over_tcp(tcp.CONSTRAINT)
        result.append(measured_row("incidents", label, "x", values, paper_value, note, reason))
        for cells, words in ((none, "without the constraint"), (herding, "with it")):
            values = [run(cells, policy, seed).mean("hot") for seed in cells.seeds]
            note = "the paper: persistent hotspots" if is_paper and cells is herding else ""
            label = f"constraint: ToRs hot outbound {words}, {policy}"
            result.append(measured_row("incidents", label, "%", values, None, note))
    return result


def _degraded_rows(results: Results) -> list[Row]:
    result = []
    for sweep, words in ((DEGRADED_NONE, "clients wait"), (DEGRADED, "clients degrade reads after 1 s")):
        cells = results[sweep]
        note = "the paper: significantly worse, without numbers" if sweep is DEGRADED else ""
        times = [_read_time(cells, seed, _INCAST_S[0], math.inf) for seed in cells.seeds]
        label = f"an incast of a minute, {words}: mean read time from then on"
        result.append(measured_row("incidents", label, "s", times, None, note))
        hot = [_hot_seconds(cells, seed, "clients:downlink") for seed in cells.seeds]
        result.append(
            measured_row("incidents", f"an incast of a minute, {words}: downlink hot for", "s", hot)
        )
    return result


def _replication(results: Results) -> list[Row]:
    cells, (start, end) = results[REPLICATION], _HOT_S
    values = [
        _read_time(cells, seed, start, end) / _read_time(cells, seed, 0.0, start) for seed in cells.seeds
    ]
    reason = Reason("four fifths of the uplink are taken; what is left over what an SSD reads decides")
    label = "hot storage ToR: time to read what is to be copied, over that before"
    return [measured_row("incidents", label, "x", values, paper.REPLICATION_LATENCY, reason=reason)]


def _read_time(cells: Cells, seed: int, start: float, end: float) -> float:
    """Mean time of reads requested between two times, in seconds; zero without any."""
    reads = cells.table("reads", "uniform", seed)
    request = reads["asked_s"].to_numpy()
    times = reads["finished_s"].to_numpy(zero_copy_only=False) - request
    results = times[(request >= start) & (request < end) & numpy.isfinite(times)]
    return float(results.mean()) if len(results) else 0.0


def _hot_seconds(cells: Cells, seed: int, link: str) -> float:
    """Seconds for which a link was hot."""
    spots = cells.table("hotspots", "uniform", seed).to_pylist()
    return math.fsum(spot["end_s"] - spot["start_s"] for spot in spots if spot["link"] == link)


def _factors(cells: Cells, base: Cells, policy: str, needed: Wanted) -> list[float]:
    """Slow-down of batch tasks, by seed."""
    result = []
    for seed in cells.seeds:
        ours, before = (_stretch(runs, policy, seed, needed) for runs in (cells, base))
        result += [ours / before] if ours is not None and before is not None else []
    return result


def _stretch(cells: Cells, policy: str, seed: int, needed: Wanted) -> float | None:
    """Mean over batch tasks of their time over their duration; None without such tasks."""
    names = ("placed_s", "finished_s", "duration_s", "tolerant")
    tasks = cells.table("tasks", policy, seed)
    placed, finished, duration, tolerant = (tasks[name].to_numpy(zero_copy_only=False) for name in names)
    times = (finished - placed) / duration
    results = times[needed(cells, policy, seed) & tolerant & numpy.isfinite(times)]
    return float(results.mean()) if len(results) else None


def _intensive(cells: Cells, policy: str, seed: int) -> Mask:
    """Network-intensive tasks that arrived after the warm-up."""
    tasks = cells.table("tasks", policy, seed)
    arrivals = tasks["arrived_s"].to_numpy() >= _DAY_S
    return numpy.asarray(arrivals & tasks["intensive"].to_numpy(zero_copy_only=False))


def _on(racks: Sequence[str], cells: Cells, policy: str, seed: int) -> Mask:
    """Tasks placed on these racks in the first half of the first incident, so that most of them end in it."""
    tasks, hosts = cells.table("tasks", policy, seed), cells.table("hosts", policy, seed)
    rack = dict(zip(hosts["host"].to_pylist(), hosts["rack"].to_pylist(), strict=True))
    there = numpy.array([rack.get(host) in racks for host in tasks["host"].to_pylist()])
    placed = tasks["placed_s"].to_numpy(zero_copy_only=False)
    early = (placed >= _FROM_S) & (placed < _FROM_S + (_UNTIL_S - _FROM_S) / 2)
    return numpy.asarray(there & early)
