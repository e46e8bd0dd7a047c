"""Age limit of telemetry. Decisions read the wall clock only here.

Loads from hours ago say little about the present. A telemetry file with a time column `t_s` is rejected if
the latest load of a link is too old.
"""

import time

from leeward._quantities import read_seconds

MAX_AGE = "5min"
"""Default age limit of the latest load of each link."""


def now_and_max_age(max_age: str = MAX_AGE) -> tuple[float, float]:
    """Current time in seconds since 1970, and `max_age` in seconds.

    Raises:
        InputError: `max_age` is not a time.
    """
    return time.time(), read_seconds("max_age", max_age)
