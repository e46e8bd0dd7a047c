"""Units of columns and metrics, in bits or bits per second; and causes of utilizations that are too high."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
TIMES = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
"""Milliseconds of each unit of a time."""


LOW = 4.0
"""Greatest utilization that a capacity which is too low explains: some ports of the link are not counted."""


@dataclass(frozen=True)
class Source:
    """What is known of the readings, as evidence about utilizations that are too high.

    Attributes:
        unit_named: True if the name of the column or metric, or a map, says whether they count bits or bytes.
        speeds: True if capacities are measured speeds; else they are those of the cluster file.
        ports: Number of series that are counted together, of each link that has several.
    """

    unit_named: bool = False
    speeds: bool = False
    ports: Mapping[int, int] = field(default_factory=dict)


def doubt(utilization: float, source: Source, ports: int = 1) -> tuple[float | None, str]:
    """Causes of a utilization above 105 % that fit the evidence.

    Args:
        utilization: 98th percentile of a link's utilization, a share; single intervals may have any value.
        source: What is known of the readings.
        ports: Number of series that are counted for the link.

    Returns:
        The factor by which the utilization is too high, if a cause has one; and the causes as a text.
    """
    most = UNIT_PPM / 1e6
    fits: list[tuple[float | None, str]] = []
    if ports > 1 and utilization <= most * ports:
        copies = f"its {ports} series are copies of one: `replica_labels` in a map names their labels"
        fits.append((ports, copies))
    if utilization <= most * LOW:
        low = "the measured speed" if source.speeds else "the capacity in the cluster file"
        fits.append((None, f"{low} is too low"))
    if not source.unit_named and utilization <= most * 8:
        fits.append((8, "bytes were taken for bits, or the reverse"))
    if not fits and utilization <= most * 1000:
        fits.append((1000, "a prefix is wrong by 1000"))
    if not fits and not source.unit_named and utilization <= most * 8000:
        fits.append((8000, "bytes were taken for bits, and a prefix is wrong by 1000"))
    factor = next((factor for factor, _ in fits if factor is not None), None)
    return factor, "; or ".join(
        why for _, why in fits
    ) or "no usual cause explains it: is the capacity right?"
