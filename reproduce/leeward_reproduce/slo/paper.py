"""Values that the thesis reports, each once."""

SAME_BEST = 1.4
"""Servers of the best rival, effective bandwidth, over the compactor's; one SLO for all (figure 5.4)."""
RANDOM_BEST = 1.5
"""Servers of the best rival, knee, over the compactor's; random SLOs (figure 5.4)."""
MANY = (1.4, 2.5)
"""Servers of rivals over the compactor's, least and most (figures 5.1, 5.8 and 5.9)."""
VISITS = 1.5
"""Greatest number of servers over the compactor's: above this value for every rival (figure 5.10)."""
FAST_SERVERS = (3.0, 4.0)
"""Percent by which fast first fit needs more servers (section 5.3)."""
FAST_SPEED = 10.0
"""Least speed-up of fast first fit (section 5.3, figure 5.7)."""
SSDS = 115.0
"""Servers for 1000 workloads with two SSDs or more (figure 5.11)."""
SEVERAL_TIME = 15.0
"""Factor of the time with several limiters (figure 5.12)."""
HELD_OUT = 100.0
"""Percent of workloads within their SLO in held-out halves, with a margin of 10 % (figures 5.5, 5.6)."""

SNC_OVER_DNC = 75.0
"""Percent by which SNC admits more workloads than the best deterministic system, median (figure 4.10)."""
SNC_BYTES = 88.0
"""Percent by which these workloads have more bytes, median (figure 4.10)."""
SILO_OVER_HAND = 10.0
"""Percent by which Silo++ admits more workloads than Silo tuned by hand (section 4.1, footnote 2)."""
QJUMP_OVER_EQUATION = 400.0
"""Percent by which QJump++ admits more workloads than with QJump's equation: five times (section 4.3.1)."""
STORAGE_SNC = 62.0
"""Percent by which SNC admits more workloads than DNC, with storage (figure 4.16)."""
STORAGE_DNC = 156.0 / 560.0 * 100
"""Percent of workloads that DNC admits with storage (figure 4.16)."""
STORAGE_LATE = 383.0 / 560.0 * 100
"""Percent of workloads that miss their SLO without admission control, with storage (figure 4.16)."""

PEAKS = (2.0, 6.0)
"""Least and most peak request rate over the mean (figure 4.9)."""
NINES = 33.0
"""Nines of the percentile at which SNC passes DNC (figure 4.13)."""
OPT_SNC = 93.0
"""Percent of OPT's workloads that SNC admits, median; the thesis says within 7 % (figure 4.11)."""
OPT_OTHERS = 50.0
"""Approximate percent of OPT's workloads that the other systems admit (figure 4.11)."""
SMALL_BYTES = 3.0
"""Least bytes of SNC over those of the other systems, with workloads of small requests (figure 4.12)."""
DNC_ALL = 29.0
"""Percent of workloads that DNC admits, at either percentile (figures 4.17 and 4.18)."""
SNC_999 = 51.0
"""Percent of workloads that SNC admits at 99.9 % (figure 4.17)."""
SNC_90 = 57.0
"""Percent of workloads that SNC admits at 90 % (figure 4.18)."""
MIXED_999 = 54.0
"""Percent by which SNC admits more workloads than DNC at 99.9 %, over sets of SLOs (figure 4.19)."""
MIXED_90 = 67.0
"""Percent by which SNC admits more workloads than DNC at 90 %, over sets of SLOs (figure 4.19)."""

# The thesis has a single run of each of the following experiments: 100 % if it keeps the SLO, else 0 %.
LIMITED = {"one": 0.0, "all": 100.0}
"""Percent of runs in which two workloads keep their SLOs beside one that misbehaves: with any one limit, and
with all three (figure 3.2)."""
SHARED = 3.0
"""Workloads of three that PriorityMeister keeps within SLOs at all percentiles (figures 3.3, 3.4, 3.8)."""
BURSTS = {
    ("F", "cake", 99.0): 100.0,
    ("H", "cake", 96.0): 0.0,
    ("F", "pm", 99.0): 100.0,
    ("G", "pm", 99.0): 100.0,
    ("H", "pm", 99.0): 100.0,
}
"""Percent of runs within the SLO, by workload, scheduler and percentile (figure 3.5)."""
ISOLATED = {"calm": 100.0, "pm": 100.0, "others": 0.0}
"""Percent of runs in which C keeps its SLO (figure 3.6): beside D under every scheduler (`calm`), beside E
under PriorityMeister (`pm`), and beside E under each other scheduler (`others`)."""
BOTTLENECK = 4.0
"""Workloads of four that PriorityMeister keeps within their SLOs (figure 3.7)."""
SAME_ORDER = 100.0
"""Percent of runs in which a poor model leads to the same order (figure 3.8)."""
ORDERS = {"by-slo": 5.0, "pm": 6.0}
"""Orders of six in which all SLOs are kept at 99.9 % (figure 3.9)."""
