"""UTP in Kubernetes: kube-scheduler with Leeward's plugin and evictor, and as it is, under the same tasks.

The API server, etcd, kube-scheduler, the plugin, the evictor and the service are real, and talk over HTTP.
The nodes, the traffic of pods and the links of racks are simulated, because a cell has a thousand hosts. The
simulator runs the same list of tasks under the policies that correspond to the parts.

| module | role |
| --- | --- |
| `scenario` | the cell of a run: nodes and tasks, as files |
| `program` | the command that runs the control plane; its parts and its build |
| `service` | the service beside a run |
| `run` | a run, and the steps that it prints |
| `measures` | the table `cell` of a run, as the simulator makes it |
| `pairs` | the runs of a seed, in the simulator and in Kubernetes |
| `figures` | rows and pictures of tables 2 and 3 |
| `perform` | `leeward reproduce hotspots --kubernetes` |
| `demo` | `make kubernetes-demo` |
"""

from leeward_reproduce.hotspots.kubernetes.program import missing

__all__ = ["missing"]
