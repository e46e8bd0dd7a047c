"""Guideline for uplinks: a bandwidth for each processor, and a bandwidth for each byte of disks.

In Hotspots, section 3.3, the uplink of a compute rack is provisioned by its compute units, and the uplink of
a storage rack by the capacity of its disks. Without a stated guideline, medians of the fleet apply: uplink
per processor over compute racks, and uplink per terabyte over disk racks.
"""

import statistics
from dataclasses import dataclass
from typing import Any

import pyarrow

from leeward.hotspots.hot import TOR
from leeward.hotspots.settings import Settings
from leeward.telemetry import Samples

TERABYTE = 10**12
CLASSES = ("High-Uplink", "Medium-Uplink", "Low-Uplink")


@dataclass(frozen=True)
class Provision:
    """The guideline, and its result for each rack.

    Attributes:
        cpu_bps: Bits per second for a processor; None if it is not stated and there is no compute rack.
        disk_bps_per_tb: Bits per second for a terabyte of disks; None if it is not stated and there is no
            disk rack.
        racks: `rack`, `kind`, `uplink_bps`, `storage_bytes`, `disk_bps_per_tb` (its own; null without disks),
            `normalized` (divided by the guideline), `class` (null if unknown), `storage_share` (of its uplink
            that is provisioned for disks; null if unknown).
    """

    cpu_bps: float | None
    disk_bps_per_tb: float | None
    racks: pyarrow.Table


def provision(samples: Samples, settings: Settings) -> Provision:
    """Derives the guideline from a cluster, and classifies racks by it (section 4.3, figure 9).

    A rack is Medium-Uplink if it differs from the guideline by at most a share, by default a tenth; the paper
    leaves this share open. The storage share of a mixed rack is the bandwidth for its disks by the guideline,
    divided by the bandwidth for its disks and processors (section 3.2).
    """
    uplinks: dict[str, int] = {}
    for link in samples.links.select(["rack", "cross_section", "capacity_bps"]).to_pylist():
        if link["cross_section"] == TOR:
            # The lesser of both directions.
            uplinks[link["rack"]] = min(uplinks.get(link["rack"], link["capacity_bps"]), link["capacity_bps"])
    racks = [row for row in samples.racks.to_pylist() if row["rack"] in uplinks]
    cpu = settings.cpu_bps or _median(
        [uplinks[row["rack"]] / row["cpus"] for row in racks if row["kind"] == "compute" and row["cpus"]]
    )
    disk = settings.disk_bps_per_tb or _median(
        [
            uplinks[row["rack"]] * TERABYTE / row["storage_bytes"]
            for row in racks
            if row["kind"] == "disk" and row["storage_bytes"]
        ]
    )
    rows = [_rack(row, uplinks[row["rack"]], cpu, disk, settings) for row in racks]
    return Provision(cpu, disk, pyarrow.Table.from_pylist(rows, _SCHEMA))


def _rack(row: dict[str, Any], uplink: int, cpu: float | None, disk: float | None, settings: Settings) -> Any:
    storage, cpus = row["storage_bytes"], row["cpus"]
    own = uplink * TERABYTE / storage if storage and row["kind"] != "compute" else None
    normalized = own / disk if own and disk else None
    name = None
    if normalized is not None:
        low, high = 1 - settings.matches, 1 + settings.matches
        name = CLASSES[0] if normalized > high else CLASSES[2] if normalized < low else CLASSES[1]
    share = None
    if row["kind"] == "mixed" and cpu and disk and cpus is not None and storage is not None:
        for_disks, for_cpus = disk * storage / TERABYTE, cpu * cpus
        share = for_disks / (for_disks + for_cpus) if for_disks + for_cpus else None
    return {
        "rack": row["rack"],
        "kind": row["kind"],
        "uplink_bps": uplink,
        "storage_bytes": storage,
        "disk_bps_per_tb": own,
        "normalized": normalized,
        "class": name,
        "storage_share": share,
    }


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


_SCHEMA = pyarrow.schema(
    [
        ("rack", pyarrow.string()),
        ("kind", pyarrow.string()),
        ("uplink_bps", pyarrow.int64()),
        ("storage_bytes", pyarrow.int64()),
        ("disk_bps_per_tb", pyarrow.float64()),
        ("normalized", pyarrow.float64()),
        ("class", pyarrow.string()),
        ("storage_share", pyarrow.float64()),
    ]
)
