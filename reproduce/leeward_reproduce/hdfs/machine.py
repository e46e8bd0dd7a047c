"""Parts of this machine that a cluster uses: its shape in the lab, ports, memory and disks."""

import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward._quantities import bytes_text

MEMORY_FOLDER = Path("/dev/shm")
"""File system in memory, for clusters without disks."""
MEMORY_BYTES = 4 << 30
"""Bytes that it must have free."""


@dataclass(frozen=True)
class Shape:
    """Racks, links and blocks of a cluster."""

    racks: int = 4
    hosts_per_rack: int = 3
    nic: str = "200Mbps"
    rack_link: str = "100Mbps"
    """Uplink and downlink of each rack. A processor forwards about 500 Mbit/s between racks."""
    block: int = 16 << 20
    """Size of full blocks in bytes."""
    in_memory: bool = False
    """True if DataNodes store their blocks in memory instead of on disks."""

    def cluster(self) -> dict[str, Any]:
        """The cluster in the fields of a cluster file. Disks are too fast to limit a block."""
        disks = {"devices": [{"read": "400MB/s", "write": "400MB/s", "capacity": "1GiB"}]}
        return {
            "name": "hdfs",
            "racks": self.racks,
            "hosts_per_rack": self.hosts_per_rack,
            "nic": self.nic,
            "rack_link": self.rack_link,
            **({} if self.in_memory else disks),
        }


def rack_number(host: str) -> int:
    """Number of the rack of a host, whose name has the default form, such as `r0h3`."""
    return int(host.partition("h")[0].removeprefix("r"))


def listen(port: int) -> socket.socket:
    """A port of this machine: the given one if it is free, or another."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def url_of(port: socket.socket) -> str:
    """Address of a port of this machine."""
    return f"http://127.0.0.1:{port.getsockname()[1]}"


def check_memory() -> None:
    """Checks that the file system in memory is one, and has room.

    Raises:
        OSError: It is not, or has not.
    """
    mounted = any(line.split()[1:3] == [str(MEMORY_FOLDER), "tmpfs"] for line in _mounts())
    free = shutil.disk_usage(MEMORY_FOLDER).free if mounted else 0
    if free < MEMORY_BYTES:
        problem = f"has {bytes_text(free)} free" if mounted else "is no file system in memory"
        raise OSError(f"{MEMORY_FOLDER} {problem}; HDFS in memory needs {bytes_text(MEMORY_BYTES, None)}")


def device_of(folder: str) -> str | None:
    """Name of the device whose file system is mounted at a folder; None if none is."""
    mounts = [line.split()[:2] for line in _mounts()]
    return next((Path(device).name for device, place in mounts if place == folder), None)


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
