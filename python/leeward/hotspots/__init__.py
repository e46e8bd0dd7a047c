"""Hotspots: hot links, their start, duration, cause and forecast.

The package takes no decisions; it describes telemetry in the terms of "Datacenter network hotspots" (sections
3.1 to 3.4, figures 3 to 9 and 14) and Sinbad (section 4.3, figure 5). A link is hot in an interval of five
minutes if ``bits / (capacity x time) > 75 %``. One module for each analysis: `hot` (frequency), `durations`
(duration and remedy), `causes`, `imbalance`, `forecast`. Everything is an expression in Ibis over integers,
so that DuckDB and Spark give equal results.
"""

from leeward._extras import needed

with needed():
    from leeward.hotspots.analysis import Analysis, Extent, analyze
    from leeward.hotspots.causes import Causes, Tables
    from leeward.hotspots.settings import Settings

__all__ = ["Analysis", "Causes", "Extent", "Settings", "Tables", "analyze"]
