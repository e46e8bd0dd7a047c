"""Parses and formats quantities: rates, bytes, times, shares.

Functions `read_...` parse. Their first parameter is the name of the argument, for errors.

Functions `..._text` format for people, with a space before the unit and without trailing zeros; None is a
dash. `digits` is a number of significant digits, or of decimals for shares. If it is None, the text is exact.

`bytes_literal` and `rate_literal` have the form of cluster files, without a space: `256MiB`, `25Gbps`. Files
that are read back have this form. `leeward.export.rules` formats durations of PromQL.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from math import inf, isfinite, nan

from leeward import _native
from leeward._native import bytes_text as bytes_literal
from leeward._native import rate_text as rate_literal
from leeward.errors import InputError

__all__ = ["bytes_literal", "rate_literal"]

NONE = "-"
MOST_BPS = 10**15
"""Greatest rate of a link in bits per second, in cluster files and in telemetry."""
LONGEST_PAUSE_S = 1e6
"""Longest pause of an app that moves."""
HOUR_MS = 3_600_000
_PORTS = re.compile(r"\s*(\d{1,4})\s*[x*]\s*(.+)", re.ASCII)
_BYTE_UNITS = (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
_TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def read_rate(argument: str, text: str) -> int:
    """A rate in bits per second.

    Args:
        argument: Name of the argument.
        text: A rate with its unit as in a cluster file, `25Gbps`; or ports times a rate, `4x100Gbps`.

    Raises:
        InputError: The text is not a rate from 1 to `MOST_BPS`.
    """
    ports = _PORTS.fullmatch(text)
    count, each = (int(ports[1]), ports[2]) if ports else (1, text)
    total = count * _bps(argument, text, each)
    if not 0 < total <= MOST_BPS:
        message = f"`{text[:40]}`: expected a positive rate of at most {rate_literal(MOST_BPS)}"
        raise InputError.about(argument, message)
    return total


def _bps(argument: str, text: str, each: str) -> int:
    """Parses a rate like the reader of cluster files; errors name the whole text."""
    try:
        cluster = _native.Cluster({"racks": 1, "hosts_per_rack": 1, "nic": each, "rack_link": "1Gbps"})
    except InputError as error:
        message = error.message if f"`{text}`" in error.message else f"`{text[:40]}`: {error.message}"
        raise InputError.about(argument, message) from None
    bps: int = cluster.links()["capacity_bps"][0].as_py()
    return bps


def read_bytes(argument: str, text: str) -> int:
    """A number of bytes: `256MiB`.

    Raises:
        InputError: The text is not a number of bytes with a unit.
    """
    try:
        return _native.byte_count(text)
    except InputError as error:
        raise InputError.about(argument, error.message) from None


def read_seconds(argument: str, text: str) -> float:
    """A time in seconds: `20ms` is 0.02.

    Raises:
        InputError: The text is not a time with a unit.
    """
    try:
        return _native.seconds(text)
    except InputError as error:
        raise InputError.about(argument, error.message) from None


def read_milliseconds(argument: str, text: str, most: int | None = None) -> int:
    """A time in whole milliseconds, at least 1: `5min` is 300,000.

    Args:
        argument: Name of the argument.
        text: A time with its unit.
        most: The longest time, a multiple of an hour; by default, no limit.

    Raises:
        InputError: The text is not a time with a unit, or out of bounds.
    """
    value = round(1000 * read_seconds(argument, text))
    if value < 1 or (most is not None and value > most):
        bounds = "1ms or more" if most is None else f"from 1ms to {most // HOUR_MS}h"
        raise InputError.about(argument, f"`{text}`: expected {bounds}")
    return value


def read_move_cost(cost: str | float) -> tuple[float, int]:
    """Cost of a move: pause of the app in seconds, and bytes that each task carries.

    Args:
        cost: A size such as `2GiB`, for the bytes; or a time such as `30s`, or a number of seconds.

    Raises:
        InputError: The cost is neither, or out of bounds; the error names `move_cost`.
    """
    if isinstance(cost, str):
        with suppress(InputError):
            return 0.0, read_bytes("move_cost", cost)
        try:
            seconds = read_seconds("move_cost", cost)
        except InputError:
            message = f"`{cost}`: expected a size, such as 2GiB, or a time, such as 30s"
            raise InputError.about("move_cost", message) from None
    else:
        seconds = float(cost)
    if not 0 <= seconds <= LONGEST_PAUSE_S:
        raise InputError.about("move_cost", f"{seconds:g} s: expected 0 to {LONGEST_PAUSE_S:g} s")
    return seconds, 0


def read_share(argument: str, text: str, least: float = -inf, most: float = inf) -> float:
    """A share: `75%` and `0.75` are 0.75.

    Args:
        argument: Name of the argument.
        text: A number with a percent sign, or a number from 0 to 1 without.
        least: The least share.
        most: The greatest share.

    Raises:
        InputError: The text is not a share, or out of bounds.
    """
    number = text.strip().removesuffix("%").strip()
    in_percent = text.strip().endswith("%")
    try:
        value = float(number) if number.isascii() else nan
    except ValueError:
        value = nan
    share = value / 100 if in_percent else value
    if not (isfinite(value) and (in_percent or 0 <= share <= 1) and least <= share <= most):
        bounds = "" if least == -inf else f" from {100 * least:g}% to {100 * most:g}%".replace("e+0", "e")
        message = f"`{text}`: expected a percentage{bounds}, such as 75%"
        raise InputError.about(argument, message)
    return share


def rate_text(bps: float | None, digits: int | None = 4) -> str:
    """A rate: `6.834 Gbps`."""
    if bps is None:
        return NONE
    return _spaced(rate_literal(int(bps if digits is None else float(f"{bps:.{digits}g}"))))


def gigabits_text(bps: float) -> str:
    """A rate in Gb/s with three digits: `6.83 Gb/s`.

    The evidence of causes of hotspots has this form, and is a column of JSON and Parquet, which stays.
    """
    return f"{bps / 1e9:,.3g} Gb/s"


def bytes_text(count: float | None, digits: int | None = 3) -> str:
    """A number of bytes: `18.7 kB`. The exact text has binary units where these are shorter: `256 MiB`."""
    if count is None:
        return NONE
    return _spaced(bytes_literal(int(count))) if digits is None else _scaled(count, _BYTE_UNITS, digits)


def work_text(value: float | None, unit: str) -> str:
    """An amount of work: bytes, or seconds of service if the unit is `s`."""
    return time_text(value) if unit == "s" else bytes_text(value)


def work_rate_text(value: float | None, unit: str) -> str:
    """Work per second: bytes per second, or the share of a device if the unit is `s`."""
    if value is None:
        return NONE
    return percent_text(value) if unit == "s" else f"{bytes_text(value)}/s"


def time_text(seconds: float | None, digits: int = 3, beside: float = 0) -> str:
    """A measured time, in a unit that fits: `2.5 ms`.

    Args:
        seconds: The time.
        digits: Significant digits.
        beside: Another time in the same cell. The larger of both determines the unit and the decimals.
    """
    return NONE if seconds is None else _scaled(seconds, _TIME_UNITS, digits, beside)


def duration_text(seconds: float) -> str:
    """A length of time in units of a calendar: `1 h 5 min`, `3 d 4 h`.

    For intervals, runs and ages. Lengths are rounded to minutes from ten minutes on, and to hours from two
    days on.
    """
    if 0 < seconds < 1:
        return time_text(seconds)
    hours = round(seconds / 3600)
    if hours >= 48:
        return f"{hours // 24:,} d" + (f" {hours % 24} h" if hours % 24 else "")
    whole = round(seconds) if seconds < 600 else 60 * round(seconds / 60)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def percent_text(share: float | None, digits: int | None = 1, beside: float = 0) -> str:
    """A share in percent: `12.5 %`.

    Args:
        share: The share.
        digits: Greatest number of decimals. If it is not zero, shares below 0.1 % have up to three.
        beside: Another share in the same cell. The larger of both determines the decimals.
    """
    if share is None:
        return NONE
    if digits is None:
        return f"{100 * share:.15g} %"
    small = digits and 0 < max(abs(share), abs(beside)) < 0.001
    return f"{_trimmed(f'{100 * share:z.{max(digits, 3) if small else digits}f}')} %"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and the number of the others: `r1, r2, r3 and 7 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 host`, `3,000 hosts`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _spaced(literal: str) -> str:
    """A quantity of a file with a space before its unit."""
    return re.sub(r"(?<=\d)(?=[A-Za-z])", " ", literal, count=1)


def _scaled(value: float, units: tuple[tuple[str, float], ...], digits: int, beside: float = 0) -> str:
    """A value in the largest unit that is not above it, rounded to significant digits."""
    largest = float(f"{max(abs(value), abs(beside)):.{digits}g}")
    unit, size = next((one for one in units if largest >= one[1]), units[-1])
    if not largest:
        unit, size = next(one for one in units if one[1] == 1)
    decimals = max(0, digits - len(f"{int(largest / size)}"))
    return f"{_trimmed(f'{value / size:z,.{decimals}f}')} {unit}"


def _trimmed(number: str) -> str:
    """A number without trailing zeros after its point."""
    return number.rstrip("0").rstrip(".") if "." in number else number
