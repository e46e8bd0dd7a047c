"""What a bed adds to a request, and the check that its disks are as fast as scenarios assume."""

from contextlib import ExitStack
from pathlib import Path

from leeward._quantities import read_rate
from leeward_reproduce.hdfs.usage import RejectedRunError
from leeward_reproduce.slo.real import disks
from leeward_reproduce.slo.real.bed import Bed
from leeward_reproduce.slo.real.measures import read_rows
from leeward_reproduce.slo.real.run import VOLUME, replay
from leeward_reproduce.slo.real.traffic import Requests, steady

SINGLE_S, CLOSED_S = 10.0, 2.0
"""Length of the measurement of single requests, and of one at the disk's speed."""
LOAD, MOST_PER_S = 0.1, 100.0
"""Load of a disk by single requests, and their largest rate. They are evenly spaced: none meets another."""
LINK_SHARE = 0.85
"""Share of the rate of a link that is expected to carry payload."""
SIZES = (4096, 16_384, 65_536)
"""Sizes of the single requests, in turn."""
SPEED_SIZES = (4096, 65_536)
"""Sizes of requests with which a disk is measured at its speed."""


def single(rate: float) -> Requests:
    """Evenly spaced reads for a disk with a throttle of `rate` bytes per second."""
    mean = sum(disks.work(rate, size) for size in SIZES) / len(SIZES)
    gap = max(mean / LOAD, 1 / MOST_PER_S)
    return steady(gap, SIZES, int(SINGLE_S / gap))


def calibrate(bed: Bed) -> dict[str, float]:
    """Measures the servers of a bed through storage enforcers without workloads, one server after another.

    Returns:
        Largest latency of single requests to each server, in seconds.

    Raises:
        RejectedRunError: A disk is slower than its device file.
        OSError: A process failed.
    """
    folder = bed.folder / "calibration"
    folder.mkdir(exist_ok=True)
    return {server: _calibrate(bed, server, folder) for server in bed.servers}


def _calibrate(bed: Bed, server: str, folder: Path) -> float:
    rate = bed.shape.disk_rate(server)
    trace = folder / f"{server}.csv"
    with ExitStack() as stack:
        process = bed.enforce_nfs(server)
        stack.callback(bed.end, process.name)
        single(rate).write(trace)
        _measure(bed, server, trace, folder, [])
        tail = float(read_rows(folder / f"single {server}.csv", None, SINGLE_S)["worst"])
        for size in SPEED_SIZES:
            steady(0.001, [size], 64).write(trace)
            closed = ["--closed", str(disks.OUTSTANDING), "--for", f"{CLOSED_S:g}s"]
            _measure(bed, server, trace, folder, closed)
            served = int(read_rows(folder / f"single {server}.csv", None, CLOSED_S)["requests"])
            of_link = LINK_SHARE * read_rate("link", bed.shape.link) / 8 / size
            check_speed(server, size, served / CLOSED_S, min(1 / disks.work(rate, size), of_link))
    return tail


def _measure(bed: Bed, server: str, trace: Path, folder: Path, options: list[str]) -> None:
    """Replays a trace at a server from the first client, and waits for its end."""
    port = bed.shape.proxy_port(VOLUME)
    with ExitStack() as stack:
        name = f"single {server}"
        process = replay(bed, name, bed.clients[0], server, trace, (port, port), folder, stack, options)
        process.finish(SINGLE_S + 60.0)


def check_speed(server: str, size: int, measured: float, expected: float) -> None:
    """Checks that a disk serves as many requests a second as its device file says.

    Raises:
        RejectedRunError: It serves fewer.
    """
    if measured < expected:
        raise RejectedRunError(
            f"{server}: its disk serves {measured:.0f} requests of {size} B a second, and scenarios assume"
            f" {expected:.0f}: this machine is too slow, or too busy"
        )
