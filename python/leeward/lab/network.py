"""Labs without circuits: the network of a cluster file, as namespaces on this machine."""

from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any

from leeward import _native
from leeward._native import Cluster
from leeward._quantities import read_bytes, read_rate
from leeward.errors import InputError
from leeward.lab.machines import Machine, Machines

MOST_SCALE = 1_000_000


class Network(Machines):
    """The network of a cluster file that `up` brought up. A `with` block removes it at its end."""

    def __init__(self, native: _native.LabNetwork) -> None:
        """Wraps a network of this process; `up` makes one."""
        self._native = native
        values = native.values()
        super().__init__(values["name"], [Machine(**machine) for machine in values["machines"]])
        self.notes: list[str] = values["notes"]
        """What the user should know of the network."""

    def limit(self, link: str, rate: str, *, queue: str | None = None, burst: str | None = None) -> None:
        """Changes the rate of one direction of a link. The scale of the lab divides it.

        Args:
            link: Name of the link: `r3h1:egress`, `r3h1:ingress`, `r3:uplink`, `p0:downlink`.
            rate: Rate; one that no machine carries, such as `1Tbps`, removes the limit.
            queue: Bytes that may wait for the link; by default those of the lab.
            burst: Bytes that may cross the link at once; by default those of the lab.

        Raises:
            InputError: There is no such link, or a quantity is invalid.
            OSError: A program of iproute2 failed.
        """
        sizes = (_bytes("queue", queue), _bytes("burst", burst))
        self._native.limit(link, read_rate("rate", rate), *sizes)

    def keep(self) -> None:
        """Leaves the lab up when this process ends, until `leeward.lab.remove` or `leeward lab down`."""
        self._native.keep()

    def down(self) -> None:
        """Removes the lab; ends the programs in it.

        Raises:
            OSError: A part cannot be removed.
        """
        self._native.down()

    def __enter__(self) -> "Network":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.down()


def up(
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    name: str | None = None,
    scale: int = 1,
    queue: str | None = None,
    burst: str | None = None,
    disk_size: str | None = None,
    progress: Callable[[float], object] | None = None,
) -> Network:
    """Brings up the network of a cluster file: hosts, racks and pods as namespaces, with the rates of links.

    The lab belongs to this process: `leeward lab down` removes it after the process was killed.

    >>> from leeward import lab
    >>> cluster = {"racks": 4, "hosts_per_rack": 3, "nic": "100Mbps", "oversubscription": 3}
    >>> with lab.up(cluster) as network:                      # doctest: +SKIP
    ...     print(network.run("r0h1", ["ping", "-c", "1", "r3h1"]).stdout)

    Args:
        cluster: Argument of `leeward.Cluster`.
        name: Name of the lab. By default it has the id of this process.
        scale: Number by which all rates of links and disks are divided.
        queue: Bytes that may wait for a link; by default 1514 kB.
        burst: Bytes that may cross a link at once; by default 16 KiB, and more above 600 Mb/s.
        disk_size: Largest size of a disk; by default 1 GiB. A disk takes space only as it is written.
        progress: Called with the completed share.

    Raises:
        InputError: The cluster is invalid, or has what namespaces cannot have.
        OSError: No root, a program is missing or failed, or a lab of this name is up.
    """
    if not 1 <= scale <= MOST_SCALE:
        raise InputError.about("scale", f"{scale}: must be 1 to {MOST_SCALE}")
    sizes = (_bytes("queue", queue), _bytes("burst", burst), _bytes("disk_size", disk_size))
    return Network(_native.LabNetwork(Cluster(cluster), name, scale, *sizes, progress))


def _bytes(argument: str, text: str | None) -> int | None:
    return None if text is None else read_bytes(argument, text)
