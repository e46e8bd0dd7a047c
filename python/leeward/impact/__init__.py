"""Cost of hot links: latency of operations against the utilization of the links that they cross.

Each latency gets the greatest utilization of its operation's links in the intervals of 30 s that it ran in.
Buckets of 5 % of utilization have a 95th percentile and a median, and inflation is their ratio to those of
the lowest bucket. Load-tolerance is the utilization at which inflation reaches 1.5 or 2; hotspot-inflation is
its value at 75 %.

After Hotspots, section 4 and appendices A to D. Open choices of the paper are settings: the fewest latencies
of a bucket, values between buckets, edges of classes, the weights of weighted-effective utilization. Two
things are not in the paper: intervals by the bootstrap, and an operation in several intervals takes the
greatest of their utilizations.
"""

from leeward.impact.analysis import Impact, measure
from leeward.impact.curves import Bucket, Curve, Estimate, Tolerance
from leeward.impact.operations import OPERATIONS
from leeward.impact.settings import Settings

__all__ = ["OPERATIONS", "Bucket", "Curve", "Estimate", "Impact", "Settings", "Tolerance", "measure"]
