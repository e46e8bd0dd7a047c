"""A small cluster with its loads and a scenario, for tests of policies of the user."""

import json
from pathlib import Path
from typing import Any

import leeward
from leeward.policy import BlockRequest, View

CLUSTER = {
    "racks": 4,
    "hosts_per_rack": 3,
    "nic": "1Gbps",
    "oversubscription": 3,
    "devices": [{"read": "50MB/s", "write": "50MB/s", "capacity": "1TiB"}],
}
HOSTS = 12
BLOCK = 256 * 2**20
LOADS = {f"r{rack}:{way}": 5e8 for rack in range(4) for way in ("uplink", "downlink")}
LOADS |= {f"r{at // 3}h{at % 3}:{way}": 4e8 for at in range(HOSTS) for way in ("egress", "ingress")}
LOADS |= {"r2:downlink": 1e8, "r2h1:ingress": 1e8}
"""Loads of all links in bit/s; the links into rack 2 and into its host 1 carry least."""


def write_loads(folder: Path) -> Path:
    """Writes the loads as a telemetry file."""
    path = folder / "loads.csv"
    path.write_text("link,load_bps\n" + "".join(f"{link},{load}\n" for link, load in LOADS.items()))
    return path


def write_scenario(folder: Path) -> Path:
    """Writes a scenario of jobs that write files of one or two blocks, 18 in all, with background flows."""
    jobs = [f"job{i}\t{5 + 4 * i}\t0\t0\t0\t{(i % 2 + 1) * BLOCK}" for i in range(12)]
    flows = [f"{10 + i},r{i % 4}h0,r{(i + 1) % 4}h1,50000000" for i in range(20)]
    (folder / "cluster.yaml").write_text(json.dumps(CLUSTER))
    (folder / "jobs.tsv").write_text("\n".join(jobs) + "\n")
    (folder / "flows.csv").write_text("\n".join(["t_arrival_s,src,dst,size_bytes", *flows]) + "\n")
    path = folder / "scenario.yaml"
    path.write_text(
        "cluster: cluster.yaml\nhorizon: 2min\npolicies: [uniform]\n"
        "workloads: [{swim: {file: jobs.tsv}}, {flows: {file: flows.csv}}]\n"
    )
    return path


def write_cell(folder: Path) -> Path:
    """Writes a scenario of tasks of a scheduler."""
    cluster = {"racks": 6, "hosts_per_rack": 8, "nic": "10Gbps", "rack_link": "10Gbps", "cpus": 16}
    (folder / "cell-cluster.yaml").write_text(json.dumps(cluster | {"memory": "64GiB"}))
    path = folder / "cell.yaml"
    path.write_text(
        "cluster: cell-cluster.yaml\nhorizon: 30min\nsample: 5min\npolicies: [borg]\n"
        "workloads: [{cell: {network: 0.65}}]\ntelemetry: {interval: 30s}\n"
    )
    return path


def place(policy: Any, **arguments: Any) -> dict[str, Any]:
    """Places a block that host 0 writes."""
    return dict(leeward.place_replicas(CLUSTER, "256MiB", writer="r0h0", policy=policy, **arguments))


def spread(request: BlockRequest, view: View) -> list[int]:
    """The first host of the first racks."""
    return [3 * rack for rack in range(request.count)]


def coolest(request: Any, view: View) -> Any:
    """The rate left into each host, as its score."""
    return view.residual_in


CALLS: list[tuple[int, int]] = []
"""Seed and count of each call of `Counting`."""


class Counting:
    """Counts its requests, from a setting on, and places them on racks in turn."""

    def __init__(self, start: int = 0, seed: int = -1) -> None:
        self.count = start
        self.seed = seed

    def place(self, request: BlockRequest, view: View) -> list[int]:
        """Hosts of the next racks."""
        self.count += 1
        CALLS.append((self.seed, self.count))
        return [3 * ((self.count + step) % 4) for step in range(request.count)]
