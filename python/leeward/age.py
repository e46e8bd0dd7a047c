"""How old a telemetry file is: the one place where a decision looks at the clock on the wall.

What links carried hours ago says little of now, and a decision on it puts work where the network was quiet. A
file that says when its lines were measured, in a column `t_s`, is refused when the newest of them is too old.
"""

import time
from os import PathLike
from pathlib import Path

from leeward import _native
from leeward.errors import InputError
from leeward.simulation import duration

MAX_AGE = "5min"
"""How old the newest line may be, unless it is said otherwise."""
_AHEAD_S = 60.0
"""How far clocks may differ."""
_COLUMN = "t_s"


def check_age(path: str | PathLike[str], max_age: str = MAX_AGE, now_s: float | None = None) -> None:
    """Checks that a telemetry file is not stale; one without a column `t_s` is taken as it is.

    Args:
        path: The file: CSV, plain or gzip. Of a file that cannot be read nothing is said here.
        max_age: How old its newest line may be, such as `5min`.
        now_s: Seconds since 1970; by default now.

    Raises:
        InputError: It is older, or of the future; or its times are none, or `max_age` is none.
    """
    try:
        limit = _native.seconds(max_age)
    except InputError as error:
        raise InputError("max_age", None, None, None, error.message) from None
    newest = _newest(Path(path))
    if newest is None:
        return
    age = (time.time() if now_s is None else now_s) - newest
    if age > limit:
        message = (
            f"stale: the newest line was measured {duration(age)} ago; at most {duration(limit)} is allowed"
        )
        raise InputError(str(path), None, None, _COLUMN, message)
    if age < -_AHEAD_S:
        message = f"the newest line was measured {duration(-age)} from now; expected seconds since 1970"
        raise InputError(str(path), None, None, _COLUMN, message)


def _newest(path: Path) -> float | None:
    """The greatest `t_s`; None where there is none, or no table that could have one."""
    import pyarrow
    from pyarrow import compute, csv

    options = csv.ConvertOptions(column_types={_COLUMN: pyarrow.string()}, strings_can_be_null=False)
    try:
        table = csv.read_csv(path, convert_options=options)
    except (OSError, pyarrow.ArrowInvalid):
        # Whoever reads the loads says better what is wrong with the file.
        return None
    if _COLUMN not in table.column_names or not len(table):
        return None
    try:
        times = compute.cast(compute.utf8_trim_whitespace(table[_COLUMN]), pyarrow.float64())
    except pyarrow.ArrowInvalid:
        times = None
    if times is None or not compute.all(compute.is_finite(times)).as_py():
        raise InputError(str(path), None, None, _COLUMN, "expected seconds since 1970 in every line")
    newest: float = compute.max(times).as_py()
    return newest
