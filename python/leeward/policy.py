"""Placement policies of your own: functions and classes that choose hosts.

A policy is a function of a request and a `View` of the network. It returns one of these:

- hosts, one for each of `request.count`, by number or by name, in any sequence or array of whole numbers;
- scores of all hosts, as floats, more being better: the hosts with the highest scores which the constraints
  of the request allow are chosen, and hosts with NaN are left out;
- None, to decline the request.

>>> import leeward
>>> def coolest(request, view):
...     return view.residual_in
>>> cluster = {"racks": 4, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 2}
>>> leeward.place_replicas(cluster, "64MiB", writer="r1h0", policy=coolest)["hosts"][0]
'r1h0'

Settings are keyword arguments:

>>> def near(request, view, racks=2):
...     return -abs(view.rack_of // racks - (request.writer or 0) // racks).astype(float)
>>> leeward.policy.own(near, racks=3).label
'near:racks=3'

A class has `place(request, view)`, or `place_batch(requests, view)` for blocks that are placed together, or
both. Its settings are arguments of `__init__`, which also gets the seed of the run if it has a parameter
`seed`. Each run has an instance of its own. For random choices, `request.seed` is a function of the run's
seed and of the request.

The view shows what a policy may know: capacities and loads that the ledger believes, with the load that was
placed and is not measured yet, and never the true state of a simulation. `view.add` and its like change a
private what-if, which ends with the call. So does the view; its arrays stay.

Each answer is checked by the constraints that built-in policies keep. A wrong answer raises an `InputError`
that names the policy and the request. Exceptions of the policy end the run.
"""

from leeward._native import AppRequest, BlockRequest, RequestBatch, View
from leeward._policies import OwnPolicy, Policies, Policy, own

__all__ = [
    "AppRequest",
    "BlockRequest",
    "OwnPolicy",
    "Policies",
    "Policy",
    "RequestBatch",
    "View",
    "own",
]
