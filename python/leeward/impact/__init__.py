"""What hot links cost: latency of operations against the utilization of the links that they cross.

Each latency is set beside the greatest utilization of its operation's links in the intervals of 30 s that it
ran in; buckets of 5 % of utilization have a 95th percentile and a median, and these over those of the lowest
bucket are inflation. Load-tolerance is where it reaches 1.5 or 2, hotspot-inflation what it is at 75 %.

After Hotspots, section 4 and appendices A to D. What the paper leaves open is a setting: the fewest latencies
of a bucket, what is done between buckets, edges of classes, the weights of weighted-effective utilization.
Ours
besides: intervals by the bootstrap, and an operation in several intervals takes the greatest of them.
"""

from leeward.impact.analysis import Impact, measure
from leeward.impact.curves import Bucket, Curve, Estimate, Tolerance
from leeward.impact.operations import OPERATIONS
from leeward.impact.settings import Settings

__all__ = ["OPERATIONS", "Bucket", "Curve", "Estimate", "Impact", "Settings", "Tolerance", "measure"]
