"""Runs an app on hosts that a tenant rents, without rights in the network: the closed loop of Choreo.

Choreo measures the network between the hosts, places the tasks, and re-evaluates the placement while the app
runs (sections 2.2 to 2.4). Here a helper on each host, started through `ssh` or in a network namespace, sends
the app's transfers or starts its commands.

    >>> from leeward import tenant
    >>> hosts = tenant.listed(["vm0=10.0.0.2", "vm1=10.0.0.3"], "ssh {name}", cpus="4")
    >>> tenant.run("app.yaml", hosts, policies=["choreo", "random"])["runs"]  # doctest: +SKIP
"""

from leeward.tenant.execution import Execution
from leeward.tenant.fleet import Fleet, HostError
from leeward.tenant.hosts import Host, lab_hosts, listed, read_hosts
from leeward.tenant.network import Survey, measure, start_listeners
from leeward.tenant.runs import run

__all__ = [
    "Execution",
    "Fleet",
    "Host",
    "HostError",
    "Survey",
    "lab_hosts",
    "listed",
    "measure",
    "read_hosts",
    "run",
    "start_listeners",
]
