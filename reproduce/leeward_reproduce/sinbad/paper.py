"""Values that the paper reports, each once. Sections and figures are Sinbad's (SIGCOMM 2013)."""

SIMULATION = {
    "factor": 1.58,
    "faster": 46.0,
    "same": 47.0,
    "slower": 7.0,
    "twice": 16.0,
    "writers": 1.39,
    "jobs": 1.18,
}
"""Section 7.2, trace-driven simulation; shares of blocks in percent."""
SOURCES = {"factor": 1.89, "faster": 58.0, "same": 39.0, "slower": 3.0, "writers": 1.59, "jobs": 1.36}
"""Section 7.2, with sources that are placed as well: the optimistic bound."""
MEMORY = {"factor": 1.79, "faster": 64.0, "same": 29.0, "slower": 7.0, "writers": 1.40, "jobs": 1.15}
"""Section 7.6, simulation without disks."""
CV_DECREASE = {"rack_uplink_cv": 0.35, "rack_downlink_cv": 0.33}
"""Section 7.3, figure 8: decrease of the median."""
MACHINES_CV_DECREASE = {"host_egress_cv": 0.34, "host_ingress_cv": 0.46}
"""Section 7.3, figure 9."""
UNEVEN_HALF = 50.0
"""Section 4.3, figure 5: share of intervals with Cv above 1, "almost half"."""
STABLE = {5: 94.0, 10: 89.0, 20: 80.0, 40: 66.0}
"""Section 4.3: chance in percent that the least predictable link's utilization moves by at most 5 %, by the
time in seconds in which it moves."""
BUSY = 25.0
"""Section 4.3: percent of the time in which the 95th percentile of links' utilization is above 75 %."""
MACHINES_BLOCKS = 1.30
MACHINES_WRITES = 1.29
MACHINES_JOBS = 1.19
"""Section 7.2, EC2."""
MACHINES_NO_GAIN = 15.0
MACHINES_BEST = 1.40
"""Section 7.2: percent of jobs without gain, and least factor of the best 15 % of jobs."""
BEST_BIN = 1.26
"""Section 7.2, figure 6: factor of jobs in the bin with the largest share of writing."""
MACHINES = 100
"""Section 7.1: machines on EC2."""
STORAGE_GB = {"uniform": 6.7, "sinbad": 15.8}
"""Section 7.4: standard deviation of stored bytes over machines, in GB."""
STORAGE_TB = 9.24
"""Section 7.4: bytes stored in an hour, in TB."""
STORAGE_SHARE = 0.57
"""Section 7.4: growth of the standard deviation, in percent of disk capacity."""
FAR_TOO_MUCH = 4.0
"""Section 7.4: at most this percent of racks receives far too much; they were down most of the time."""
TWICE_THE_LOAD = 1.4
"""Section 7.5: slow-down of all jobs at twice the arrivals, under both policies."""
MACHINES_MEMORY = {"blocks": 1.6, "writes": 1.44, "jobs": 1.33}
"""Section 7.6, EC2."""
REDUCERS_HALF = 42.0
OTHERS_HALF = 91.0
"""Section 4.2, figure 4: percent of reducers, and of other writers, that spend at least half their time in
writing."""
