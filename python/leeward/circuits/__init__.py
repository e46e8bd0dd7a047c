"""Networks that are reconfigured: schedules of circuits for what racks want to send each other.

Racks are joined by a packet switch, and by a circuit switch that gives each rack one fast circuit at a time.
A *day* is a time in which one set of circuits is up, a *night* the gap before it in which circuits change and
none works, a *week* one schedule of nights and days. What circuits leave of the demand goes by packets.

    demand (rows are sources), Network -> schedule -> Schedule: days, what each serves, what is left

    >>> from leeward import circuits
    >>> demand = [[0, 9e6, 0], [0, 0, 9e6], [9e6, 3e5, 0]]
    >>> made = circuits.schedule(demand, "eclipse", circuits.Network(week="1ms"))
    >>> [(day.length_s, day.served_bytes) for day in made.days]
    [(0.0009, 27000000), (3e-05, 300000)]
    >>> made.left_bytes
    0

A scheduler of your own is a function of a demand and a network that returns days; it is checked and measured
as any other:

    >>> def first_come(demand, network):
    ...     return [("900us", [(0, 1), (1, 2), (2, 0)])]
    >>> circuits.schedule(demand, first_come).left_bytes
    300000
"""

from leeward.circuits.network import Network
from leeward.circuits.own import read_days
from leeward.circuits.picture import picture
from leeward.circuits.scheduling import Circuit, Day, Schedule, read, schedule, schedulers

__all__ = ["Circuit", "Day", "Network", "Schedule", "picture", "read", "read_days", "schedule", "schedulers"]
