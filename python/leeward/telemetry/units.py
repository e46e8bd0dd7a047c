"""Units of columns and metrics, in bits or bits per second."""

RATES = {
    "bps": 1.0,
    "kbps": 1e3,
    "Mbps": 1e6,
    "Gbps": 1e9,
    "Tbps": 1e12,
    "B/s": 8.0,
    "kB/s": 8e3,
    "MB/s": 8e6,
    "GB/s": 8e9,
    "KiB/s": 8.0 * 2**10,
    "MiB/s": 8.0 * 2**20,
    "GiB/s": 8.0 * 2**30,
}
"""Bits per second of each unit of a rate."""
COUNTERS = {"bits": 1, "octets": 8}
"""Bits of each unit of a counter."""
UNIT_PPM = 1_050_000
"""Utilization in millionths above which a unit is probably wrong: no link carries 5 % more than its
capacity."""
FACTORS = (
    (8.0, "bytes were taken for bits, or the reverse"),
    (1000.0, "a prefix is wrong by 1000"),
    (8000.0, "bytes were taken for bits, and a prefix is wrong by 1000"),
)
"""Factors of wrong units, and their origins."""
TIMES = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
"""Milliseconds of each unit of a time."""


def off_by(utilization: float) -> tuple[float | None, str]:
    """Factor of the wrong unit that explains a busy interval's utilization best, and its origin.

    The quotient must be a possible utilization, at most 105 %, and the least factor is taken.

    Args:
        utilization: 98th percentile of a link's utilization, a share; single intervals may have any value.
    """
    most = UNIT_PPM / 1e6
    for factor, why in FACTORS:
        if most < utilization <= most * factor:
            return factor, why
    return None, "no usual factor explains it: is the capacity right?"
