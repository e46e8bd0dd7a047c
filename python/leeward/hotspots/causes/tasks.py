"""Jobs that make racks hot: bandwidth per compute unit, and places (Hotspots, section 3.3).

* *Bandwidth per compute unit* of a job: sent and received load of its tasks, divided by their processors
  (figure 7, normalized to the median job). A job above twice the median is network-intensive; the paper has a
  list of such jobs instead.
* *Network-intensive tasks per unit of bandwidth* of a rack: their mean number over time, divided by the
  rack's uplink in Gb/s. Pearson's r over racks correlates it with the mean utilization of the busier
  direction (figure 8).
* *Concentration* (the second incident of section 3.4): a constraint keeps a job off most machines and packs
  it on the rest. A job is concentrated if, among racks of one kind, the share of its tasks on hot racks is
  at least twice the share of hosts there, it causes at least a tenth of their traffic, and some idle racks
  run none of its tasks.
"""

import math
from dataclasses import dataclass
from typing import Any

import ibis
import numpy
import pyarrow

from leeward.hotspots.causes.provision import Provision
from leeward.hotspots.settings import Settings
from leeward.telemetry import Engine, Windows

GIGA = 1e9
LEAST_RACKS = 4
"""Least number of values for a correlation with an interval."""
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Tasks:
    """Results about tasks.

    Attributes:
        jobs: `job`, `bps_per_cpu`, `normalized` (divided by the median job's), `intensive`; the largest
            first. Jobs without processors have null, and are not intensive.
        racks: `rack`, `kind`, `intensive_tasks`, `per_gbps`, `traffic` (share of the rack's traffic that
            these tasks cause), `mean_ppm`, `hot_rate`.
        correlation: Pearson's r of `per_gbps` and `mean_ppm` over racks, and its 95 % interval (Fisher); None
            if one of the two is constant.
        concentrated: `job`, `kind`, `share` (of its tasks on hot racks), `expected` (share of hosts in these
            racks), `traffic` (its share of the hot racks' traffic), `hot_racks`, `idle_racks`, `idle_without`
            (idle racks without its tasks), `concentrated`.
    """

    jobs: pyarrow.Table
    racks: pyarrow.Table
    correlation: tuple[float, float, float] | None
    concentrated: pyarrow.Table


def tasks(
    windows: Windows, links: pyarrow.Table, table: ibis.Table, fleet: Provision, settings: Settings
) -> Tasks:
    """Analyzes tasks.

    Args:
        windows: Windows of all links.
        links: Result of `hot.by_link`.
        table: Table as in `tables.TASKS`.
        fleet: Provisioned uplinks.
        settings: Thresholds.
    """
    engine = windows.samples.engine
    times = engine.arrow(table.agg(n=table.t_ms.nunique()))["n"][0].as_py()
    sums = engine.keep(_sums(table))
    jobs = _jobs(engine, sums, settings)
    racks = _racks(windows, links, fleet)
    intensive = jobs.filter(jobs["intensive"])["job"].to_pylist()
    crowd = sums.filter(sums.job.isin(intensive))
    crowd = crowd.group_by("rack").agg(n=crowd.tasks.sum().cast("int64"), bps=crowd.bps.sum().cast("int64"))
    crowds = {row["rack"]: row for row in engine.arrow(crowd).to_pylist()}
    for row in racks:
        own = crowds.get(row["rack"], {"n": 0, "bps": 0})
        row["intensive_tasks"] = own["n"] / 1000 / max(times, 1)
        row["per_gbps"] = row["intensive_tasks"] / (row["uplink_bps"] / GIGA)
        row["traffic"] = own["bps"] / max(times, 1) / row["load_bps"] if row["load_bps"] else 0.0
    judged_racks = [row for row in racks if row["mean_ppm"] is not None]
    return Tasks(
        jobs,
        pyarrow.Table.from_pylist(racks, _RACKS),
        correlation([row["per_gbps"] for row in judged_racks], [row["mean_ppm"] for row in judged_racks]),
        _concentration(engine, sums, racks, max(times, 1), settings),
    )


def correlation(xs: list[float], ys: list[float]) -> tuple[float, float, float] | None:
    """Pearson's r and its 95 % interval by Fisher's transformation; None if there is no correlation."""
    if len(xs) < LEAST_RACKS or len(set(xs)) < 2 or len(set(ys)) < 2:
        return None
    r = max(-1.0, min(1.0, float(numpy.corrcoef(xs, ys)[0, 1])))
    if abs(r) > 1 - 1e-12:
        return r, r, r
    z, half = math.atanh(r), NORMAL_95 / math.sqrt(len(xs) - 3)
    return r, math.tanh(z - half), math.tanh(z + half)


def _sums(table: ibis.Table) -> ibis.Table:
    """Sums for each job and rack over all times: thousandths of tasks and processors, bits per second."""
    whole = table.select(
        *("job", "rack"),
        tasks=(table.tasks * 1000.0).round().cast("int64"),
        cpus=(table.cpus * 1000.0).round().cast("int64"),
        bps=(table.tx_bps.floor() + table.rx_bps.floor()).cast("int64"),
    )
    return whole.group_by("job", "rack").agg(
        tasks=whole.tasks.sum().cast("int64"),
        cpus=whole.cpus.sum().cast("int64"),
        bps=whole.bps.sum().cast("int64"),
    )


def _jobs(engine: Engine, sums: ibis.Table, settings: Settings) -> pyarrow.Table:
    job_sums = sums.group_by("job").agg(cpus=sums.cpus.sum().cast("int64"), bps=sums.bps.sum().cast("int64"))
    rows = engine.arrow(job_sums.order_by("job")).to_pylist()
    each = [row["bps"] * 1000 / row["cpus"] for row in rows if row["cpus"]]
    median = float(numpy.median(each)) if each else 0.0
    result = []
    for row in rows:
        own = row["bps"] * 1000 / row["cpus"] if row["cpus"] else None
        normalized = own / median if own is not None and median else None
        intensive = normalized is not None and normalized > settings.intensive
        result.append(
            {"job": row["job"], "bps_per_cpu": own, "normalized": normalized, "intensive": intensive}
        )
    result.sort(key=lambda row: (-(row["bps_per_cpu"] or 0.0), row["job"]))
    return pyarrow.Table.from_pylist(result, _JOBS)


def _racks(windows: Windows, links: pyarrow.Table, fleet: Provision) -> list[dict[str, Any]]:
    """Each rack with the average utilization of its busier direction, and its rate of hot intervals."""
    hosts = {row["rack"]: row["hosts"] for row in windows.samples.racks.to_pylist()}
    busy: dict[str, list[dict[str, Any]]] = {}
    for link in links.to_pylist():
        if link["cross_section"] == "ToR-pod":
            busy.setdefault(link["rack"], []).append(link)
    result = []
    for rack in fleet.racks.to_pylist():
        ways = busy.get(rack["rack"], [])
        result.append(
            {
                "rack": rack["rack"],
                "kind": rack["kind"],
                "uplink_bps": rack["uplink_bps"],
                "hosts": hosts[rack["rack"]],
                "mean_ppm": max((way["mean_ppm"] for way in ways), default=None),
                "hot_rate": max((way["rate"] for way in ways), default=None),
                "load_bps": sum(way["mean_ppm"] for way in ways) * rack["uplink_bps"] / 1e6,
            }
        )
    return result


def _concentration(
    engine: Engine, sums: ibis.Table, racks: list[dict[str, Any]], times: int, settings: Settings
) -> pyarrow.Table:
    hot = {row["rack"] for row in racks if (row["hot_rate"] or 0) >= settings.persistent}
    idle = {
        row["rack"]
        for row in racks
        if row["mean_ppm"] is not None and row["mean_ppm"] < settings.idle_ppm and row["rack"] not in hot
    }
    flags = [
        {"of": row["rack"], "kind": row["kind"], "hot": row["rack"] in hot, "idle": row["rack"] in idle}
        for row in racks
    ]
    schema = pyarrow.schema(
        [
            ("of", pyarrow.string()),
            ("kind", pyarrow.string()),
            ("hot", pyarrow.bool_()),
            ("idle", pyarrow.bool_()),
        ]
    )
    joined = sums.join(engine.table(pyarrow.Table.from_pylist(flags, schema)), [("rack", "of")])
    running = joined.filter(joined.tasks > 0)
    grouped = running.group_by("job", "kind").agg(
        tasks=running.tasks.sum().cast("int64"),
        on_hot=running.hot.ifelse(running.tasks, 0).sum().cast("int64"),
        bps=running.hot.ifelse(running.bps, 0).sum().cast("int64"),
        idle_with=running.idle.ifelse(1, 0).sum().cast("int64"),
    )
    outcome = []
    for row in engine.arrow(grouped.order_by("job", "kind")).to_pylist():
        same_kind = [rack for rack in racks if rack["kind"] == row["kind"]]
        hot_racks = [rack for rack in same_kind if rack["rack"] in hot]
        if not hot_racks or not row["on_hot"]:
            continue
        expected = sum(rack["hosts"] for rack in hot_racks) / sum(rack["hosts"] for rack in same_kind)
        load = sum(rack["load_bps"] for rack in hot_racks)
        idle_racks = sum(rack["rack"] in idle for rack in same_kind)
        result = {
            "job": row["job"],
            "kind": row["kind"],
            "share": row["on_hot"] / row["tasks"],
            "expected": expected,
            "traffic": row["bps"] / times / load if load else 0.0,
            "hot_racks": len(hot_racks),
            "idle_racks": idle_racks,
            "idle_without": idle_racks - row["idle_with"],
        }
        result["concentrated"] = (
            result["share"] >= settings.crowded * expected
            and result["traffic"] >= settings.part
            and result["idle_without"] > 0
        )
        outcome.append(result)
    outcome.sort(key=lambda row: (not row["concentrated"], -row["traffic"], row["job"], row["kind"]))
    return pyarrow.Table.from_pylist(outcome, _CONCENTRATION)


_JOBS = pyarrow.schema(
    [
        ("job", pyarrow.string()),
        ("bps_per_cpu", pyarrow.float64()),
        ("normalized", pyarrow.float64()),
        ("intensive", pyarrow.bool_()),
    ]
)
_RACKS = pyarrow.schema(
    [
        ("rack", pyarrow.string()),
        ("kind", pyarrow.string()),
        ("intensive_tasks", pyarrow.float64()),
        ("per_gbps", pyarrow.float64()),
        ("traffic", pyarrow.float64()),
        ("mean_ppm", pyarrow.int64()),
        ("hot_rate", pyarrow.float64()),
    ]
)
_CONCENTRATION = pyarrow.schema(
    [
        ("job", pyarrow.string()),
        ("kind", pyarrow.string()),
        ("share", pyarrow.float64()),
        ("expected", pyarrow.float64()),
        ("traffic", pyarrow.float64()),
        ("hot_racks", pyarrow.int64()),
        ("idle_racks", pyarrow.int64()),
        ("idle_without", pyarrow.int64()),
        ("concentrated", pyarrow.bool_()),
    ]
)
