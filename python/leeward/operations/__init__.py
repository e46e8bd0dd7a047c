"""Operations of storage over TCP: reads and writes of chunks, and queries of them, on the racks of a cluster.

A scenario has jobs. A job's workers compute and have operations, whose bytes cross the ports of hosts and
racks packet by packet. A run has the latency of each operation with its part on the network, and the traffic
of racks' links, which `leeward impact` joins (Hotspots, section 4).

>>> from leeward import operations
>>> run = operations.simulate({
...     "cluster": {"racks": 2, "hosts_per_rack": 4, "nic": "10Gbps", "rack_link": "3Gbps"},
...     "media": [{"name": "hdd", "read": "600MB/s", "write": "500MB/s", "access": "8ms"}],
...     "operations": [
...         {"name": "read", "kind": "read", "medium": "hdd", "size": ["100KB", "1MB"], "servers": "r0"},
...     ],
...     "jobs": [{"name": "reads", "rate": 100, "hosts": "r1", "steps": [{"operation": "read"}]}],
...     "horizon": "1s",
... })
>>> run.totals()["timeouts"]
0
"""

from leeward._native import OperationsRun, OperationsScenario
from leeward.operations.logs import latencies, queries, stages, telemetry
from leeward.operations.simulation import read, simulate
from leeward.operations.summary import summary
from leeward.operations.tables import TABLES, tables

__all__ = [
    "TABLES",
    "OperationsRun",
    "OperationsScenario",
    "latencies",
    "queries",
    "read",
    "simulate",
    "stages",
    "summary",
    "tables",
    "telemetry",
]
