"""The packet simulator: hosts that send through a switch of packets and circuits, packet by packet.

>>> from leeward import packets
>>> run = packets.simulate({
...     "network": {"racks": 4, "hosts_per_rack": 2},
...     "scheduler": {"name": "strobe"},
...     "workload": {"flows": [{"from": [0, 0], "to": [1, 0], "bytes": "1MB"}]},
...     "horizon": "10ms",
... })
>>> run.totals()["finished"]
1

A function of the user, as for `circuits.schedule`, may replace the name of a scheduler. With `demand`, the
simulator calls the function for the days of each week:

>>> def ring(demand, network):
...     return [("1980us", [(rack, (rack + 1) % len(demand)) for rack in range(len(demand))])]
>>> run = packets.simulate({
...     "network": {"racks": 4, "hosts_per_rack": 2},
...     "scheduler": {"name": ring, "demand": "adu"},
...     "workload": {"flows": [{"from": [0, 0], "to": [1, 0], "bytes": "1MB"}]},
...     "horizon": "10ms",
... })
>>> run.utilization(1, 0) is None
True
"""

from leeward._native import PacketRun, PacketScenario
from leeward.packets.picture import picture
from leeward.packets.sequence import Sequence, sequence
from leeward.packets.simulation import read, simulate
from leeward.packets.summary import summary
from leeward.packets.tables import PATHS, SHARES, TABLES, tables

__all__ = [
    "PATHS",
    "SHARES",
    "TABLES",
    "PacketRun",
    "PacketScenario",
    "Sequence",
    "picture",
    "read",
    "sequence",
    "simulate",
    "summary",
    "tables",
]
