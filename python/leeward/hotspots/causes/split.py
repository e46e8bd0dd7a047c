"""Owners of hotspots of mixed racks: storage, compute, both or neither (Hotspots, section 3.2).

The uplink of a mixed rack is split into the parts that are provisioned for its disks and for its processors
(`provision`). A hot interval is::

    storage's if  mean storage throughput / (capacity x storage's share)        > 75 %
    compute's if  mean compute throughput / (capacity x (1 - storage's share))  > 75 %

(figure 6). In a table without a direction, a row counts for both directions of the rack's link.
"""

import ibis
import pyarrow

from leeward.hotspots.causes.provision import Provision
from leeward.hotspots.hot import TOR
from leeward.hotspots.settings import Settings
from leeward.telemetry import Windows

OWNERS = ("storage", "compute", "both", "neither", "unknown")


def attribution(
    windows: Windows, hot: ibis.Table, split: ibis.Table | None, fleet: Provision, settings: Settings
) -> pyarrow.Table:
    """Hot intervals of each mixed rack by owner.

    Args:
        windows: Windows of all links.
        hot: Hot intervals, from `durations.hot_intervals`.
        split: Loads of racks by storage and compute, as in `tables.SPLIT`; None if unknown.
        fleet: Provisioned uplinks.
        settings: Thresholds.

    Returns:
        `rack`, `direction`, `storage`, `compute`, `both`, `neither`, `unknown` (hot intervals of each),
        `storage_share` (provisioned; null if unknown), `storage_kbits`, `compute_kbits` (known load in them).
        Without rows if no mixed rack was hot.
    """
    engine = windows.samples.engine
    places = engine.table(windows.samples.links).filter(ibis._.cross_section == TOR)
    racks = engine.table(windows.samples.racks.select(["rack", "kind"])).filter(ibis._.kind == "mixed")
    mixed = places.select("link", "rack", "direction").join(racks.select("rack"), "rack")
    shares = engine.table(fleet.racks.select(["rack", "storage_share"])).rename(of="rack")
    hot_rows = hot.select("link", "start_ms", "covered_ms", "capacity_bits").join(mixed, "link")
    hot_rows = hot_rows.left_join(shares, [("rack", "of")]).drop("of")
    with_loads = hot_rows.mutate(storage=ibis.null("float64"), compute=ibis.null("float64"))
    if split is not None:
        means = _means(windows, split).rename(of="rack", way="direction", at="start_ms")
        with_loads = hot_rows.left_join(means, [("rack", "of"), ("direction", "way"), ("start_ms", "at")])
        with_loads = with_loads.drop("of", "way", "at")
    with_owners = with_loads.mutate(owner=_owner(with_loads, settings))
    counts = {name: (with_owners.owner == name).ifelse(1, 0).sum().cast("int64") for name in OWNERS}
    result = with_owners.group_by("rack", "direction").agg(
        **counts,
        storage_share=with_owners.storage_share.max(),
        storage_kbits=_kbits(with_owners.storage, with_owners.covered_ms),
        compute_kbits=_kbits(with_owners.compute, with_owners.covered_ms),
    )
    return engine.arrow(result.order_by("rack", "direction"))


def _means(windows: Windows, split: ibis.Table) -> ibis.Table:
    """Mean rates of a rack in each interval and direction, in whole bits per second."""
    last = split.t_ms - 1
    ways = windows.samples.engine.table(pyarrow.table({"way": ["up", "down"]}))
    rows = split.select(
        *("rack", "direction"),
        start_ms=last - last % windows.interval_ms,
        storage=split.storage_bps.floor().cast("int64"),
        compute=split.compute_bps.floor().cast("int64"),
    )
    each = rows.join(ways, (rows.direction == "both") | (rows.direction == ways.way)).drop("direction")
    grouped = each.group_by("rack", "start_ms", direction="way").agg(
        n=each.count(), storage=each.storage.sum().cast("int64"), compute=each.compute.sum().cast("int64")
    )
    rows_of_group = grouped.n.cast("float64")
    return grouped.select(
        *("rack", "direction", "start_ms"),
        storage=(grouped.storage.cast("float64") / rows_of_group).floor(),
        compute=(grouped.compute.cast("float64") / rows_of_group).floor(),
    )


def _owner(row: ibis.Table, settings: Settings) -> ibis.Value:
    capacity = row.capacity_bits.cast("float64") * 1000.0 / row.covered_ms.cast("float64")
    storage = row.storage > capacity * row.storage_share * settings.split
    compute = row.compute > capacity * (1.0 - row.storage_share) * settings.split
    known = row.storage.notnull() & row.storage_share.notnull()
    word = ibis.ifelse(
        storage, ibis.ifelse(compute, "both", "storage"), ibis.ifelse(compute, "compute", "neither")
    )
    return ibis.ifelse(known, word, "unknown")


def _kbits(rate: ibis.Value, covered_ms: ibis.Value) -> ibis.Value:
    kbits = (rate * covered_ms.cast("float64") / 1e6).floor().cast("int64")
    return ibis.coalesce(kbits.sum().cast("int64"), 0).cast("int64")
