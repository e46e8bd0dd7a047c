"""Values that Choreo reports, each once. Ranges of section 6 are over its three baselines."""

IMPROVED_AT_ONCE = 70.0
"""Percent of apps that gain, figure 10a."""
MEAN_AT_ONCE = (8.0, 14.0)
MEDIAN_AT_ONCE = (7.0, 15.0)
GAINERS_MEAN_AT_ONCE = (20.0, 27.0)
GAINERS_MEDIAN_AT_ONCE = (13.0, 28.0)
BEST_AT_ONCE = 61.0
LOSERS_AT_ONCE = (8.0, 13.0)
"""Median slow-down of the apps that lose."""

IMPROVED_IN_SEQUENCE = (85.0, 90.0)
MEAN_IN_SEQUENCE = (22.0, 43.0)
MEDIAN_IN_SEQUENCE = (19.0, 51.0)
GAINERS_MEAN_IN_SEQUENCE = (26.0, 47.0)
GAINERS_MEDIAN_IN_SEQUENCE = (23.0, 53.0)
BEST_IN_SEQUENCE = 79.0
LOSERS_IN_SEQUENCE = 10.0

GREEDY_OVER_EXACT = 13.0
"""Percent by which greedy is slower than the best placement, median of 111 apps (section 5). The sentence may
also mean the ratio of two medians."""

EC2_TYPICAL = 80.0
"""Percent of EC2's paths at 900 to 1,100 Mb/s (section 2.2, figure 2)."""
EC2_MEAN, EC2_MEDIAN = 957.0, 929.0
"""Rates of EC2's 1,710 paths, in Mb/s."""
RACKSPACE_RATE = 300.0
"""Rate of every path on Rackspace, almost exactly, in Mb/s."""
MESH_S = 180.0
"""Upper bound in seconds for measuring the 90 paths between ten machines (section 4.1); no value."""

LEAST_SEEN = 10.0
"""The smallest count of figure 4b."""

EC2_ERROR = 9.0
"""Error in percent of trains of 10 x 200 on EC2 (section 4.1, figure 6)."""
RACKSPACE_ERROR = 4.0
"""Error in percent of trains of 10 x 2,000 on Rackspace."""
STABILITY = {"median": ("median", (0.4, 0.5)), "mean": ("mean", (1.4, 3.0)), "p95": ("95 %", (0.0, 6.0))}
"""Label of a statistic, and its range: the error of an earlier rate on EC2, in percent. The paper states at
most 6 for 95 % of paths (section 4.1, figure 7)."""
