"""Leeward places work on the sheltered side of the network.

A `Cluster` is what a cluster file describes: hosts, racks, pods, links and devices. `simulate` tries policies
on a scenario, `place_replicas` decides for one block, `place_tasks` for an app, `migrate` which tasks leave
hot racks; `leeward.fluid` simulates flows; a `Client` asks a controller. Tables are Arrow
tables. Input that is refused raises `InputError`, which says where it is wrong and what was expected.

    >>> import leeward
    >>> cluster = leeward.Cluster({"racks": 2, "hosts_per_rack": 4, "nic": "1Gbps", "oversubscription": 4})
    >>> cluster.path("r0h0", "r1h3")
    [('r0h0:egress', 8.0), ('r0:uplink', 8.0), ('r1:downlink', 8.0), ('r1h3:ingress', 8.0)]
"""

from leeward import fluid
from leeward._native import Cluster, Run, Scenario, __version__
from leeward.client import Client, ProblemError, RefusedError, UnreachableError
from leeward.errors import InputError
from leeward.placement import migrate, place_replicas, place_tasks, policies
from leeward.simulation import read_scenario, simulate

__all__ = [
    "Client",
    "Cluster",
    "InputError",
    "ProblemError",
    "RefusedError",
    "Run",
    "Scenario",
    "UnreachableError",
    "__version__",
    "fluid",
    "migrate",
    "place_replicas",
    "place_tasks",
    "policies",
    "read_scenario",
    "simulate",
]
