"""Overhead of the storage enforcer: the same requests to the server itself, and through the enforcer."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from leeward_reproduce.real import results
from leeward_reproduce.slo.real import bed, layout, scenario
from leeward_reproduce.slo.real.bed import Bed
from leeward_reproduce.slo.real.bench import attempt
from leeward_reproduce.slo.real.layout import Shape
from leeward_reproduce.slo.real.measures import read_rows
from leeward_reproduce.slo.real.run import FILE, VOLUME, Advance, replay
from leeward_reproduce.slo.real.traffic import FILE_BYTES, steady

SHAPE = Shape(clients=1, servers=1, link="10Gbps", disk="400MB/s", disk_size="256MiB")
"""A bed whose link is not the limit of the throughput: at 25 MB/s, any enforcer would keep up with it."""
PAIRS = 3
"""Pairs of measurements, direct and through the enforcer in turn."""
SECONDS = 3.0
"""Length of each measurement."""
SMALL, LARGE, OPEN = 4096, 65_536, 8
"""Bytes of the requests for latency and for throughput, and requests open at once for throughput."""
NAME = "overhead"


@dataclass(frozen=True)
class Overhead:
    """Measurements, pair by pair.

    Attributes:
        latency_s: Median latencies of single small reads, direct and through the enforcer.
        bytes_per_s: Throughputs of large reads, direct and through the enforcer.
    """

    latency_s: Sequence[tuple[float, float]]
    bytes_per_s: Sequence[tuple[float, float]]


def make(folder: Path, advance: Advance) -> Overhead:
    """Measures the overhead, or reads it from a folder.

    Raises:
        OSError: It is absent, and a bed cannot run on this machine.
    """
    mine = folder / NAME
    mine.mkdir(parents=True, exist_ok=True)
    scenario.dump(mine / scenario.CLUSTER, SHAPE.cluster())
    found = results.read(mine, Overhead)
    if found is None:
        with bed.up(SHAPE) as machines:
            bed.write_file(machines.disk("s0") / VOLUME / FILE, FILE_BYTES)
            found = {NAME: attempt(lambda: measure(machines, advance), [])}
        results.write(mine, found)
    return found[NAME]


def measure(machines: Bed, advance: Advance) -> Overhead:
    """Measures the overhead on a bed."""
    folder = machines.folder / NAME
    folder.mkdir(exist_ok=True)
    proxied = machines.shape.proxy_port(VOLUME)
    ways = ((layout.NFS_PORT, layout.MOUNT_PORT), (proxied, proxied))
    latencies: list[tuple[float, float]] = []
    rates: list[tuple[float, float]] = []
    with ExitStack() as stack:
        process = machines.enforce_nfs("s0")
        stack.callback(machines.end, process.name)
        for at in range(PAIRS):
            pairs = []
            for size, open_at_once in ((SMALL, 1), (LARGE, OPEN)):
                pairs.append([_measure(machines, folder, way, size, open_at_once) for way in ways])
            (direct, through), (direct_rate, through_rate) = pairs
            latencies.append((direct[0], through[0]))
            rates.append((direct_rate[1], through_rate[1]))
            advance((at + 1) / PAIRS)
    return Overhead(latencies, rates)


def _measure(
    machines: Bed, folder: Path, ports: tuple[int, int], size: int, open_at_once: int
) -> tuple[float, float]:
    """Median latency in seconds, and bytes per second, of a closed loop of reads."""
    trace = folder / "trace.csv"
    steady(0.001, [size], 256).write(trace)
    with ExitStack() as stack:
        options = ["--closed", str(open_at_once), "--for", f"{SECONDS:g}s"]
        process = replay(machines, NAME, "c0", "s0", trace, ports, folder, stack, options)
        process.finish(SECONDS + 60.0)
    seen = read_rows(folder / f"{NAME}.csv", None, SECONDS)
    return float(seen["p50"]), seen["bytes"] / SECONDS
