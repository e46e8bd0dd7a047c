"""Racks with too little uplink for their disks, and the utilization of links that serve requests (figure 14).

Racks are High-, Medium- or Low-Uplink by uplink capacity per disk capacity (`provision`). Each storage
request counts at the utilization of its rack's link in its interval: a read at the uplink, a write at the
downlink, and others at the busier of the two. Buckets of utilization are 5 % wide::

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
    utilization = _utilization(windows).rename(link_rack="rack", link_start_ms="start_ms")
    joined = sums.left_join(utilization, [("rack", "link_rack"), ("start_ms", "link_start_ms")])
    joined = joined.drop("link_rack", "link_start_ms")
    classes = engine.table(fleet.racks.select(["rack", "class"])).rename(class_rack="rack")
    joined = joined.left_join(classes, [("rack", "class_rack")]).drop("class_rack")
    busiest = ibis.coalesce(ibis.greatest(joined.up, joined.down), joined.up, joined.down)
    ppm = ibis.ifelse(
        joined.operation == "read", joined.up, ibis.ifelse(joined.operation == "write", joined.down, busiest)
    )
    requests_by_bucket = joined.select(
        *("operation", "requests"),
        percent=ibis.coalesce(ppm // BUCKET_PPM * 5, -5).cast("int64"),
        kind=ibis.coalesce(joined["class"], "unknown"),
    )
    grouped = requests_by_bucket.group_by("operation", "percent", "kind").agg(
        requests=requests_by_bucket.requests.sum().cast("int64")
    )
    total = grouped.requests.sum().over(ibis.window(group_by=["operation", "percent"])).cast("float64")
    result = grouped.mutate(share=grouped.requests.cast("float64") / total.nullif(0.0))
    return engine.arrow(result.order_by("operation", "percent", "kind").rename({"class": "kind"}))


def _utilization(windows: Windows) -> ibis.Table:
    """Utilization of racks' links in ppm, by interval: `rack`, `start_ms`, `up`, `down` (null if unknown)."""
    engine = windows.samples.engine
    links = engine.table(windows.samples.links).filter(ibis._.cross_section == TOR)
    readings = windows.table.select("link", "start_ms", "ppm").join(
        links.select("link", "rack", "direction"), "link"
    )
    return readings.group_by("rack", "start_ms").agg(
        up=(readings.direction == "up").ifelse(readings.ppm, None).max(),
        down=(readings.direction == "down").ifelse(readings.ppm, None).max(),
    )
