"""Plan: ways to bring busy racks under a threshold, and the effect of each.

Hotspots that last for days need capacity, and hotspots that last for hours need other racks for work
(Hotspots, section 3.2). For each rack whose uplink or downlink is over a threshold in a percentile of its
intervals::

    u_p = percentile p of load / capacity, over the intervals that were seen        (p = 98, as in table 2)

the plan compares two ways. **Ports**: the least whole number of ports with

    ports x speed of a port >= percentile p of load / threshold

**Shift**: the least share of the rack's work, in whole percent, without which the rack is under the
    threshold, and racks that could take this work and stay under the threshold. Percentiles are exact
    (nearest rank). Both ways then run in the fluid simulator on the measured load.

Three things are left out: demand that grows into new capacity, since a full link hides it; room of
processors, memory and disks for moved work; and traffic between moved and remaining work across the network.
"""
