"""Leeward places work on the sheltered side of the network.

A `Cluster` holds the hosts, racks, pods, links and devices of a cluster file. `simulate` runs policies on a
scenario. `place_replicas` decides for one block, `place_tasks` for an app; `reevaluate` says if a running app
should move, and `migrate` chooses tasks that should leave hot racks. A `Session` decides for many, and keeps
them in mind. `leeward.fluid` simulates flows. A `Client` talks to a controller. Tables are Arrow tables.
Invalid input raises `InputError`, which names the place and the expected value.

    >>> import leeward
    >>> cluster = leeward.Cluster({"racks": 2, "hosts_per_rack": 4, "nic": "1Gbps", "oversubscription": 4})
    >>> cluster.path("r0h0", "r1h3")
    [('r0h0:egress', 8.0), ('r0:uplink', 8.0), ('r1:downlink', 8.0), ('r1h3:ingress', 8.0)]
"""

from leeward import fluid, policy
from leeward._native import Cluster, Run, Scenario, __version__
from leeward.client import Client, Fallback, ProblemError, RefusedError, UnreachableError
from leeward.errors import InputError
from leeward.placement import migrate, place_replicas, place_tasks, policies, reevaluate
from leeward.session import Session
from leeward.simulation import read_scenario, simulate

__all__ = [
    "Client",
    "Cluster",
    "Fallback",
    "InputError",
    "ProblemError",
    "RefusedError",
    "Run",
    "Scenario",
    "Session",
    "UnreachableError",
    "__version__",
    "fluid",
    "migrate",
    "place_replicas",
    "place_tasks",
    "policies",
    "policy",
    "read_scenario",
    "reevaluate",
    "simulate",
]
