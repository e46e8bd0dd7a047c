"""What the paper reports of UTP, CCP and incidents, each value once. Sections and figures are Hotspots'.

Claims about the fleet and those about medians of one cell's windows differ, and are kept apart.
"""

FLEET_HOT_TORS = -90.0
"""Figure 15 and section 5.1: hot compute ToRs, outbound, of the fleet; averages, in percent."""
HOT_TORS = -44.6
P98 = -18.5
UTILIZATION = 10.9
"""Table 2: change of the median over five days before and after UTP, in percent; the last is growth that has
other reasons."""
THRESHOLD = 75.0
"""Section 5.1: the 98th percentile is below this with UTP."""
MOVES = -41.0
VIOLATIONS = -74.1
"""Table 3: change of the median with the proactive part against without it, in percent."""
MOVES_FACTOR = 2.0
VIOLATIONS_FACTOR = 7.0
"""Section 5.1, in words: a purely reactive design moves nearly twice as many tasks, and puts
network-intensive ones on hot ToRs seven times as often."""
CAPACITY_STRETCH = (2.0, 3.0)
CONSTRAINT_LATENCY = 1.5
REPLICATION_LATENCY = 2.0
"""Section 3.4: factors in three of the four incidents; degraded reads have none."""
