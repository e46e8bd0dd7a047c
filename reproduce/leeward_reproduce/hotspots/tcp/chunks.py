"""Chunk requests by class of uplink over TCP (figure 14), and HDD reads with and without CCP (figure 20).

The racks are those of `clusters/storage.yaml`. A replica policy places stripes before the run; workers on
other racks then read and write chunks, think, and go on. Each request has the utilization of the link of
its rack in its window. For figure 20, racks also have uplinks that spread less and more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
from pyarrow import compute

from leeward import Cluster, operations
from leeward_reproduce.figures import Experiment, Results
from leeward_reproduce.hotspots import chunks, paper
from leeward_reproduce.hotspots.reasons import OVER_TCP
from leeward_reproduce.hotspots.requests import CLASSES, Requests, classes_of, join_loads
from leeward_reproduce.hotspots.tcp import rack
from leeward_reproduce.rows import Reason, Row, change_row, measured_row, row_key

POLICIES = ("uniform", "ccp")
LOADS_BPS = (12e9, 24e9, 36e9)
"""Loads of reads, and of writes, as in the fluid simulator: 21, 42 and 63 % of all uplinks of storage."""
BYTES = 8 << 20
UPLINKS_BPS = {1.5: (2.4e9, 3e9, 3.6e9), 2.25: (2e9, 3e9, 4.5e9), 4.0: (1.2e9, 3e9, 4.8e9)}
"""Uplinks of Low-, Medium- and High-Uplink racks, by the ratio of the last to the first."""
USUAL = 2.25
"""The ratio in `clusters/storage.yaml`."""
WORKERS = 240
"""Number of workers that read, and of those that write: two for each of 120 hosts."""
STRIPES = 3000
CAPACITY = "5GB"
"""Storage of a host. Stripes fill half of all storage, so that the balance of `ccp` has an effect."""
WARMUP_S, WINDOW_S, WINDOWS = 4, 10, 3
"""The windows are shorter than the paper's 30 s, so that a run has three of them."""
DISKS = 8
"""Disks of a host, which share its rates."""
NETWORK_S = 0.06
"""Approximate time of a request without waiting, besides a disk's; a worker thinks for the rest."""
_UNKNOWN_DISKS = Reason("the paper states neither the loads of these racks nor their disks")
_NO_NUMBERS = "the paper: nearly all, in a figure without numbers"


def cluster(spread: float) -> dict[str, Any]:
    """The racks of `clusters/storage.yaml`, with less storage, and with uplinks of this ratio."""
    devices = [{"read": "600MB/s", "write": "500MB/s", "capacity": CAPACITY}]
    racks: list[dict[str, Any]] = [
        {"count": 6, "kind": "disk", "link": f"{bps:.0f}bps", "devices": devices}
        for bps in UPLINKS_BPS[spread]
    ]
    racks.append({"count": 12, "hosts": 10, "kind": "compute", "link": "40Gbps", "tags": ["workers"]})
    return {"hosts_per_rack": 5, "nic": "10Gbps", "racks": racks}


def scenario(seed: int, policy: str, load_bps: float, spread: float, writes: bool) -> dict[str, Any]:
    """Scenario of reads, and of as many writes, of chunks that a policy has placed."""
    cycle = WORKERS * 8 * BYTES / load_bps - NETWORK_S
    # A write ends in the cache.
    think = {"read": cycle - rack.read_s(DISKS, BYTES), "write": cycle}
    kinds = ["read", "write"] if writes else ["read"]
    return {
        "cluster": cluster(spread),
        "media": [rack.disks(DISKS)],
        "chunks": {"policy": policy, "stripes": STRIPES, "coding": "6+3", "size": f"{BYTES}B"},
        "operations": [{"name": kind, "kind": kind, "medium": "hdd", "size": f"{BYTES}B"} for kind in kinds],
        "jobs": [
            {
                "name": kind,
                "concurrent": WORKERS,
                "hosts": "workers",
                "steps": [rack.thinking(max(think[kind], 1e-3)), {"operation": kind}],
            }
            for kind in kinds
        ],
        "horizon": f"{WARMUP_S + WINDOWS * WINDOW_S}s",
        "warmup": f"{WARMUP_S}s",
        "sample": f"{WINDOW_S}s",
        "seed": seed,
    }


@dataclass(frozen=True)
class Chunks:
    """Requests of a run, and the p95 of reads.

    Attributes:
        requests: Requests by kind, `reads` and `writes`.
        p95_s: 95th percentile of the time of reads, `total` and `network`.
        read_bps: Throughput of reads.
    """

    requests: dict[str, Requests]
    p95_s: dict[str, float]
    read_bps: float


def measure(seed: int, policy: str, load_bps: float, spread: float, writes: bool) -> Chunks:
    """Runs a scenario, and joins its requests with the loads of their racks' links."""
    run = operations.simulate(scenario(seed, policy, load_bps, spread, writes))
    network = Cluster(cluster(spread))
    of_rack = classes_of(network)
    capacity = network.links()
    bps = dict(zip(capacity["name"].to_pylist(), capacity["capacity_bps"].to_pylist(), strict=True))
    loads = run.links()
    share = 8 / WINDOW_S / numpy.array([bps[name] for name in loads["link"].to_pylist()])
    links = pyarrow.table(
        {
            "start_s": loads["start_s"],
            "link": loads["link"],
            "utilization": loads["bytes"].to_numpy() * share,
        }
    )
    rows = run.operations()
    requests = {}
    for kind, direction in (("read", "uplink"), ("write", "downlink")):
        mine = rows.filter(compute.equal(rows["operation"], kind))
        mine = mine.append_column("finished_s", mine["ended_s"])
        count = numpy.ones(len(mine), dtype=int)
        requests[f"{kind}s"] = join_loads(links, of_rack, direction, mine["server"], count, mine, "began_s")
    reads = rows.filter(compute.equal(rows["operation"], "read"))
    p95 = {
        part: float(numpy.percentile(reads[column].to_numpy(), 95))
        for part, column in (("total", "latency_s"), ("network", "network_s"))
    }
    carried = 8 * float(reads["bytes"].to_numpy().sum()) / (WINDOWS * WINDOW_S)
    return Chunks(requests, p95, carried)


Key = tuple[str, float, float]
"""Policy, load and ratio of uplinks of a run."""


def _run(seed: int, short: bool) -> dict[Key, Chunks]:
    loads = LOADS_BPS[1:2] if short else LOADS_BPS
    return {
        (policy, load, USUAL): measure(seed, policy, load, USUAL, True)
        for policy in POLICIES
        for load in loads
    }


def _run_spreads(seed: int, _: bool) -> dict[Key, Chunks]:
    middle = LOADS_BPS[1]
    return {
        (policy, middle, spread): measure(seed, policy, middle, spread, False)
        for policy in POLICIES
        for spread in UPLINKS_BPS
    }


TCP_CHUNKS = Experiment("chunks over TCP", _run)
"""Reads and writes of chunks under both policies and three loads."""
TCP_SPREADS = Experiment("reads over TCP by the spread of uplinks", _run_spreads)
"""Reads under both policies and three spreads of uplinks."""


def _pooled(runs: dict[Key, Chunks], policy: str, kind: str) -> Iterator[Requests]:
    return (one.requests[kind] for (of_policy, *_), one in runs.items() if of_policy == policy)


def request_rows(results: Results) -> list[Row]:
    """Figure 14: classes of the racks of requests, by the utilization of their link."""
    outcome, result = results.outcomes[TCP_CHUNKS], []
    for policy in POLICIES:
        for kind in ("reads", "writes"):
            for words, least, most in (
                (f"below {chunks.LOW:.0%}", 0.0, chunks.LOW),
                (f"over {chunks.HOT:.0%}", chunks.HOT, numpy.inf),
            ):
                for at, name in enumerate(CLASSES):
                    values = [
                        share
                        for runs in outcome
                        for share in _share(list(_pooled(runs, policy, kind)), least, most, at)
                    ]
                    is_paper = policy == "uniform" and name == ("High" if least == 0 else "Low")
                    label = f"{kind} at ToRs {words} that went to {name}, {policy}{OVER_TCP}"
                    note = _NO_NUMBERS if is_paper else ""
                    result.append(measured_row("14", label, "%", values, None, note))
            values = [100 * _hot(list(_pooled(runs, policy, kind))) for runs in outcome]
            label = f"{kind} at ToRs over {chunks.HOT:.0%}, {policy}{OVER_TCP}"
            result.append(measured_row("14", label, "%", values))
    return result


def _share(parts: list[Requests], least: float, most: float, at: int) -> list[float]:
    """Percent of the requests at some utilizations that went to a class; empty without requests."""
    kinds = numpy.concatenate(
        [one.kind[(one.utilization >= least) & (one.utilization < most)] for one in parts]
    )
    return [100 * float((kinds == at).mean())] if len(kinds) else []


def _hot(parts: list[Requests]) -> float:
    used = numpy.concatenate([one.utilization for one in parts])
    return float((used > chunks.HOT).mean()) if len(used) else 0.0


def read_rows(results: Results) -> list[Row]:
    """Figure 20: change of the p95 of HDD reads, by load and by the spread of uplinks."""
    result = []
    for load in LOADS_BPS:
        words = f"{load / 1e9:g}Gbps of reads and of writes"
        result += _changes(results.outcomes[TCP_CHUNKS], load, USUAL, words)
    for spread in UPLINKS_BPS:
        result += _changes(results.outcomes[TCP_SPREADS], LOADS_BPS[1], spread, _of_spread(spread))
    return result


def _changes(outcome: list[dict[Key, Chunks]], load: float, spread: float, words: str) -> list[Row]:
    result = []
    keys = [(policy, load, spread) for policy in POLICIES]
    pairs = [tuple(runs[key] for key in keys) for runs in outcome if all(key in runs for key in keys)]
    for part in ("network", "total"):
        values = [100 * (after.p95_s[part] / before.p95_s[part] - 1) for before, after in pairs]
        label = f"p95 of HDD reads, {part}: change, uniform to ccp, {{}}{OVER_TCP}"
        note = "the paper's range is at one throughput of reads"
        reason = _UNKNOWN_DISKS
        if spread < max(UPLINKS_BPS):
            widest = row_key("20", label.format(_of_spread(max(UPLINKS_BPS))))
            reason = Reason("the paper does not state the uplinks of these racks", variant=widest)
        result.append(change_row("20", label.format(words), values, paper.READ_GAINS[part], note, reason))
    values = [100 * (after.read_bps / before.read_bps - 1) for before, after in pairs]
    label = f"throughput of reads: change, uniform to ccp, {words}{OVER_TCP}"
    return [*result, change_row("20", label, values)]


def _of_spread(spread: float) -> str:
    """Words of the rows of a spread of uplinks."""
    return f"{LOADS_BPS[1] / 1e9:g}Gbps of reads, uplinks spread {spread:g}-fold"
