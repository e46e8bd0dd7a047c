"""Telemetry: loads of links, from any source, as one clean table.

Readings come from Prometheus or from files, as counters or as rates, and become `Samples`: bits that a link
carried in a span of time. `windows` computes utilizations in intervals from samples; these define "hot"
(Hotspots, section 3.1). `Discards` counts unusable readings by reason.
"""

from leeward._engines import EngineName
from leeward._extras import needed

with needed():
    from leeward.telemetry.discards import Discards
    from leeward.telemetry.engine import Engine
    from leeward.telemetry.reader import read
    from leeward.telemetry.samples import Samples
    from leeward.telemetry.windows import Windows, windows

__all__ = ["Discards", "Engine", "EngineName", "Samples", "Windows", "read", "windows"]
