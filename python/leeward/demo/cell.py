"""Simulated cluster of `leeward serve --demo`: its size, its jobs, the loads of its links."""

from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

from leeward._native import Cluster

Numbers = NDArray[numpy.float64]
Places = NDArray[numpy.int64]


@dataclass(frozen=True)
class Cell:
    """A cluster and its jobs.

    The defaults are those of the workload `cell` of scenarios, with the racks and the load of the
    reproduction of Hotspots. Two defaults differ. Batch jobs run for an hour and services for a day, so that
    a viewer sees changes. Jobs are smaller, so that a few of them do not decide a run.

    Attributes:
        uplinks: Number of racks by factor on the uplink capacity that `oversubscription` gives. Hosts were
            upgraded without their uplinks (Hotspots section 3.3), so that bandwidth per processor varies by
            a factor of two.
        hosts_per_rack: Number of hosts of a rack.
        pods: Number of pods of the racks.
        nic_bps: Capacity of a host's link in each direction.
        oversubscription: Rate of all hosts of a rack divided by the capacity of its uplink.
        cpus: Processors of a host.
        processors: Average share of all processors that tasks request.
        tolerant: Share of the requested processors in batch jobs, whose tasks may move.
        network: Average load that tasks send out of racks, as a share of the capacity of all uplinks.
        spread: Standard deviation of the logarithm of bandwidth per processor over jobs (Hotspots, figure 7:
            a tail of more than ten times the median).
        uneven: Standard deviation of the logarithm of a job's received load divided by its sent load.
        restless: Standard deviation of the logarithm of a task's rate over time; half of its variance is
            common to its job.
        calm_s: Correlation time of a rate.
        service_s: Average duration of services.
        batch_s: Average duration of batch jobs.
        lasting: Standard deviation of the logarithm of both durations.
        most_tasks: Greatest number of tasks of a job; sizes are log-uniform.
    """

    uplinks: tuple[tuple[int, float], ...] = ((14, 0.7), (20, 1.0), (14, 1.4))
    hosts_per_rack: int = 20
    pods: int = 4
    nic_bps: float = 10e9
    oversubscription: float = 5.0
    cpus: int = 32
    processors: float = 0.7
    tolerant: float = 0.5
    network: float = 0.6
    spread: float = 1.2
    uneven: float = 0.5
    restless: float = 0.5
    calm_s: float = 600.0
    service_s: float = 86_400.0
    batch_s: float = 3_600.0
    lasting: float = 1.0
    most_tasks: int = 40

    @property
    def racks(self) -> int:
        """Number of racks."""
        return sum(count for count, _ in self.uplinks)

    @property
    def uplink_bps(self) -> float:
        """Capacity of an uplink whose factor is 1."""
        return self.hosts_per_rack * self.nic_bps / self.oversubscription

    @property
    def cluster(self) -> dict[str, Any]:
        """Content of its cluster file."""
        return {
            "name": "demo",
            "racks": [
                {"count": count, "link": f"{part * self.uplink_bps:.0f}bps"} for count, part in self.uplinks
            ],
            "hosts_per_rack": self.hosts_per_rack,
            "pods": self.pods,
            "nic": f"{self.nic_bps / 1e9:g}Gbps",
            "pod_oversubscription": 1,
            "cpus": self.cpus,
        }

    @property
    def per_processor_bps(self) -> float:
        """Average rate that a processor sends out of its rack, over jobs."""
        uplinks_bps = self.uplink_bps * sum(count * part for count, part in self.uplinks)
        return self.network * uplinks_bps / (self.processors * self.racks * self.hosts_per_rack * self.cpus)


@dataclass(frozen=True)
class Network:
    """Links of a cluster of equal racks, and the loads on them.

    Attributes:
        racks: Names of the racks.
        hosts: Names of the hosts, rack by rack.
        links: Names of the links: hosts' egress, then ingress; racks' up, then down; pods' up, then down.
        capacity_bps: Capacity of each link.
        leaves_pod: Share of the traffic out of a rack that leaves its pod, if all other racks get equal
            parts.
    """

    racks: list[str]
    hosts: list[str]
    links: list[str]
    capacity_bps: Numbers
    leaves_pod: float
    rack_of: Places
    pod_of: Places
    at: dict[str, int] = field(repr=False)
    """Numbers of hosts by their names."""

    @staticmethod
    def of(cluster: Cluster) -> "Network":
        """Network of a cluster with pods."""
        rows = cluster.links().to_pylist()
        hosts = cluster.host_table().to_pylist()
        racks = cluster.rack_table().to_pylist()
        pods = list(dict.fromkeys(rack["pod"] for rack in racks))
        rack_number = {rack["rack"]: number for number, rack in enumerate(racks)}
        owners = {"host-ToR": ("host", hosts), "ToR-pod": ("rack", racks), "pod-core": ("pod", pods)}
        row_of_link = {}
        for row in rows:
            row_of_link[row["cross_section"], row["direction"], row[owners[row["cross_section"]][0]]] = row
        link_rows = [
            row_of_link[section, way, owner if isinstance(owner, str) else owner[kind]]
            for section, (kind, owner_rows) in owners.items()
            for way in ("up", "down")
            for owner in owner_rows
        ]
        return Network(
            racks=[rack["rack"] for rack in racks],
            hosts=[host["host"] for host in hosts],
            links=[row["name"] for row in link_rows],
            capacity_bps=numpy.array([row["capacity_bps"] for row in link_rows], dtype=numpy.float64),
            leaves_pod=(len(racks) - len(racks) / len(pods)) / max(len(racks) - 1, 1),
            rack_of=numpy.array([rack_number[host["rack"]] for host in hosts]),
            pod_of=numpy.array([pods.index(rack["pod"]) for rack in racks]),
            at={host["host"]: number for number, host in enumerate(hosts)},
        )

    def demands_bps(self, hosts: Places, egress_bps: Numbers, ingress_bps: Numbers) -> Numbers:
        """Load of tasks on each link, as if capacities were unlimited.

        Args:
            hosts: Host of each task, by number.
            egress_bps: Rate of each task out of its rack.
            ingress_bps: Rate of each task from outside of its rack.
        """
        parts = []
        for rates in (egress_bps, ingress_bps):
            by_host = numpy.bincount(hosts, rates, len(self.hosts))
            by_rack = numpy.bincount(self.rack_of, by_host, len(self.racks))
            by_pod = numpy.bincount(self.pod_of, by_rack) * self.leaves_pod
            parts.append((by_host, by_rack, by_pod))
        return numpy.concatenate([way for kind in zip(*parts, strict=True) for way in kind])

    def of_racks(self, values: Numbers) -> tuple[Numbers, Numbers]:
        """Values of the racks' uplinks and of their downlinks."""
        first, count = 2 * len(self.hosts), len(self.racks)
        return values[first : first + count], values[first + count : first + 2 * count]
