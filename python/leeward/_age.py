"""Age limit of telemetry: the one place where a decision reads the wall clock.

Loads from hours ago say little about now, and would send work where the network was quiet then. A telemetry
file with a time column `t_s` is rejected when the last line of a link is too old.
"""

import time

from leeward._quantities import read_seconds

MAX_AGE = "5min"
"""Default age limit of the last line of each link."""


def clock(max_age: str = MAX_AGE) -> tuple[float, float]:
    """Current time in seconds since 1970, and `max_age` in seconds.

    Raises:
        InputError: `max_age` is not a time.
    """
    return time.time(), read_seconds("max_age", max_age)
