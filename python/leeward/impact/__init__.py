"""Cost of hot links: latency of operations against the utilization of the links that they cross.

Each latency gets the greatest utilization of the operation's links in the intervals of 30 s in which the
operation ran. Each bucket of 5 % of utilization has a 95th percentile and a median of latency. Inflation is
their ratio to the percentile and the median of the lowest bucket. Load-tolerance is the utilization at which
inflation reaches 1.5 or 2; hotspot-inflation is its value at 75 %.

After Hotspots, section 4 and appendices A to D. Choices that the paper leaves open are settings: the least
number of latencies in a bucket, values between buckets, edges of classes, and the weights of
weighted-effective utilization. Two things are not in the paper: confidence intervals by bootstrap, and the
rule that an operation in several intervals gets the greatest of their utilizations.
"""

from leeward._extras import needed

with needed():
    from leeward.impact.analysis import Impact, measure
    from leeward.impact.curves import Bucket, Curve, Estimate, Tolerance
    from leeward.impact.operations import OPERATIONS
    from leeward.impact.settings import Settings

__all__ = ["OPERATIONS", "Bucket", "Curve", "Estimate", "Impact", "Settings", "Tolerance", "measure"]
