"""Racks with too little uplink for their disks, and their utilization when they serve requests (figure 14).

Racks are High-, Medium- or Low-Uplink by uplink capacity per disk capacity (`provision`). Each storage
request counts at the utilization of its rack's link in its interval: a read at the uplink, a write at the
downlink, and others at the busier of the two. In buckets of 5 % of utilization::

    share of class c in bucket b = requests to racks of c at b / all requests at b
"""

import ibis
import pyarrow

from leeward.hotspots.causes.provision import Provision
from leeward.hotspots.hot import TOR
from leeward.telemetry import Windows

BUCKET_PPM = 50_000


def request_shares(windows: Windows, requests: ibis.Table, fleet: Provision) -> pyarrow.Table:
    """The share of requests that each class of racks serves at each utilization.

    Returns:
        `operation`, `percent` (lower edge of a bucket of 5 %), `class` (`unknown` for a rack without one),
        `requests` (rounded down), `share`. Requests in intervals without telemetry of their rack are in
        bucket -5.
    """
    engine = windows.samples.engine
    last = requests.t_ms - 1
    rows = requests.select(*("rack", "operation", "requests"), start_ms=last - last % windows.interval_ms)
    sums = rows.group_by("rack", "operation", "start_ms").agg(
        requests=rows.requests.floor().cast("int64").sum().cast("int64")
    )
    busy = _busy(windows).rename(of="rack", at="start_ms")
    joined = sums.left_join(busy, [("rack", "of"), ("start_ms", "at")]).drop("of", "at")
    classes = engine.table(fleet.racks.select(["rack", "class"])).rename(of="rack")
    joined = joined.left_join(classes, [("rack", "of")]).drop("of")
    most = ibis.coalesce(ibis.greatest(joined.up, joined.down), joined.up, joined.down)
    ppm = ibis.ifelse(
        joined.operation == "read", joined.up, ibis.ifelse(joined.operation == "write", joined.down, most)
    )
    rows_of_bucket = joined.select(
        *("operation", "requests"),
        percent=ibis.coalesce(ppm // BUCKET_PPM * 5, -5).cast("int64"),
        kind=ibis.coalesce(joined["class"], "unknown"),
    )
    grouped = rows_of_bucket.group_by("operation", "percent", "kind").agg(
        requests=rows_of_bucket.requests.sum().cast("int64")
    )
    total = grouped.requests.sum().over(ibis.window(group_by=["operation", "percent"])).cast("float64")
    result = grouped.mutate(share=grouped.requests.cast("float64") / total.nullif(0.0))
    return engine.arrow(result.order_by("operation", "percent", "kind").rename({"class": "kind"}))


def _busy(windows: Windows) -> ibis.Table:
    """The utilization of racks' links by interval: `rack`, `start_ms`, `up`, `down` (null: unseen)."""
    engine = windows.samples.engine
    places = engine.table(windows.samples.links).filter(ibis._.cross_section == TOR)
    seen = windows.table.select("link", "start_ms", "ppm").join(
        places.select("link", "rack", "direction"), "link"
    )
    return seen.group_by("rack", "start_ms").agg(
        up=(seen.direction == "up").ifelse(seen.ppm, None).max(),
        down=(seen.direction == "down").ifelse(seen.ppm, None).max(),
    )
