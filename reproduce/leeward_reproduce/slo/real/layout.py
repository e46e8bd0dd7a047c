"""The cluster of the bed, and texts that its programs read. No function reads or changes the machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leeward._quantities import read_bytes

DISK = "disk"
"""Name of the disk of a server."""
NFS_PORT, MOUNT_PORT = 2049, 20048
"""Ports of nfs-ganesha."""
PROXY_PORT = 12_049
"""Port of the enforcer for the first volume; the following volumes have the following ports."""
LEVELS = 7
"""Priorities of switches for SLOs. The last class, for best effort, is not counted."""
SIZES = (4096, 65_536, 262_144, 1 << 20)
"""Sizes of requests in the table of a device, in bytes."""
_FRAME = 1514
_BURST = 16 << 10
"""Bytes that may cross a link at once, as elsewhere in a lab."""


@dataclass(frozen=True)
class Shape:
    """Hosts and disks of a bed. Rates are a fifth of the thesis', so that one machine carries them."""

    clients: int = 2
    servers: int = 1
    link: str = "200Mbps"
    """Link of each host, in each direction."""
    disk: str = "40MB/s"
    """Rate of each server's disk in bytes, for reads and for writes."""
    disks: tuple[str, ...] = ()
    """Rates of the disks of single servers in their order, in place of `disk`."""
    disk_size: str = "1GiB"
    volumes: tuple[str, ...] = ("vol",)
    """Volumes of each server. A client with several workloads at a server needs a volume for each."""

    @property
    def client_names(self) -> list[str]:
        """Names of the clients."""
        return [f"c{number}" for number in range(self.clients)]

    @property
    def server_names(self) -> list[str]:
        """Names of the servers."""
        return [f"s{number}" for number in range(self.servers)]

    def cluster(self) -> dict[str, Any]:
        """The cluster in the fields of a cluster file: one rack, whose own link limits nothing."""
        rates = self.disks or (self.disk,) * self.servers
        disks = [{"name": DISK, "read": rate, "write": rate, "capacity": self.disk_size} for rate in rates]
        hosts = [
            *({"name": name, "devices": []} for name in self.client_names),
            *({"name": name, "devices": [disk]} for name, disk in zip(self.server_names, disks, strict=True)),
        ]
        return {
            "name": "bed",
            "racks": [{"name": "rack", "hosts": hosts}],
            "nic": self.link,
            "rack_link": "1Tbps",
            "priorities": LEVELS + 1,
        }

    def disk_rate(self, server: str) -> int:
        """Rate of a server's disk, in bytes per second."""
        rate = self.disks[self.server_names.index(server)] if self.disks else self.disk
        return read_bytes("disk", rate.removesuffix("/s"))

    def export(self, volume: str) -> str:
        """Path of a volume as a server exports it."""
        return f"/srv/{volume}"

    def proxy_port(self, volume: str) -> int:
        """Port of a volume at the enforcer of a server."""
        return PROXY_PORT + self.volumes.index(volume)

    def device(self, sizes: Sequence[int] = SIZES, outstanding: int = 2) -> dict[str, Any]:
        """Device file of a disk: its throttle counts bytes alone, so a request takes the time of its bytes.

        Args:
            sizes: Sizes of requests in the table, in bytes.
            outstanding: Number of requests at the disk at once.
        """
        rate = read_bytes("disk", self.disk.removesuffix("/s"))
        table = [{"size_bytes": size, "read_iops": rate / size, "write_iops": rate / size} for size in sizes]
        return {"name": "throttled disk", "table": table, "outstanding": outstanding}


def switch_port(device: str, rate_bps: int, queue: int = 1_514_000) -> str:
    """Batch of `tc` for a port of a switch with strict priorities: one for each level, and for best effort.

    Args:
        device: Device of the port; its qdisc is the default one.
        rate_bps: Rate of its link in bits per second.
        queue: Bytes that may wait in each priority.
    """
    rates = f"rate {rate_bps}bit ceil {rate_bps}bit burst {_BURST} cburst {_BURST}"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default {LEVELS + 1}",
        f"class add dev {device} parent 1: classid 1:ff htb {rates}",
    ]
    for level in range(LEVELS + 1):
        # A class has a guarantee, which HTB serves before all priorities. This one is a packet in minutes.
        rates = f"rate 8bit ceil {rate_bps}bit burst {_FRAME} cburst {_BURST} prio {level} quantum {_FRAME}"
        lines += [
            f"class add dev {device} parent 1:ff classid 1:{level + 1} htb {rates}",
            f"qdisc add dev {device} parent 1:{level + 1} bfifo limit {queue}",
        ]
    return "\n".join(lines) + "\n"


def switch_marks(device: str) -> str:
    """Program of `nft` that puts packets of a port into the class of their DSCP: cs7 is first."""
    classes = ", ".join(f"cs{LEVELS - level} : 1:{level + 1}" for level in range(LEVELS))
    return (
        f"table netdev bed-{device} {{\n"
        f"  chain out {{\n"
        f'    type filter hook egress device "{device}" priority 0\n'
        f"    meta priority set ip dscp map {{ {classes} }}\n"
        f"  }}\n"
        f"}}\n"
    )
