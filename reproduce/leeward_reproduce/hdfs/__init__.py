"""HDFS as separate processes in a lab: NameNode, DataNodes, controller and agents, with real bytes.

`up` brings up a cluster on the network of a cluster file, and removes all of it. `load` writes files over
background traffic and measures them, `demo` shows two policies beside each other, and the experiments of
Sinbad on real bytes (`leeward_reproduce.sinbad.real`) run here.

The package belongs to the reproductions and not to `leeward.lab`: it builds the policy from the sources of
the repository, in `integrations/hdfs`, which an installed Leeward does not have.

| module | role |
| --- | --- |
| `class_path` | parts of a machine that HDFS needs; the jars, by Maven |
| `settings` | configuration files of HDFS |
| `processes` | processes, their logs and their ends |
| `machine` | the shape of a cluster; ports, memory and disks of this machine |
| `cluster` | NameNode and DataNodes |
| `observed` | a cluster with a controller, agents and helpers |
| `namenode` | state of the NameNode over HTTP |
| `worker`, `workers` | helpers at hosts: they write files and send background traffic |
| `relay` | ports of this machine that lead into the lab |
| `reports` | reports of agents that arrive late or never |
| `counters` | bytes on the links of racks and hosts |
| `load`, `outcome` | a run of writes and background traffic, and its figures |
| `stored` | files of a run, and a cache that evicts the oldest ones |
| `usage`, `processors` | decisions of the policy during a run, and the use of processors |
| `traces` | blocks that DataNodes wrote and read, by their logs |
| `circuits`, `memory`, `views` | a cluster in a lab with circuits: blocks in memory, and views of the lab |
| `dfsio` | Hadoop's benchmark in such a cluster |
| `demo` | `make hdfs-demo` |
| `__main__` | `make hdfs-lab`: a cluster until Ctrl-C |
"""

from leeward_reproduce.hdfs.class_path import missing
from leeward_reproduce.hdfs.machine import Shape
from leeward_reproduce.hdfs.observed import ObservedCluster, up
from leeward_reproduce.hdfs.processes import ProcessError
from leeward_reproduce.hdfs.settings import POLICIES

__all__ = ["POLICIES", "ObservedCluster", "ProcessError", "Shape", "missing", "up"]
