"""Reconfigurable networks: schedules of circuits for the demand between racks.

A packet switch joins all racks, and a circuit switch gives each rack one fast circuit at a time. A *day* is a
period with one set of circuits. A *night* is the gap before a day, in which circuits change and carry
nothing. A *week* is one schedule of nights and days. The packet switch carries the rest of the demand.

    demand (rows are sources), Network -> schedule -> Schedule: days, bytes that each serves, bytes left

    >>> from leeward import circuits
    >>> demand = [[0, 9e6, 0], [0, 0, 9e6], [9e6, 3e5, 0]]
    >>> schedule = circuits.schedule(demand, "eclipse", circuits.Network(week="1ms"))
    >>> [(day.length_s, day.served_bytes) for day in schedule.days]
    [(0.0009, 27000000), (3e-05, 300000)]
    >>> schedule.left_bytes
    0

A user's scheduler is a function that takes a demand and a network, and returns days. `schedule` checks and
measures these days in the same way:

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
