"""What an operator checks of an imported topology: sizes of racks, odd ones out, and what looks wrong."""

from collections import Counter

from leeward._quantities import counted, rate_text, some
from leeward.importers.topology import Topology

GBPS = 10**9
USUAL = (1, 2.5, 5, 10, 25, 40, 50, 56, 100, 200, 400, 800)
"""Usual rates of a port, in Gbps."""
PORTS = (1, 2, 3, 4, 6, 8, 16)
"""Usual numbers of equal ports of a host."""
FEW = 3
"""A size is usual if at least one of this number of racks has it."""


def sizes(topology: Topology) -> str:
    """The usual size of a rack, and the racks of other sizes."""
    counts = {rack: len(hosts) for rack, hosts in topology.racks().items()}
    by_size = Counter(counts.values())
    usual, number = min(by_size.items(), key=lambda item: (-item[1], -item[0]))
    others = [f"{rack} has {size:,}" for rack, size in counts.items() if size != usual]
    if number * FEW < len(counts):
        least, most = min(by_size), max(by_size)
        return f"racks have {least:,} to {most:,} hosts"
    hosts = counted(usual, "host")
    if not others:
        return f"each rack has {hosts}"
    return f"{number:,} of {len(counts):,} racks have {hosts}; {some(others, 4)}"


def doubts(topology: Topology) -> list[str]:
    """What looks wrong, a sentence each."""
    racks = topology.racks()
    found = []
    if len(racks) == 1 and len(topology.hosts) > 1:
        hint = {
            "lldp": "does a switch of another network join them? --tors names the top-of-rack switches",
            "kubernetes": "does the label name a larger unit? --rack-label is that of racks",
            "netbox": "does a switch of another network join them? --tors names the top-of-rack switches",
            "containerlab": "does a bridge join them? --tors names the top-of-rack switches",
        }.get(topology.form, "are racks missing in the file?")
        found.append(f"one rack has all {len(topology.hosts):,} hosts: {hint}")
    if len(racks) == len(topology.hosts) > 1:
        found.append("every rack has a single host: the names of racks may be those of hosts")
    strange = [host for host in topology.hosts if host.nic_bps is not None and not _is_usual(host.nic_bps)]
    if strange:
        names = some([host.name for host in strange])
        rate = rate_text(strange[0].nic_bps)
        found.append(f"{names}: {rate} a host is no usual rate: is a port for management among the ports?")
    return found


def _is_usual(bps: int) -> bool:
    return any(bps == rate * ports * GBPS for rate in USUAL for ports in PORTS) or bps < GBPS
