"""How old telemetry may be: the one place where a decision looks at the clock on the wall.

What links carried hours ago says little of now, and a decision on it puts work where the network was quiet. A
file that says when its lines were measured, in a column `t_s`, is refused when the last line of a link is too
old.
"""

import time

from leeward._quantities import read_seconds

MAX_AGE = "5min"
"""How old the last line of a link may be, unless it is said otherwise."""


def clock(max_age: str = MAX_AGE) -> tuple[float, float]:
    """The time now in seconds since 1970, and `max_age` in seconds.

    Raises:
        InputError: `max_age` is no time.
    """
    return time.time(), read_seconds("max_age", max_age)
