"""Cells of files as numbers and times, read equally by both engines.

An invalid cell is null, and invalidates one reading instead of the file.
"""

from typing import Any

import ibis

from leeward.telemetry.units import TIMES

MOST = 9e18
"""Greatest absolute value of a whole number."""
FARTHEST_MS = 2**53
"""Greatest distance of a valid time from 1970; no clock is that far off."""


def number(column: Any, kind: str) -> Any:
    """A column of numbers or texts as `float64` or `int64`; null for an invalid cell."""
    column_type = column.type()
    if column_type.is_string() or column_type.is_binary():
        text = column.cast("string").strip()
        if kind == "float64":
            return text.try_cast("float64")
        # A counter with a point or an exponent is a number too.
        return text.try_cast("int64").fill_null(whole_numbers(text.try_cast("float64")))
    if kind == "float64":
        return column.cast("float64")
    if column_type.is_integer() and column_type != ibis.dtype("uint64"):
        return column.cast("int64")
    return whole_numbers(column.cast("float64"))


def whole_numbers(values: Any) -> Any:
    """Numbers without their fraction; null for numbers that are invalid or beyond the range of a counter."""
    within = (values >= -MOST) & (values <= MOST) & ~values.isnan()
    return within.ifelse(values, ibis.null("float64")).floor().cast("int64")


def finite(values: Any) -> Any:
    """Numbers; null for infinite and invalid numbers."""
    return (values.isnan() | values.isinf()).ifelse(ibis.null("float64"), values)


def milliseconds(column: Any, unit: str) -> Any:
    """A column of times in milliseconds since 1970; null for an invalid cell.

    Args:
        column: Timestamps or dates, or numbers or texts.
        unit: Unit of numbers and texts, one of `TIMES`, or `iso` of dates as text.
    """
    column_type = column.type()
    if column_type.is_timestamp() or column_type.is_date():
        return _since_1970(column.cast("timestamp"))
    if unit == "iso":
        return _since_1970(column.cast("string").strip().try_cast("timestamp('UTC')").cast("timestamp"))
    if column_type.is_integer() and column_type != ibis.dtype("uint64") and unit in ("s", "ms"):
        factor = 1000 if unit == "s" else 1
        most = FARTHEST_MS // factor
        values = column.cast("int64")
        return values.between(-most, most).ifelse(values, ibis.null("int64")) * factor
    values = whole_numbers(number(column, "float64") * ibis.literal(TIMES[unit], "float64") + 0.5)
    return values.between(-FARTHEST_MS, FARTHEST_MS).ifelse(values, ibis.null("int64"))


def _since_1970(stamp: Any) -> Any:
    return stamp.epoch_seconds().cast("int64") * 1000 + stamp.millisecond().cast("int64")
