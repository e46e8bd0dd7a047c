"""Values that the paper reports for UTP, CCP and incidents, each once, with sections and figures of Hotspots.

The paper's statements about the fleet and about the medians of one cell's windows are separate values here,
because they differ.
"""

FLEET_HOT_TORS = -90.0
"""Figure 15 and section 5.1: change of the average number of hot outbound compute ToRs of the fleet, in
percent."""
HOT_TORS = -44.6
P98 = -18.5
UTILIZATION = 10.9
"""Table 2: change of the median from the five days before UTP to the five days after it, in percent. The
utilization grew for other reasons."""
THRESHOLD = 75.0
"""Section 5.1: upper bound of the 98th percentile of ToRs' utilization with UTP, in percent."""
MOVES = -41.0
VIOLATIONS = -74.1
"""Table 3: change of the median that the proactive part makes, in percent."""
MOVES_FACTOR = 2.0
VIOLATIONS_FACTOR = 7.0
"""Section 5.1, in words: a purely reactive design moves nearly twice as many tasks, and puts
network-intensive tasks on hot ToRs seven times as often."""
CAPACITY_STRETCH = (2.0, 3.0)
CONSTRAINT_LATENCY = 1.5
REPLICATION_LATENCY = 2.0
"""Section 3.4: slow-down factors of three incidents; the paper has no factor for degraded reads."""

AGGREGATION = {"shuffle-write": 40.0, "shuffle-read": 52.0, "chunk-read": 72.0, "aggregation": 85.0}
"""Figure 11 and section 4.2: load-tolerance at 1.5x of an aggregation and its parts, in percent."""
QUERIES = {
    "shuffle-flush": (70.0, 90.0, 1.67),
    "materialize": (75.0, None, 1.55),
    "aggregation": (85.0, None, 1.38),
    "tpc-ds-q17": (90.0, None, 1.35),
    "tpc-h-q02": (90.0, None, 1.34),
    "shuffle": (95.0, None, 1.29),
    "streaming": (95.0, 95.0, 1.37),
}
"""Table 1: load-tolerance at 1.5x and 2x in percent (None: not reached), and hotspot-inflation."""
FLUSH_RATIO, FLUSH_INFLATION = 0.1, 2.25
"""Figure 12b: a compute ratio of the shuffle flush, and the hotspot-inflation at this ratio."""
FILES = {"file-read": (95.0, 1.5), "file-write": (50.0, 4.0)}
"""Figure 13 and section 4.3: load-tolerance at 2x in percent, and hotspot-inflation, for files on HDDs. The
introduction says that writes reach 2x at 40 %."""
FILES_NETWORK = 4.0
"""Figure 13: hotspot-inflation of the network's part of reads."""
NETWORK_SHARES = {
    ("file-read", "below 25 %"): "less than 20 %",
    ("file-read", "75 to 95 %"): "less than 20 %",
    ("file-read", "over 95 %"): "not more than 40 %",
    ("file-write", "below 25 %"): "30 to 40 %",
    ("file-write", "75 to 95 %"): "more than 50 %",
}
"""Section 4.3: the network's part of the latency, by utilization. The values are bounds, so rows have no
deviation."""
SIZES = {"10kB to 100kB": None, "1MB to 10MB": 50.0}
"""Figure 21 and appendix B: load-tolerance at 2x of HDD reads by size, in percent (None: not reached)."""
MEDIA = {"ssd": (55.0, 2.5), "ram": (30.0, 3.0)}
"""Figure 23 and appendix D: load-tolerance at 2x in percent, and hotspot-inflation, of reads."""
QUERY_GAINS = {"shuffle-flush": -13.0, "materialize": -9.0, "tpc-h-q02": 0.0}
"""Figure 19 and the introduction: change of the p95 with UTP, in percent; TPC-H's is not significant."""
READ_GAINS = {"network": (-80.0, -50.0), "total": (-60.0, -30.0)}
"""Figure 20: range of the change of the p95 of HDD reads with CCP, in percent."""
HOT_UPWARDS = 50.0
"""Section 3.2 and figure 3: percent of hot ToR links that are hot upwards."""
TORS_OVER_HOSTS, TORS_OVER_CORE = 10.0, 2.0
"""Section 3.2 and figure 3: rate of hot links among ToR links, over the rates among the links of hosts and
among the links of the core."""
DURATIONS = {"below 1 h": 33.0, "1 to 12 h": 40.0, "1 day to 2 weeks": 13.0}
"""Section 3.2 and figure 4: percent of hotspots by duration."""
KINDS = {"mixed": 50.0, "disk": 40.0}
"""Section 3.2 and figure 5: percent of hotspots by kind of rack."""
STORAGE_SHARE = 45.0
"""Section 3.2 and figure 6: percent of the hotspots of mixed racks that storage causes."""
WIDEST_JOB = 10.0
"""Section 3.3 and figure 7: bandwidth per compute unit of some jobs, over that of the median job."""
WIDEST_RACK = 2.0
"""Section 3.3 and figure 9: largest ratio of uplink to disk capacity, over the smallest one."""
