"""Hotspots: which links are hot, since when, for how long, why, and whether they will be.

Decides nothing; it says what telemetry shows, in the words of "Datacenter network hotspots" (sections 3.1 to
3.4, figures 3 to 9 and 14) and Sinbad (section 4.3, figure 5). A link is hot in an interval of five minutes
if ``bits / (capacity x time) > 75 %``. One module an analysis: `hot` (how often), `durations` (how long, and
the remedy), `causes`, `imbalance`, `forecast`. Everything is an expression in Ibis over integers, so that
DuckDB and Spark say the same.
"""

from leeward.hotspots.analysis import Analysis, Extent, analyze
from leeward.hotspots.causes import Causes, Tables
from leeward.hotspots.settings import Settings

__all__ = ["Analysis", "Causes", "Extent", "Settings", "Tables", "analyze"]
