"""Counters of traffic that a Prometheus server has: pairs of metrics, with their units and speeds.

The known pairs are of snmp_exporter (`if_mib`) and node_exporter. Others are found by their names: two
metrics of octets or bytes that differ only in the word for the direction, as in OpenConfig's `in_octets` and
`out_octets`.
"""

import re
from collections.abc import Collection
from typing import NamedTuple


class Family(NamedTuple):
    """Counters of traffic of ports.

    Attributes:
        received: Metric of what a port receives.
        sent: Metric of what it sends.
        unit: Unit: `octets` or `bits`.
        width: Bits of the counters.
        speed: Metric of the speed of a port; empty without one.
        speed_unit: Unit of the speed.
    """

    received: str
    sent: str
    unit: str = "octets"
    width: int = 64
    speed: str = ""
    speed_unit: str = "Mbps"


KNOWN = (
    Family("ifHCInOctets", "ifHCOutOctets", speed="ifHighSpeed"),
    Family("ifHCInOctets", "ifHCOutOctets", speed="ifSpeed", speed_unit="bps"),
    Family("ifHCInOctets", "ifHCOutOctets"),
    Family(
        "node_network_receive_bytes_total",
        "node_network_transmit_bytes_total",
        speed="node_network_speed_bytes",
        speed_unit="B/s",
    ),
    Family("node_network_receive_bytes_total", "node_network_transmit_bytes_total"),
    Family("ifInOctets", "ifOutOctets", width=32, speed="ifHighSpeed"),
    Family("ifInOctets", "ifOutOctets", width=32, speed="ifSpeed", speed_unit="bps"),
    Family("ifInOctets", "ifOutOctets", width=32),
)
"""Known pairs, the better ones first."""
_WAYS = (
    ("receive", "transmit"),
    ("received", "transmitted"),
    ("received", "sent"),
    ("recv", "sent"),
    ("rx", "tx"),
    ("in", "out"),
    ("input", "output"),
    ("ingress", "egress"),
)
_AMOUNT = re.compile(r"octets|bytes|bits", re.IGNORECASE)
_NOT_TRAFFIC = re.compile(
    r"err|disc|drop|pkts|packets|mcast|multicast|bcast|broadcast|unicast|rate|_bps|per_sec|avg|fifo|queue|memory"
    r"|disk|fs_|http|container_|_bucket$|_sum$|_count$",
    re.IGNORECASE,
)
"""Words of metrics that are not the whole traffic of a port, or not a counter."""


def families(metrics: Collection[str]) -> list[Family]:
    """Pairs of counters among the names of metrics, the better ones first. Each pair occurs once."""
    found: dict[tuple[str, str], Family] = {}
    for family in KNOWN:
        wanted = {family.received, family.sent, *([family.speed] if family.speed else [])}
        if wanted <= set(metrics):
            found.setdefault((family.received, family.sent), family)
    for name in sorted(metrics):
        if not _AMOUNT.search(name) or _NOT_TRAFFIC.search(name):
            continue
        for first, second in _WAYS:
            pattern = rf"(?<![a-z]){first}(?![a-z])"
            sent = re.sub(pattern, second, name, flags=re.IGNORECASE)
            if sent != name and sent in metrics:
                unit = "octets" if re.search("octets|bytes", name, re.IGNORECASE) else "bits"
                found.setdefault((name, sent), Family(name, sent, unit))
                break
    return list(found.values())
