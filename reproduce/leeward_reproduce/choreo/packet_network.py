"""Networks in the packet simulator: hosts in racks, each limited by a token bucket, as in clouds.

A switch joins the racks; hosts of one rack reach each other without it. TCP is Reno with Linux's timers, and
packets have 1,500 bytes. A socket has at most 128 KiB in the queue of its interface: at that limit it waits,
and nothing is lost there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from leeward import packets
from leeward._arrays import Floats

Place = tuple[int, int]
"""A host: the number of its rack, and its number in the rack."""
Path = tuple[Place, Place]
BUCKET = 16_000
"""Default size of a limiter's bucket in bytes; our choice."""
LINE = 10e9
"""Rate of an interface in bits per second; a burst that fits the bucket is sent at this rate."""
_QUEUE = 128
"""Capacity of the queue between two racks, in packets."""
_TCP = {
    "mss": 1448,
    "rack": "always",
    "min_probe": "0s",
    "lone_probe": "40ms",
    "initial_timeout": "1s",
    "min_timeout": "200ms",
    "max_timeout": "120s",
    "ack_delay": "40ms",
}


@dataclass(frozen=True)
class Network:
    """Hosts that are limited at the source."""

    racks: int
    hosts_per_rack: int
    limits: Mapping[Place, float] = field(hash=False)
    """Limits of hosts, in bits per second."""
    bucket: int = BUCKET
    link: float = LINE
    """Rate of a rack's links to and from the switch, in bits per second."""


@dataclass(frozen=True)
class Transfer:
    """A TCP transfer between two hosts."""

    path: Path
    start: float = 0.0
    """Start in seconds."""
    size: int | None = None
    """Size in bytes; None for a transfer without end."""


@dataclass(frozen=True)
class Train:
    """A packet train: its path, its number of bursts (K), and the packets of a burst (B)."""

    path: Path
    bursts: int
    packets: int
    start: float = 0.0
    """Start in seconds."""


def measure_transfers(
    network: Network,
    transfers: Sequence[Transfer],
    observed_paths: Sequence[Path],
    seconds: float,
    every: float,
) -> Floats:
    """Measures the arrivals of transfers, no two of which are between the same two racks.

    Args:
        network: Network of the transfers.
        transfers: The transfers.
        observed_paths: Observed paths.
        seconds: Length of the run.
        every: Time between observations, in seconds.

    Returns:
        A row for each observed path: the bytes of each interval.
    """
    endless = round(2 * seconds * LINE / 8)
    flows = [
        {
            "from": one.path[0],
            "to": one.path[1],
            "start": _time(one.start),
            "bytes": f"{one.size or endless}B",
        }
        for one in transfers
    ]
    pairs = [(one[0], other[0]) for one, other in observed_paths]
    run = packets.simulate(
        {
            "network": _network_fields(network),
            "tcp": _TCP,
            "workload": {"flows": flows},
            "horizon": _time(seconds),
            "sample": {"every": _time(every), "pairs": pairs},
        }
    )
    samples = run.samples()
    arrivals = samples["delivered_bytes"].to_numpy().reshape(-1, len(pairs))
    # A run may end before the last sample; no bytes arrive after its end.
    moments = round(seconds / every) + 1
    last = numpy.repeat(arrivals[-1:], max(0, moments - len(arrivals)), axis=0)
    whole = numpy.concatenate([arrivals[:moments], last]).astype(float)
    return numpy.diff(whole, axis=0).T


def estimate_rates(network: Network, trains: Sequence[Train]) -> Floats:
    """Rates that trains estimate, in bits per second. Trains with the same start are sent at once."""
    run = packets.simulate(
        {
            "network": _network_fields(network),
            "trains": [
                {
                    "from": one.path[0],
                    "to": one.path[1],
                    "start": _time(one.start),
                    "bursts": one.bursts,
                    "packets": one.packets,
                }
                for one in trains
            ],
            "horizon": "1h",
        }
    )
    return numpy.array(run.trains()["rate_bps"], dtype=float)


def _network_fields(network: Network) -> dict[str, Any]:
    return {
        "racks": network.racks,
        "hosts_per_rack": network.hosts_per_rack,
        "nic": f"{round(LINE)}bps",
        "limits": [
            {"host": host, "rate": f"{round(rate)}bps", "bucket": f"{network.bucket}B"}
            for host, rate in network.limits.items()
        ],
        "packet_rate": f"{round(network.link)}bps",
        "local_delay": "10us",
        "voq_capacity": _QUEUE,
        "inner_capacity": _QUEUE,
        "loss_capacity": _QUEUE,
    }


def _time(seconds: float) -> str:
    return f"{round(1e9 * seconds)}ns"
