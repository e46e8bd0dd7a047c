"""Causes of hot links, each with its evidence (Hotspots, sections 3.2 to 3.4 and 4.3).

Telemetry alone shows changes (`changes`): a fallen capacity or a grown load. The other causes need more
tables of the fleet: storage and compute of racks (`split`), their tasks (`tasks`), storage requests
(`uplinks`). Without these, or without a result from them, the cause is `unknown`; no cause is guessed.
"""

from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow

from leeward._quantities import gigabits_text
from leeward.hotspots.causes import changes, split, tasks, uplinks
from leeward.hotspots.causes.provision import CLASSES, Provision, provision
from leeward.hotspots.causes.tasks import Tasks
from leeward.hotspots.hot import TOR
from leeward.hotspots.settings import Settings
from leeward.telemetry import Windows

__all__ = ["Causes", "Provision", "Tables", "Tasks", "causes"]


@dataclass(frozen=True)
class Tables:
    """Tables of a fleet besides its links; see `tables`. None for an unknown one."""

    split: ibis.Table | None = None
    tasks: ibis.Table | None = None
    requests: ibis.Table | None = None


@dataclass(frozen=True)
class Causes:
    """Causes of hotspots.

    Attributes:
        runs: Every run with its change, from `changes.named`.
        by_cause: From `changes.by_cause`.
        split: From `split.attribution`.
        provision: Provisioned uplinks, and classes of racks by them.
        tasks: Results of tasks; None without their table.
        served: Result of `uplinks.served`; None without requests.
        findings: `subject` (a link, rack or job), `cause`, `hot` (hot intervals that it accounts for; null
            where that is unknown), `evidence`. Those with the most hot intervals come first.
    """

    runs: pyarrow.Table
    by_cause: pyarrow.Table
    split: pyarrow.Table
    provision: Provision
    tasks: Tasks | None
    served: pyarrow.Table | None
    findings: pyarrow.Table


def causes(
    windows: Windows,
    links: pyarrow.Table,
    by_hour: ibis.Table,
    hot: ibis.Table,
    runs: ibis.Table,
    tables: Tables,
    settings: Settings,
) -> Causes:
    """Looks for causes.

    Args:
        windows: Windows of all links.
        links: Result of `hot.by_link`.
        by_hour: Result of `hot.hours`.
        hot: Hot intervals, from `durations.marked`.
        runs: Result of `durations.runs`.
        tables: Other tables.
        settings: Thresholds.
    """
    fleet = provision(windows.samples, settings)
    change_rows = changes.changes(windows, by_hour, runs, settings)
    owners = split.attribution(windows, hot, tables.split, fleet, settings)
    task_results = (
        None if tables.tasks is None else tasks.tasks(windows, links, tables.tasks, fleet, settings)
    )
    request_rows = (
        None if tables.requests is None else uplinks.request_shares(windows, tables.requests, fleet)
    )
    of_runs = changes.named_changes(windows, change_rows)
    rows = [*_of_changes(of_runs), *_of_uplinks(links, fleet), *_of_split(owners)]
    if task_results is not None:
        rows += _of_tasks(task_results, links, settings)
    rows.sort(key=lambda row: (-(row["hot"] or 0), row["subject"], row["cause"]))
    return Causes(
        of_runs,
        changes.by_cause(windows, change_rows),
        owners,
        fleet,
        task_results,
        request_rows,
        pyarrow.Table.from_pylist(rows, _FINDINGS),
    )


def _of_changes(runs: pyarrow.Table) -> list[dict[str, Any]]:
    """Number of runs of each link and cause, with the evidence of the longest."""
    result: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs.to_pylist():
        result.setdefault((run["name"], run["cause"]), []).append(run)
    outcome = []
    for (name, cause), several in result.items():
        longest = max(several, key=lambda run: (run["intervals"], -run["start_ms"]))
        count = f"{len(several):,} runs, in the longest " if len(several) > 1 else ""
        hot = sum(run["intervals"] for run in several)
        outcome.append(
            {"subject": name, "cause": cause, "hot": hot, "evidence": count + _change_text(longest)}
        )
    return outcome


def _change_text(run: dict[str, Any]) -> str:
    capacity, load = run["capacity_bps"], run["load_bps"]
    if run["capacity_before_bps"] is None:
        return f"{gigabits_text(load)} on {gigabits_text(capacity)}; nothing was seen of it before that hour"
    before, most = run["capacity_before_bps"], run["load_before_bps"]
    times = f", {load / most:.2f} times" if most else ""
    return (
        f"capacity {gigabits_text(capacity)}, {100 * capacity / before:.0f} % of the"
        f" {gigabits_text(before)} before; load {gigabits_text(load)}{times}"
        f" the most before ({gigabits_text(most)})"
    )


def _of_uplinks(links: pyarrow.Table, fleet: Provision) -> list[dict[str, Any]]:
    """Hot racks whose uplink is too small for their disks."""
    hot = _hot_by_rack(links)
    return [
        {
            "subject": rack["rack"],
            "cause": "low-uplink",
            "hot": hot[rack["rack"]],
            "evidence": f"{gigabits_text(rack['disk_bps_per_tb'])} of uplink per terabyte of disks,"
            f" {100 * rack['normalized']:.0f}"
            f" % of the guideline of {gigabits_text(fleet.disk_bps_per_tb or 0)}",
        }
        for rack in fleet.racks.to_pylist()
        if rack["class"] == CLASSES[2] and hot.get(rack["rack"])
    ]


def _of_split(owners: pyarrow.Table) -> list[dict[str, Any]]:
    result = []
    for row in owners.to_pylist():
        for owner in ("storage", "compute", "both"):
            if not row[owner]:
                continue
            every = sum(row[name] for name in split.OWNERS)
            both = row["storage_kbits"] + row["compute_kbits"]
            share = (
                f"; storage carried {100 * row['storage_kbits'] / both:.0f} % of their bits" if both else ""
            )
            evidence = (
                f"{row[owner]:,} of {every:,} hot intervals {row['direction']}, of a capacity that is"
                f" provisioned to {100 * row['storage_share']:.0f} % for storage{share}"
            )
            cause = {"both": "storage-and-compute"}.get(owner, owner)
            result.append({"subject": row["rack"], "cause": cause, "hot": row[owner], "evidence": evidence})
    return result


def _of_tasks(results: Tasks, links: pyarrow.Table, settings: Settings) -> list[dict[str, Any]]:
    hot = _hot_by_rack(links)
    racks = results.racks.to_pylist()
    crowds = sorted(row["per_gbps"] for row in racks)
    median = crowds[len(crowds) // 2] if crowds else 0.0
    result = [
        {
            "subject": row["rack"],
            "cause": "network-intensive-tasks",
            "hot": hot[row["rack"]],
            "evidence": f"{row['intensive_tasks']:.1f} network-intensive tasks, {row['per_gbps']:.2f} per"
            f" Gb/s of uplink ({median:.2f} on the median rack); {100 * row['traffic']:.0f} % of its traffic",
        }
        for row in racks
        if hot.get(row["rack"])
        and row["per_gbps"] > settings.crowded * median
        and row["traffic"] >= settings.part
    ]
    for row in results.concentrated.to_pylist():
        if row["concentrated"]:
            evidence = (
                f"{100 * row['share']:.0f} % of its tasks on {row['kind']} racks are on the"
                f" {row['hot_racks']} hot ones, which have {100 * row['expected']:.0f} % of the hosts; it is"
                f" {100 * row['traffic']:.0f} % of their traffic; {row['idle_without']} of"
                f" {row['idle_racks']} idle racks of that kind hold none of it"
            )
            result.append(
                {"subject": row["job"], "cause": "concentration", "hot": None, "evidence": evidence}
            )
    return result


def _hot_by_rack(links: pyarrow.Table) -> dict[str, int]:
    hot: dict[str, int] = {}
    for link in links.select(["rack", "cross_section", "hot"]).to_pylist():
        if link["cross_section"] == TOR:
            hot[link["rack"]] = hot.get(link["rack"], 0) + link["hot"]
    return hot


_FINDINGS = pyarrow.schema(
    [
        ("subject", pyarrow.string()),
        ("cause", pyarrow.string()),
        ("hot", pyarrow.int64()),
        ("evidence", pyarrow.string()),
    ]
)
