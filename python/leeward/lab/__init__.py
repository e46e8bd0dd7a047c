"""The lab: scenarios of the packet simulator on real kernels, on this machine.

Hosts are network namespaces, and a switch in this process carries their packets in real time. Time is
virtual: it runs slower than real time by the dilation, so that one machine carries the links of a
datacenter.

>>> from leeward import lab
>>> scenario = {
...     "network": {"racks": 3, "hosts_per_rack": 1},
...     "scheduler": {"name": "strobe"},
...     "workload": {"long": {"from": 0, "to": 1, "flows": 1}},
...     "horizon": "20ms",
... }
>>> result = lab.run(scenario, dilation=100)              # doctest: +SKIP
>>> result.run.utilization(0, 1), result.timing["packets"]["p99_s"]  # doctest: +SKIP
(0.41, 1.3e-06)

A lab without circuits has the network of any cluster file, in real time:

>>> cluster = {"racks": 4, "hosts_per_rack": 3, "nic": "100Mbps", "oversubscription": 3}
>>> with lab.up(cluster) as network:                          # doctest: +SKIP
...     network.run("r0h1", ["ping", "-c", "1", "r3h1"])

The lab requires root, TUN devices and iproute2. It removes everything that it made when it ends; `remove`
removes what a killed lab left.
"""

from leeward.lab.network import Machine, Network, command_prefix, machines, up
from leeward.lab.runs import BOUND, Comparison, LabRun, compare, default_dilation, run
from leeward.lab.state import Lab, labs, remove
from leeward.lab.timing import Trial, check

__all__ = [
    "BOUND",
    "Comparison",
    "Lab",
    "LabRun",
    "Machine",
    "Network",
    "Trial",
    "check",
    "command_prefix",
    "compare",
    "default_dilation",
    "labs",
    "machines",
    "remove",
    "run",
    "up",
]
