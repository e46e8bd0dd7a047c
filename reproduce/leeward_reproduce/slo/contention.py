"""Random workloads after table 3.1, and the machines that they share.

The thesis' traces are private. The thesis states the load of each workload and the C^2 of its gaps, and
workloads are drawn with these values, or have a released trace (`gaps`). Sizes and mixes of drawn workloads
are our choice. A request takes a disk a seek, by distance, and a transfer; a request that continues a stream
takes no seek. Links switch to a higher priority after at most 64 KiB. Workload L, a copy of files, has four
outstanding requests of 1 MiB, and sends the next request when one ends. Each of them takes a seek, because
other requests come between.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leeward._native import published_workloads, simulate_contention
from leeward_reproduce.slo import cake, workloads
from leeward_reproduce.slo.gaps import INDEPENDENT, Gaps
from leeward_reproduce.slo.gaps import constants as gap_constants


def _table_rows(letters: str, load: str) -> dict[str, tuple[float, float]]:
    """Load and C^2 of gaps of some workloads of table 3.1."""
    rows = ((letter, published_workloads()[letter]) for letter in letters)
    return {letter: (row[load], row["gap_c2"]) for letter, row in rows}


TABLE = _table_rows("ABCDFGH", "storage_load")
"""Load of the disk, and C^2 of gaps (table 3.1)."""
FLOOD = (1.5, _table_rows("E", "storage_load")["E"][1])
"""Load and C^2 of E, which is D misbehaving; the thesis says only that this load exceeds the capacity."""
LINKS = _table_rows("IJK", "network_load")
"""Load of the network, and C^2 of gaps (table 3.1)."""
SIZES = ((4096, 4.0), (16384, 3.0), (65536, 2.0))
"""Bytes of requests, with relative rates. I and J have requests of 1 MiB, which fit their two loads."""
LARGE = ((1 << 20, 1.0),)
MEMORY = ((65536, 1.0),)
READS = 0.7
SEQUENTIAL = 0.3
OUTSTANDING = 4
"""Outstanding requests of the copy."""
DISK = {
    "seek": [
        {"distance_bytes": 0, "seconds": 0.0045},
        {"distance_bytes": 100_000_000, "seconds": 0.006},
        {"distance_bytes": 10_000_000_000, "seconds": 0.009},
        {"distance_bytes": 1_000_000_000_000, "seconds": 0.015},
    ],
    "read_bytes_per_second": 150e6,
    "write_bytes_per_second": 140e6,
}
"""The disk of `examples/slo/disk.yaml`, of 7,200 revolutions a minute."""
POOR_SEEK = 0.008
"""Seconds of each seek in the poor model, sequential or not (figure 3.8)."""
PACKET = 65536
FACTORS = tuple(2.0**power for power in range(8))
"""Factors of SLOs from which rules choose."""
SCHEDULERS = {"ps": "ps", "cake": "Cake", "edf": "EDF", "by-slo": "bySLO", "pm": "PM"}
"""Names of schedulers, with the thesis' name of each."""

Outcome = dict[str, Any]
Member = dict[str, Any]
ContentionResult = dict[str, list[dict[str, Any]]]


def storage_member(letter: str, slo: float, gaps: Gaps = INDEPENDENT, **settings: Any) -> Member:
    """A workload on the disk."""
    load, gap_c2 = TABLE[letter]
    return _member(letter, slo, {"storage": load}, gap_c2, SIZES, gaps, device=0, **settings)


def network_member(
    letter: str, slo: float, device: int | None, gaps: Gaps = INDEPENDENT, **settings: Any
) -> Member:
    """A workload with a load of the network: it has only reads, because reads load that direction."""
    load, gap_c2 = LINKS[letter]
    sizes = LARGE if device is not None else MEMORY
    member = _member(letter, slo, {"network-out": load}, gap_c2, sizes, gaps, device=device, **settings)
    member["sends"] |= {"read_share": 1.0, "sequential_share": 0.0}
    return member


def copy(**settings: Any) -> Member:
    """Workload L."""
    member = _member(
        "L", None, {"storage": 1.0}, 1.0, LARGE, INDEPENDENT, device=0, closed=OUTSTANDING, **settings
    )
    member["sends"] |= {"read_share": 1.0, "sequential_share": 0.0}
    return member


def _member(
    name: str,
    slo: float | None,
    load: Mapping[str, float],
    gap_c2: float,
    sizes: Sequence[tuple[int, float]],
    gaps: Gaps,
    **settings: Any,
) -> Member:
    sends = {
        "load": load,
        **gaps.sends(gap_c2),
        "sizes": sizes,
        "read_share": READS,
        "sequential_share": SEQUENTIAL,
    }
    return {"name": name, "slo": slo, "sends": sends, **gaps.member(name), **settings}


def own_clients(members: Sequence[Member]) -> list[Member]:
    """Members, each on a client machine of its own."""
    return [{**member, "client": at} for at, member in enumerate(members)]


def contend(
    seed: int,
    members: Sequence[Member],
    seconds: float,
    percentiles: Sequence[float],
    *,
    schedulers: Sequence[str] = tuple(SCHEDULERS),
    measured: float = 0.5,
    percentile: float = 99.9,
    poor: bool = False,
) -> ContentionResult:
    """Latencies of workloads under each scheduler, with the same requests.

    Args:
        seed: Seed of the requests.
        members: The workloads; `trace` is the file of a recorded trace.
        seconds: Time in which workloads send requests.
        percentiles: Measured percentiles, in percent.
        schedulers: Names of schedulers. In place of Cake, the results have each of its settings (`cake`).
        measured: Share of that time, at its end, that is measured; by default the half (section 3.3.1).
        percentile: Percentile of SLOs, in percent.
        poor: True if curves assume that all seeks take the same time.
    """
    files = sorted({member["trace"] for member in members if "trace" in member})
    request = {
        "members": [_with_index(member, files) for member in members],
        "traces": files,
        "shape": {
            "clients": 1 + max(member["client"] for member in members),
            "slots": None,
            "servers": 1 + max(member.get("server", 0) for member in members),
            "devices": 1 + max(member["device"] or 0 for member in members),
            "bytes_per_second": workloads.GIGABIT,
        },
        "device": json.dumps({"disk": DISK}),
        "model": json.dumps({"disk": {**_rates(), "seek_seconds": POOR_SEEK}}) if poor else None,
        "packet_bytes": PACKET,
        "seconds": seconds,
        "from_seconds": seconds * (1 - measured),
        "percentile": percentile,
        "percentiles": percentiles,
        "schedulers": [name for name in schedulers if name != cake.NAME],
        "cakes": cake.SETTINGS if cake.NAME in schedulers else {},
    }
    return simulate_contention(seed, json.dumps(request))


def _with_index(member: Member, files: Sequence[str]) -> Member:
    """A member whose trace is the index of its file."""
    others = {name: value for name, value in member.items() if name != "trace"}
    return others | ({"recorded": files.index(member["trace"])} if "trace" in member else {})


def copied(outcome: Mapping[str, Any], seconds: float) -> float:
    """Bytes that the copy read in the measured half of a run, in MB/s."""
    return float(outcome["requests"] / (seconds / 2) * LARGE[0][0] / 1e6)


def least_factor(holds: Callable[[float], bool]) -> float:
    """Least of `FACTORS` for which a condition holds; the greatest one if it holds for none."""
    return next((factor for factor in FACTORS if holds(factor)), FACTORS[-1])


def _rates() -> dict[str, Any]:
    return {name: value for name, value in DISK.items() if name != "seek"}


def constants() -> object:
    """Inputs that determine the outcomes."""
    table = [TABLE, FLOOD, LINKS, SIZES, LARGE, MEMORY, READS, SEQUENTIAL, OUTSTANDING]
    return [*table, DISK, POOR_SEEK, PACKET, FACTORS, cake.SETTINGS, gap_constants()]
