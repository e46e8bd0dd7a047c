"""Number of ports that bring a rack's links under a threshold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from leeward.plan.series import Series, nearest_rank

SPEEDS = frozenset(10**9 * speed for speed in (1, 10, 25, 40, 50, 100, 200, 400, 800))
"""Speeds of Ethernet ports, bits per second (IEEE 802.3)."""
COUNTS = (4, 2, 8, 6, 3, 16, 12, 32, 1)
"""Numbers of uplinks of a rack, the likeliest first."""


@dataclass(frozen=True)
class Ports:
    """Ports for a rack. One port carries its speed in each direction.

    Attributes:
        speed_bps: Speed of a port.
        assumed: True if the speed is derived from the capacity.
        now: Present ports: whole ports in the present capacity.
        lost: Ports of the cluster file that are not present; these should be repaired first.
        needed: Ports that the rack needs.
    """

    speed_bps: int
    assumed: bool
    now: int
    lost: int
    needed: int

    @property
    def added(self) -> int:
        """Ports to add to the present ones; lost ports count."""
        return max(self.needed - self.now, 0)


def ports(links: Sequence[Series], threshold_ppm: int, thousandths: int, speed_bps: int | None) -> Ports:
    """Ports that a rack needs.

    Args:
        links: Uplink and downlink of the rack, if seen.
        threshold_ppm: Greatest utilization, in millionths.
        thousandths: Percentile, in thousandths of a percent.
        speed_bps: Speed of a port; None to derive it.
    """
    speed = speed_bps or _speed(min(link.cluster_bps for link in links))
    # Exact arithmetic: a rounded quotient could give a port too few or too many.
    needed = max(
        math.ceil(
            Fraction(nearest_rank(link.load_bps[link.seen], thousandths)) * 10**6 / (threshold_ppm * speed)
        )
        for link in links
    )
    now = min(int(link.now_bps) // speed for link in links)
    cluster = min(link.cluster_bps for link in links) // speed
    return Ports(speed, speed_bps is None, now, max(cluster - now, 0), needed)


def _speed(capacity_bps: int) -> int:
    """Speed of a port for the likeliest number of ports; the total capacity if none gives a usual speed."""
    for count in COUNTS:
        if capacity_bps % count == 0 and capacity_bps // count in SPEEDS:
            return capacity_bps // count
    return capacity_bps
