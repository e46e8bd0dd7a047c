"""Causes of hot links, each with its evidence (Hotspots, sections 3.2 to 3.4 and 4.3).

Changes of capacity or load (`changes`) come from telemetry, and small uplinks (`provision`) from the
cluster. The other causes need tables of the fleet: racks' loads by storage and compute (`split`), and their
tasks (`tasks`). A table of storage requests (`uplinks`) shows the effect of small uplinks. A cause without
enough data is `unknown` or left out.
"""

from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow

from leeward._quantities import gigabits_text, percent_text
from leeward.hotspots.causes import changes, split, tasks, uplinks
from leeward.hotspots.causes.provision import CLASSES, Provision, provision
from leeward.hotspots.causes.tasks import Tasks
from leeward.hotspots.hot import TOR
from leeward.hotspots.settings import Settings
from leeward.telemetry import Windows

__all__ = ["Causes", "Provision", "Tables", "Tasks", "causes"]


@dataclass(frozen=True)
class Tables:
    """Optional tables of a fleet, besides its links, as `causes.tables` reads them."""

    split: ibis.Table | None = None
    tasks: ibis.Table | None = None
    requests: ibis.Table | None = None


@dataclass(frozen=True)
class Causes:
    """Causes of hotspots.

    Attributes:
        runs: Every run with its cause, from `changes.named_changes`.
        by_cause: Result of `changes.by_cause`.
        split: Result of `split.attribution`.
        provision: Guideline for uplinks, and the class of each rack by this guideline.
        tasks: Result of `tasks.tasks`; None without a table of tasks.
        served: Result of `uplinks.request_shares`; None without a table of requests.
        findings: `subject` (a link, rack or job), `cause`, `hot` (number of hot intervals with this cause;
            null for a job), `evidence`. Those with the most hot intervals come first.
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
    """Finds the causes of hot links.

    Args:
        windows: Windows of all links.
        links: Result of `hot.by_link`.
        by_hour: Result of `hot.hours`.
        hot: Result of `durations.hot_intervals`.
        runs: Result of `durations.runs`.
        tables: Optional tables of the fleet.
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
    named_runs = changes.named_changes(windows, change_rows)
    rows = [*_change_findings(named_runs), *_uplink_findings(links, fleet), *_split_findings(owners)]
    if task_results is not None:
        rows += _task_findings(task_results, links, settings)
    rows.sort(key=lambda row: (-(row["hot"] or 0), row["subject"], row["cause"]))
    return Causes(
        named_runs,
        changes.by_cause(windows, change_rows),
        owners,
        fleet,
        task_results,
        request_rows,
        pyarrow.Table.from_pylist(rows, _FINDINGS),
    )


def _change_findings(runs: pyarrow.Table) -> list[dict[str, Any]]:
    """One finding for each link and cause, with the evidence of its longest run."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs.to_pylist():
        grouped.setdefault((run["name"], run["cause"]), []).append(run)
    findings = []
    for (name, cause), group in grouped.items():
        longest = max(group, key=lambda run: (run["intervals"], -run["start_ms"]))
        count = f"{len(group):,} runs; the longest: " if len(group) > 1 else ""
        hot = sum(run["intervals"] for run in group)
        findings.append(
            {"subject": name, "cause": cause, "hot": hot, "evidence": count + _change_text(longest)}
        )
    return findings


def _change_text(run: dict[str, Any]) -> str:
    capacity, load = run["capacity_bps"], run["load_bps"]
    if run["capacity_before_bps"] is None:
        return (
            f"load {gigabits_text(load)}, capacity {gigabits_text(capacity)}; no telemetry before that hour"
        )
    earlier, most = run["capacity_before_bps"], run["load_before_bps"]
    growth = (
        f"{load / most:.2f} times the earlier maximum of {gigabits_text(most)}" if most else "none earlier"
    )
    return (
        f"capacity {gigabits_text(capacity)}, {percent_text(capacity / earlier, 0)} of the earlier"
        f" {gigabits_text(earlier)}; load {gigabits_text(load)}, {growth}"
    )


def _uplink_findings(links: pyarrow.Table, fleet: Provision) -> list[dict[str, Any]]:
    """Hot racks whose uplink is too small for their disks."""
    hot = _hot_by_rack(links)
    return [
        {
            "subject": rack["rack"],
            "cause": "low-uplink",
            "hot": hot[rack["rack"]],
            "evidence": f"{gigabits_text(rack['disk_bps_per_tb'])} of uplink per terabyte of disks,"
            f" {percent_text(rack['normalized'], 0)} of the guideline of"
            f" {gigabits_text(fleet.disk_bps_per_tb or 0)}",
        }
        for rack in fleet.racks.to_pylist()
        if rack["class"] == CLASSES[2] and hot.get(rack["rack"])
    ]


def _split_findings(owners: pyarrow.Table) -> list[dict[str, Any]]:
    result = []
    for row in owners.to_pylist():
        for owner in ("storage", "compute", "both"):
            if not row[owner]:
                continue
            total = sum(row[name] for name in split.OWNERS)
            kbits = row["storage_kbits"] + row["compute_kbits"]
            share = (
                f"; storage accounts for {percent_text(row['storage_kbits'] / kbits, 0)} of their bits"
                if kbits
                else ""
            )
            evidence = (
                f"{row[owner]:,} of {total:,} hot intervals of the {row['direction']}link;"
                f" {percent_text(row['storage_share'], 0)} of its capacity is provisioned for storage{share}"
            )
            cause = {"both": "storage-and-compute"}.get(owner, owner)
            result.append({"subject": row["rack"], "cause": cause, "hot": row[owner], "evidence": evidence})
    return result


def _task_findings(results: Tasks, links: pyarrow.Table, settings: Settings) -> list[dict[str, Any]]:
    hot = _hot_by_rack(links)
    racks = results.racks.to_pylist()
    densities = sorted(row["per_gbps"] for row in racks)
    median = densities[len(densities) // 2] if densities else 0.0
    result = [
        {
            "subject": row["rack"],
            "cause": "network-intensive-tasks",
            "hot": hot[row["rack"]],
            "evidence": f"{row['intensive_tasks']:.1f} network-intensive tasks, {row['per_gbps']:.2f} per"
            f" Gb/s of uplink ({median:.2f} on the median rack); {percent_text(row['traffic'], 0)} of the"
            " rack's traffic",
        }
        for row in racks
        if hot.get(row["rack"])
        and row["per_gbps"] > settings.crowded * median
        and row["traffic"] >= settings.part
    ]
    for row in results.concentrated.to_pylist():
        if row["concentrated"]:
            evidence = (
                f"{percent_text(row['share'], 0)} of its tasks on {row['kind']} racks are on the"
                f" {row['hot_racks']} hot ones, which have {percent_text(row['expected'], 0)} of the hosts;"
                f" the job causes {percent_text(row['traffic'], 0)} of their traffic;"
                f" {row['idle_without']} of {row['idle_racks']} idle racks of that kind run none of its tasks"
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
