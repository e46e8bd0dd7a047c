"""Values that Etalon reports, each once: printed in text and figures, or read off the pictures.

`leeward.lab.checks.network` has those of table 1.
"""

VOQ = (4, 8, 16, 32, 64, 128)
"""Packets of static queues, figures 6a, 7a and 9."""
TAU = (0, 200, 400, 600, 800, 1000, 1200, 1400)
"""Microseconds by which queues grow early, figures 6b and 7b."""

STATIC_USED = (16.0, 25.0, 39.0, 61.0, 92.0, 99.0)
"""Percent, figure 6a."""
RESIZED_USED = (39.0, 52.0, 56.0, 65.0, 79.0, 88.0, 100.0, 100.0)
"""Percent, figure 6b."""
STATIC_MEDIANS = {
    "all": (41.0, 63.9, 115.2, 190.9, 210.9, 450.9),
    "circuit": (31.0, 31.0, 31.0, 33.2, 43.1, 313.1),
    "packet": (42.1, 70.9, 128.1, 236.0, 453.1, 590.1),
}
"""Microseconds, figure 7a."""
RESIZED_MEDIANS = {
    "all": (115.1, 114.0, 114.0, 121.1, 124.1, 135.0, 196.1, 452.0),
    "circuit": (31.1, 31.9, 31.9, 33.0, 34.1, 37.1, 51.0, 311.0),
    "packet": (127.9, 127.9, 129.0, 136.1, 142.9, 178.1, 368.0, 591.9),
}
"""Microseconds, figure 7b."""
RETCP_STATIC = (38.1, 115.0, 139.8)
"""reTCP with queues of 16 packets: percent used, median and 99th percentile in microseconds; figures 8, 9."""
RETCP_USED = (66.8, 71.0, 84.7, 94.1, 97.2, 99.1, 99.4)
RETCP_MEDIANS = (113.9, 115.8, 122.0, 129.0, 139.0, 202.8, 451.9)
"""reTCP with queues that grow 200 to 1400 us early: percent used, and median in microseconds; figure 8."""
STATIC_TAILS = (55.7, 84.1, 140.8, 257.8, 485.0, 944.0)
RESIZED_TAILS = (153.8, 178.9, 226.7, 297.8, 336.8, 460.9, 944.9)
RETCP_TAILS = (166.8, 270.8, 377.7, 453.9, 488.7, 540.8, 944.9)
"""99th percentiles in microseconds, figure 9: of static queues by `VOQ`; of queues that grow 200 to 1400 us
early; and of reTCP with such queues."""
TRIPS = (0.75, 1.125, 1.5, 2.25, 3, 4.5, 6, 9, 18)
"""Round trips on the circuit within a day, figure 10."""
IMPROVED = (4.7, 36.4, 39.8, 38.2, 35.3, 33.4, 32.4, 33.4, 31.7)
"""Percent by which the median is lower than with static queues of the same utilization, figure 10."""

RING_GAINS = (8.0, 11.0, 2.0)
"""Speed-up of ADUs against VOQs in the ring: median and p99 of big flows, and p99 of small flows."""
SYSTEMS = (
    "ToR VOQ",
    "VOQ+Resize",
    "VOQ+reTCP",
    "ADU",
    "ADU+Resize",
    "ADU+reTCP",
    "Fixed",
    "Packet10",
    "Packet20",
    "Packet40",
    "Packet80",
)
"""Columns of table 2 and figure 16."""
MEDIAN_SMALL = (1.52, 1.57, 1.6, 1.51, 1.58, 1.59, 1.49, 2.19, 1.05, 0.71, 0.65)
TAIL_SMALL = (56.39, 76.54, 69.86, 65.71, 79.07, 77.8, 64.99, 36.34, 22.25, 14.5, 5.2)
MEDIAN_BIG = (1162.04, 737.64, 660.19, 644.01, 110.61, 102.11, 724.08, 1680.35, 1025.92, 46.95, 45.3)
TAIL_BIG = (1988.84, 1917.55, 1869.5, 1815.74, 432.5, 406.44, 1860.53, 1998.27, 1944.73, 134.29, 114.77)
"""Milliseconds, table 2, of flows that ended within 2 s of their start."""
BY_PACKETS = (28.4, 24.7, 23.7, 23.6, 18.9, 18.9, 24.5, 36.0, 57.3, 59.5, 55.5)
BY_CIRCUITS = (27.1, 33.3, 34.4, 33.3, 38.1, 38.1, 32.1, 0.0, 0.0, 0.0, 0.0)
"""GiB sent, figure 16; its axis says GB, and its script counts 2^30 bytes."""

FILES_SYSTEMS = ("HDFS", "HDFS+Resize", "HDFS+reTCP", "reHDFS", "reHDFS+Resize", "reHDFS+reTCP")
"""Bars of figures 20 to 22."""
FILES_GAINS = (4.7, 7.6, 9.0)
"""Speed-up of writes under reHDFS: median, 99th percentile, longest; text of section 6.2."""
FILES_JOB = 47.0
"""Percent by which the job is shorter, text."""
FILES_TAILS = (1369, 1101, 999, 173, 128, 127)
"""99th percentile of writes in milliseconds, figure 20."""
FILES_GBPS = (72, 87, 86, 381, 565, 600)
"""Aggregate throughput in Gb/s, figure 21."""
FILES_PACKETS = (15.1, 12.5, 11.9, 0.5, 0.6, 0.4)
FILES_CIRCUITS = (14.6, 17.3, 17.7, 26.3, 26.3, 26.4)
"""GiB sent, figure 22; its axis says GB, and its script divides by 2^30."""
