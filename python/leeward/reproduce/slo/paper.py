"""What the thesis reports, each value once."""

SAME_BEST = 1.4
"""Servers of the best rival, effective bandwidth, over the compactor's; one SLO for all (figure 5.4)."""
RANDOM_BEST = 1.5
"""The same where SLOs are random: knee (figure 5.4)."""
MANY = (1.4, 2.5)
"""Servers of rivals over the compactor's, least and most (figures 5.1, 5.8 and 5.9)."""
VISITS = 1.5
"""Largest number of servers of any rival over the compactor's: above this (figure 5.10)."""
FAST_SERVERS = (3.0, 4.0)
"""Percent of servers more by fast first fit (section 5.3)."""
FAST_SPEED = 10.0
"""Times that fast first fit is faster, at least (section 5.3, figure 5.7)."""
SSDS = 115.0
"""Servers for 1000 workloads with two SSDs or more (figure 5.11)."""
SEVERAL_TIME = 15.0
"""Times that several limiters take (figure 5.12)."""
HELD_OUT = 100.0
"""Percent of workloads within their SLO in held-out halves, with a margin of 10 % (figures 5.5, 5.6)."""

SNC_OVER_DNC = 75.0
"""Percent of workloads that SNC admits more than the best deterministic system, median (figure 4.10)."""
SNC_BYTES = 88.0
"""Percent of bytes more, median (figure 4.10)."""
STORAGE_SNC = 62.0
"""Percent of workloads that SNC admits more with storage (figure 4.16)."""
STORAGE_DNC = 156.0 / 560.0 * 100
"""Percent of workloads that DNC admits with storage (figure 4.16)."""
