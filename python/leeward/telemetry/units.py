"""Units of columns and metrics: how many bits, or bits per second, one of them is."""

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
TIMES = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
"""Milliseconds of each unit of a time."""
