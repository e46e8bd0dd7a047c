"""Differences between the topology of a NameNode and that of the controller.

The rules are those of the policy in the NameNode. A DataNode is the host of the controller with its name, or
else with its IP address. The host's rack must have the last name of the DataNode's location, or else its last
names joined by dots: `rack7` or `row1.rack7` for `/row1/rack7`. The policy knows the loads of no other
DataNode.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from leeward.hdfs.namenode import DataNode


@dataclass(frozen=True)
class Differences:
    """Differences of two topologies.

    Attributes:
        hosts: Host of the controller for each DataNode that the policy knows, by the name of the DataNode.
        unknown: DataNodes whose hosts the controller does not have.
        moved: DataNodes whose hosts are in another rack of the controller: name, location, and that rack.
        absent: Hosts of the controller without a live DataNode.
    """

    hosts: dict[str, str]
    unknown: list[str]
    moved: list[tuple[str, str, str]]
    absent: list[str]

    def is_of_other_cluster(self) -> bool:
        """True if the policy knows fewer than half of the DataNodes: then it uses no load at all."""
        others = len(self.unknown) + len(self.moved)
        return others > len(self.hosts)


def differences(datanodes: Iterable[DataNode], racks: Mapping[str, str]) -> Differences:
    """Compares live DataNodes with the hosts of the controller, of which `racks` has the rack of each."""
    found = Differences({}, [], [], [])
    names = set(racks.values())
    live: set[str] = set()
    for node in datanodes:
        host = next((name for name in (node.name, node.address) if name in racks), None)
        if host is None:
            found.unknown.append(node.name)
            continue
        live.add(host)
        if racks[host] == _rack(node.rack, names):
            found.hosts[node.name] = host
        else:
            found.moved.append((node.name, node.rack, racks[host]))
    found.absent.extend(sorted(host for host in racks if host not in live))
    return found


def _rack(location: str, names: Set[str]) -> str | None:
    """Rack of the controller at a location: the shortest of the names that the location can have there.

    An import names racks by their last names, and racks that share one by their whole locations.
    """
    parts = location.strip("/").split("/")
    candidates = (".".join(parts[-count:]) for count in range(1, len(parts) + 1))
    return next((name for name in candidates if name in names), None)
