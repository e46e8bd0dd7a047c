"""A run in numbers."""

from typing import Any

import numpy

from leeward._native import PacketRun
from leeward.packets.tables import PATHS


def summary(run: PacketRun) -> dict[str, Any]:
    """A run in numbers, as values of JSON.

    - `totals`: `PacketRun.totals`.
    - `throughput_bps`: bytes of all flows that arrived in order, divided by the time until the run ended.
    - `completion`: for each class of flows, the number of flows and of finished flows, and the bytes of all
      flows that arrived; for finished flows, the median and 99th percentile of the time from the first byte
      written to the last byte received (null without finished flows).
    - `trains`: as in the table of that name.
    - `circuits`: for each pair of racks whose circuit sent: number of ended days, bytes, utilization.
    - `latency_s`: median and 99th percentile of the time that packets with data spend in the switch, by path.
    """
    totals = run.totals()
    latency = {path: {str(share): run.latency(path, share) for share in (0.5, 0.99)} for path in PATHS}
    completion = _completion(run)
    total = sum(row["delivered_bytes"] for row in completion)
    return {
        "totals": totals,
        "throughput_bps": 8 * total / totals["ended_s"],
        "completion": completion,
        "trains": run.trains().to_pylist(),
        "circuits": _circuits(run),
        "latency_s": latency,
    }


def _completion(run: PacketRun) -> list[dict[str, Any]]:
    table = run.flows()
    columns = {
        name: table[name].to_numpy(zero_copy_only=False)
        for name in ("class", "began_s", "finished_s", "delivered_bytes")
    }
    result = []
    for flow_class in numpy.unique(columns["class"]):
        of_class = columns["class"] == flow_class
        times = (columns["finished_s"] - columns["began_s"])[of_class]
        times = times[~numpy.isnan(times)]
        median, tail = numpy.percentile(times, (50, 99)) if len(times) else (None, None)
        result.append(
            {
                "class": int(flow_class),
                "flows": int(of_class.sum()),
                "finished": len(times),
                "delivered_bytes": int(columns["delivered_bytes"][of_class].sum()),
                "median_s": None if median is None else float(median),
                "p99_s": None if tail is None else float(tail),
            }
        )
    return result


def _circuits(run: PacketRun) -> list[dict[str, Any]]:
    days = run.days().to_pydict()
    pairs: dict[tuple[int, int], list[int]] = {}
    for source, destination, size in zip(days["source"], days["destination"], days["bytes"], strict=True):
        pairs.setdefault((source, destination), []).append(size)
    return [
        {
            "source": source,
            "destination": destination,
            "days": len(sizes),
            "bytes": sum(sizes),
            "utilization": run.utilization(source, destination),
        }
        for (source, destination), sizes in sorted(pairs.items())
        if any(sizes)
    ]
