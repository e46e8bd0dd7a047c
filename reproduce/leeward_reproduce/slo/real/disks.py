"""Disks of a bed as scenarios assume them: device files of throttled disks.

The throttle of a bed counts bytes. A request also takes time at the server, whatever its size, and the
throttle gives its rate out in slices. A scenario states both, and a slower bed is rejected (`calibration`).
"""

from typing import Any

SIZES = (512, 4096, 16_384, 65_536, 131_072, 262_144, 1 << 20)
"""Sizes of requests in a device file, in bytes."""
REQUEST_S = 0.0006
"""Time of a request at the server and its enforcer besides its bytes, in seconds."""
SHARE = 0.93
"""Rate of a disk in its device file over that of its throttle: file systems read more than clients ask."""
OUTSTANDING = 2
"""Requests at a disk at once. The thesis has one or two (section 2.2.1)."""
SLICE_S = 0.12
"""Latency of a disk in bounds. Linux gives the rate of a throttle out in slices of 100 ms
(`DFL_THROTL_SLICE`). A disk that has served its bytes early stands still until the next slice, for which a
timer wakes up."""
LINK_S = 0.002
"""Latency of a link in bounds: the time in which TCP, with segments of up to 64 KiB, reacts."""


def work(rate: float, size: int) -> float:
    """Seconds for which a request keeps a disk busy.

    Args:
        rate: Rate of the throttle in bytes per second.
        size: Bytes of the request.
    """
    return REQUEST_S + size / (SHARE * rate)


def device(rate: float) -> dict[str, Any]:
    """Device file of a disk with a throttle of `rate` bytes per second."""
    per_second = {size: round(1 / work(rate, size), 6) for size in SIZES}
    table = [{"size_bytes": size, "read_iops": iops, "write_iops": iops} for size, iops in per_second.items()]
    name = f"throttled disk of {rate / 1e6:g} MB/s"
    return {"name": name, "table": table, "outstanding": OUTSTANDING}
