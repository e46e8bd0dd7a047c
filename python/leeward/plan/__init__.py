"""Plan: what would bring racks that are too busy under a threshold, and what each way would change.

Hotspots that last for days ask for capacity, those that last for hours for work to be placed elsewhere
(Hotspots, section 3.2). For each rack whose uplink or downlink is over a threshold in a percentile of its
intervals::

    u_p = percentile p of load / capacity, over the intervals that were seen        (p = 98, as in table 2)

this weighs both. **Ports**: the least whole number of ports with

    ports x speed of a port >= percentile p of load / threshold

**Shift**: the least share of the rack's work, in whole percent, without which it is under the threshold, and
racks that could take that work and stay under it themselves. Percentiles are exact (nearest rank). Both ways
are then run in the fluid simulator on the measured load.

What is not in it: demand that grows into new capacity, since a full link hides what would be sent over a
wider one; whether processors, memory and disks have room for what moves; that work which moves may cross the
network to what it left behind.
"""
