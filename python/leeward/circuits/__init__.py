"""Reconfigurable networks: schedules of circuits for the demand between racks.

A packet switch joins all racks, and a circuit switch gives each rack one fast circuit at a time. A *day* is a
time in which one set of circuits is up. A *night* is the gap before it, in which circuits change and none
works. A *week* is one schedule of nights and days. Packets carry the rest of the demand.

    demand (rows are sources), Network -> schedule -> Schedule: days, bytes that each serves, bytes left

    >>> from leeward import circuits
    >>> demand = [[0, 9e6, 0], [0, 0, 9e6], [9e6, 3e5, 0]]
    >>> schedule = circuits.schedule(demand, "eclipse", circuits.Network(week="1ms"))
    >>> [(day.length_s, day.served_bytes) for day in schedule.days]
    [(0.0009, 27000000), (3e-05, 300000)]
    >>> schedule.left_bytes
    0

A scheduler of the user is a function of a demand and a network that returns days. Its result is checked and
measured in the same way:

    >>> def first_come(demand, network):
    ...     return [("900us", [(0, 1), (1, 2), (2, 0)])]
    >>> circuits.schedule(demand, first_come).left_bytes
    300000
"""

from leeward.circuits.network import Network
from leeward.circuits.picture import picture
from leeward.circuits.scheduling import Circuit, Day, Schedule, read, schedule, schedulers
from leeward.circuits.user_schedules import read_days

__all__ = ["Circuit", "Day", "Network", "Schedule", "picture", "read", "read_days", "schedule", "schedulers"]
