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

A lab with circuits stands for programs, which see virtual time:

>>> with lab.stand_up(scenario) as circuits:                  # doctest: +SKIP
...     circuits.run("r0h0", ["ping", "-c", "1", "r2h0"])

The lab requires root, TUN devices and iproute2. It removes everything that it made when it ends; `remove`
removes what a killed lab left.
"""

from leeward.lab.checks import LADDER, Check, LabCheck, Trial, check, check_network, check_programs, climb
from leeward.lab.executables import is_static
from leeward.lab.machines import Machine, Machines, command_prefix, machines
from leeward.lab.network import Network, up
from leeward.lab.runs import BOUND, Comparison, LabRun, compare, default_dilation, run
from leeward.lab.standing import StandingLab, stand, stand_up, view
from leeward.lab.state import Failure, Lab, failures, labs, remove

__all__ = [
    "BOUND",
    "LADDER",
    "Check",
    "Comparison",
    "Failure",
    "Lab",
    "LabCheck",
    "LabRun",
    "Machine",
    "Machines",
    "Network",
    "StandingLab",
    "Trial",
    "check",
    "check_network",
    "check_programs",
    "climb",
    "command_prefix",
    "compare",
    "default_dilation",
    "failures",
    "is_static",
    "labs",
    "machines",
    "remove",
    "run",
    "stand",
    "stand_up",
    "up",
    "view",
]
